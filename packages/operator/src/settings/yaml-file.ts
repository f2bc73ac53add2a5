import { readFileSync } from 'node:fs';
import { systemCode } from '@vmwright/runtime';
import { parse } from 'yaml';
import { SettingsError } from './values.ts';

/** A YAML mapping whose scalars are texts. */
export type YamlFile = Readonly<Record<string, unknown>>;

/**
 * Reads a YAML file with settings. All scalars are read as texts, because the password 0123 would otherwise become 123.
 * Messages never quote the file, because it may contain a password.
 * @param shape description of valid content, for the message
 * @param isOptional whether the file may be missing
 * @throws SettingsError
 */
export function readYamlFile(path: string, shape: string, isOptional = false): YamlFile {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (isOptional && systemCode(error) === 'ENOENT') return {};
    throw new SettingsError(`the config file ${path} cannot be read; check --config`, { cause: error });
  }
  let content: unknown;
  try {
    content = parse(text, { schema: 'failsafe', logLevel: 'error' }); // a warning of the parser would quote the file
  } catch {
    throw new SettingsError(`the config file ${path} is not valid YAML`);
  }
  if (content === null || content === undefined || content === '') return {};
  if (isRecord(content)) return content;
  throw new SettingsError(`the config file ${path} must contain ${shape}`);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
