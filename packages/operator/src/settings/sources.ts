import { didYouMean } from './did-you-mean.ts';
import { defaultOf, type Flag, type Flags, isFlag, OPTIONS } from './flags.ts';
import { FLAGS, VARIABLES } from './table.ts';
import { type Environment, SettingsError, textOf } from './values.ts';

/**
 * Where the settings of `vmwright run` come from. The order of precedence is: flag, environment variable, config file,
 * default. An empty environment variable counts as unset, because templates of manifests render an unset value as an
 * empty variable.
 */
export interface Sources {
  readonly environment: Environment;
  /** Returns the text of a setting; empty if no source has it. */
  text(flag: Flag): string;
  /** Returns the name of a setting for messages: `--vm-refresh`, `CLOUD_URL` or `vm-refresh in config.yaml`. */
  name(flag: Flag): string;
  /** Returns whether a source other than the default has the setting. */
  isGiven(flag: Flag): boolean;
}

interface Found {
  readonly text: string;
  readonly name: string;
}

/** A config file. */
export interface ConfigFile {
  readonly path: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/**
 * Reads the config file that `--config` or `VMWRIGHT_CONFIG` names; undefined if neither is set.
 * @throws SettingsError
 */
export async function configFileOf(flags: Flags, environment: Environment): Promise<ConfigFile | undefined> {
  const path = givenBy(flags, environment, 'config')?.text ?? '';
  if (path === '') return undefined;
  const { readYamlFile } = await import('./yaml-file.ts'); // imported only if needed: most pods have no config file
  return { path, values: readYamlFile(path, 'settings such as "vm-refresh: 15s"') };
}

/** @throws SettingsError for a key of the file that is not a setting */
export function sourcesOf(flags: Flags, environment: Environment, config?: ConfigFile): Sources {
  const file = config === undefined ? new Map<Flag, Found>() : fileSettings(config);
  const find = (flag: Flag) => givenBy(flags, environment, flag) ?? file.get(flag);
  return {
    environment,
    text: (flag) => find(flag)?.text ?? defaultOf(flag),
    name: (flag) => find(flag)?.name ?? `--${flag}`,
    isGiven: (flag) => (find(flag)?.text ?? '') !== '',
  };
}

/**
 * Chooses between two flags with the same meaning: returns `alias` if it is set, otherwise `flag`.
 * @throws SettingsError if both are given with different values
 */
export function aliasOf({ text, name, isGiven }: Sources, flag: Flag, alias: Flag): Flag {
  if (!isGiven(alias)) return flag;
  if (isGiven(flag) && text(flag) !== text(alias))
    throw new SettingsError(
      `${name(flag)} is "${text(flag)}" and ${name(alias)} is "${text(alias)}", but they are the same setting; unset one of them`,
    );
  return alias;
}

/** Returns a setting of the command line or the environment; undefined if neither has it. */
function givenBy(flags: Flags, environment: Environment, flag: Flag): Found | undefined {
  const { variable = '' } = FLAGS[flag];
  const [ofFlag, ofVariable] = [flags[flag], environment[variable]];
  if (ofFlag !== undefined) return { text: ofFlag, name: `--${flag}` };
  return ofVariable === undefined || ofVariable === '' ? undefined : { text: ofVariable, name: variable };
}

function fileSettings({ path, values }: ConfigFile): ReadonlyMap<Flag, Found> {
  const found = new Map<Flag, Found>();
  for (const [key, value] of Object.entries(values)) {
    if (!isFlag(key) || key === 'config') throw new SettingsError(unknownKey(key, path));
    const name = `${key} in ${path}`;
    const text = textOf(name, value);
    if (text !== undefined) found.set(key, { text, name });
  }
  return found;
}

function unknownKey(key: string, path: string): string {
  const isSecret = VARIABLES.some(({ variable, isSecret: is }) => is && keyOf(variable) === keyOf(key));
  if (isSecret)
    return `${key} is a secret and must not be in ${path}; set the environment variable ${keyOf(key)} from a Secret`;
  const known = Object.keys(OPTIONS).filter((flag) => flag !== 'config');
  return `${key} in ${path} is not a setting${didYouMean(key, known)}; the names are those of the flags without the leading dashes`;
}

/** Returns a name in the spelling of environment variables, such as `VC_PASS` for `vc-pass`. */
function keyOf(name: string): string {
  return name.toUpperCase().replaceAll('-', '_');
}
