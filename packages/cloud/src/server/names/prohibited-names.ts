import { readFileSync, statSync } from 'node:fs';
import { type Logger, messageOf } from '@vmwright/core';
import { StartError } from '../errors.ts';
import { type Rule, ruleIn } from './rule.ts';

/** Between two looks at the file. Looks and not notifications: these go blind when a file is replaced by another. */
const EVERY_MS = 500;

export interface Prohibition {
  readonly reason: string | undefined;
}

/** The names that no server may have: a file with a rule a line, looked at again when it changes. */
export class ProhibitedNames implements Disposable {
  readonly #file: string | undefined;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout | undefined;
  /** The file as it was before it was read: a change during the reading is seen with the next look. */
  #version: string;
  #rules: readonly Rule[];

  /** @throws StartError when the file makes no sense */
  constructor(file: string | undefined, log: Logger) {
    this.#file = file;
    this.#log = log;
    this.#version = versionOf(file);
    this.#rules = file === undefined ? [] : rulesIn(file);
    if (file !== undefined) this.#timer = setInterval(() => this.#look(), EVERY_MS).unref();
  }

  prohibition(name: string): Prohibition | undefined {
    return this.#rules.find(({ pattern }) => pattern.test(name));
  }

  /** A list that makes no sense any more leaves the last one in force: a slip of the pen must not open every name. */
  reload(): void {
    if (this.#file === undefined) return;
    this.#version = versionOf(this.#file);
    try {
      this.#rules = rulesIn(this.#file);
      this.#log.info({ rules: this.#rules.length }, 'the prohibited names were read again');
    } catch (error) {
      this.#log.error({ error: messageOf(error) }, 'the prohibited names stay as they were');
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    if (versionOf(this.#file) !== this.#version) this.reload();
  }
}

/** Another text for another content, as far as the system tells; empty where there is no file. */
function versionOf(file: string | undefined): string {
  try {
    if (file === undefined) return '';
    const { ino, size, mtimeMs } = statSync(file);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return '';
  }
}

function rulesIn(file: string): Rule[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new StartError('NAMES', `the prohibited names cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
  return text.split('\n').flatMap((line, at) => {
    if (/^\s*(#|$)/.test(line)) return [];
    try {
      return [ruleIn(line)];
    } catch (error) {
      throw new StartError('NAMES', `${file}:${at + 1}: ${messageOf(error)}`, { cause: error });
    }
  });
}
