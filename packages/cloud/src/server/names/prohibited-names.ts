import { readFileSync, statSync } from 'node:fs';
import type { Logger } from '@vmwright/core';
import { messageOf } from '@vmwright/core';
import { StartError } from '../errors.ts';
import { parseRule, type Rule } from './rule.ts';

/** Interval at which the file is polled. File notifications are not used: they stop when the file is replaced. */
const POLL_INTERVAL_MS = 500;

/** Names that no server may have: a file with one rule per line, reloaded when it changes. */
export class ProhibitedNames implements Disposable {
  readonly #file: string | undefined;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout | undefined;
  /** Version of the file, taken before the file was read, so that the next poll notices a change during the read. */
  #version: string;
  #rules: readonly Rule[];

  /** @throws StartError if the file cannot be read or has an invalid rule */
  constructor(file: string | undefined, log: Logger) {
    this.#file = file;
    this.#log = log;
    this.#version = versionOf(file);
    this.#rules = file === undefined ? [] : readRules(file);
    if (file !== undefined) this.#timer = setInterval(() => this.#poll(), POLL_INTERVAL_MS).unref();
  }

  /** Returns the first rule that prohibits the name; undefined if the name is allowed. */
  match(name: string): Pick<Rule, 'reason'> | undefined {
    return this.#rules.find(({ pattern }) => pattern.test(name));
  }

  /**
   * Reloads the file. If it is invalid, the previous rules stay in effect, so that a typo does not permit every name.
   */
  reload(): void {
    if (this.#file === undefined) return;
    this.#version = versionOf(this.#file);
    try {
      this.#rules = readRules(this.#file);
      this.#log.info({ rules: this.#rules.length }, 'Reloaded prohibited names');
    } catch (error) {
      this.#log.error(
        { error: messageOf(error) },
        'Reloading prohibited names failed, keeping the previous rules',
      );
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #poll(): void {
    if (versionOf(this.#file) !== this.#version) this.reload();
  }
}

/** Returns a string that changes with the file's inode, size or modification time; empty if there is no file. */
function versionOf(file: string | undefined): string {
  try {
    if (file === undefined) return '';
    const { ino, size, mtimeMs } = statSync(file);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return '';
  }
}

function readRules(file: string): Rule[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new StartError('NAMES', `cannot read the prohibited names: ${messageOf(error)}`, {
      cause: error,
    });
  }
  return text.split('\n').flatMap((line, index) => {
    if (/^\s*(#|$)/.test(line)) return [];
    try {
      return [parseRule(line)];
    } catch (error) {
      throw new StartError('NAMES', `${file}:${index + 1}: ${messageOf(error)}`, { cause: error });
    }
  });
}
