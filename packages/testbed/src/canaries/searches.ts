import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { credentialsIn } from './canary.ts';

/**
 * Environment variable with the folder for the results of all searches of the test run. Processes that a test starts
 * inherit the variable.
 */
const VARIABLE = 'VMWRIGHT_CANARY_SEARCHES';
const FILE = 'searches.jsonl';

/** Result of a search for credentials in a text or file that our programs wrote. */
interface Search {
  readonly source: string;
  readonly bytes: number;
  /** Names of the credentials that the text or file contains. */
  readonly found: readonly string[];
  /** Copy of the file, if it contains credentials. */
  readonly copy?: string;
}

/**
 * Searches for credentials during a test run. The results are in a folder that all processes of the run share. A search
 * takes a few milliseconds per megabyte and never fails a test. At the end of the run, `report` throws an error with
 * the names of all credentials that were found.
 */
export class CanarySearches {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Returns the searches of the current test run. Undefined outside of a test run: no output is searched for canaries
   * then.
   */
  static get current(): CanarySearches | undefined {
    const folder = process.env[VARIABLE];
    return folder === undefined ? undefined : new CanarySearches(folder);
  }

  /**
   * Begins the searches of a test run.
   * @param parent folder for the searches of all runs, which may run concurrently
   */
  static begin(parent: string): CanarySearches {
    mkdirSync(parent, { recursive: true });
    const folder = mkdtempSync(join(parent, 'run-'));
    process.env[VARIABLE] = folder;
    return new CanarySearches(folder);
  }

  /** Searches in a text, such as the arguments or the output of a command. */
  text(source: string, text: string): void {
    this.#add({ source, bytes: text.length, found: credentialsIn(text) });
  }

  /** Searches in a file, and keeps a copy if it contains a credential. Does nothing if the file does not exist. */
  file(source: string, path: string): void {
    if (!existsSync(path)) return;
    const found = credentialsIn(readFileSync(path));
    const search = { source, bytes: statSync(path).size, found };
    if (found.length === 0) {
      this.#add(search);
      return;
    }
    const name = `${source.replaceAll(/\W+/g, '-')}-${process.pid}-${performance.now()}.log`;
    const copy = join(this.#folder, name);
    copyFileSync(path, copy);
    this.#add({ ...search, copy });
  }

  /**
   * Ends the run. Returns a sentence with the number of searches, and removes the folder.
   * @throws Error with the sources and names of all credentials that were found; the folder with copies of the files is
   * then kept
   */
  report(): string {
    const path = join(this.#folder, FILE);
    const lines = existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : [];
    const searches: readonly Search[] = lines.map((line) => JSON.parse(line));
    const leaks = searches.filter(({ found }) => found.length > 0);
    if (leaks.length > 0) {
      const described = leaks.map(
        ({ source, found, copy }) => `${source} contains: ${found.join(', ')}${copy ? ` (see ${copy})` : ''}`,
      );
      throw new Error(
        `Credentials appeared where no credential may be:\n${[...new Set(described)].join('\n')}`,
      );
    }
    rmSync(this.#folder, { recursive: true, force: true });
    const megabytes = searches.reduce((sum, { bytes }) => sum + bytes, 0) / 1e6;
    return `Searched ${searches.length} logs, outputs and argument lists (${megabytes.toFixed(1)} MB) for credentials: none found.`;
  }

  #add(search: Search): void {
    appendFileSync(join(this.#folder, FILE), `${JSON.stringify(search)}\n`);
  }
}
