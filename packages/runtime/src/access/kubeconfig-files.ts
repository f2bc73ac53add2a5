import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { messageOf } from '@vmwright/core';
import { AccessError } from './access.ts';

/** A parsed YAML mapping that has not been validated. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * An entry of a kubeconfig list and the file that contains it; relative paths in the entry start at that file's
 * directory.
 */
export interface Entry {
  readonly fields: Fields;
  readonly path: string;
}

interface ConfigFile {
  readonly path: string;
  readonly config: Fields;
}

/** Several kubeconfig files merged like kubectl does: the first file that defines an entry wins. */
export class KubeconfigFiles {
  readonly #files: readonly ConfigFile[];

  private constructor(files: readonly ConfigFile[]) {
    this.#files = files;
  }

  /**
   * Loads one file or several.
   * @param path the only file to load.
   * @default the existing files that `$KUBECONFIG` lists; `~/.kube/config` if   `$KUBECONFIG` is not set
   */
  static async load(path: string | undefined, env: NodeJS.ProcessEnv): Promise<KubeconfigFiles> {
    const listed = (env.KUBECONFIG ?? '').split(delimiter).filter((each) => each !== '');
    const candidates =
      path !== undefined ? [path] : listed.length > 0 ? listed : [join(homedir(), '.kube', 'config')];
    const files = (await Promise.all(candidates.map(load))).filter((file) => file !== undefined);
    if (files.length === 0)
      throw new AccessError(`no kubeconfig at ${candidates.join(' or ')}; set KUBECONFIG to its path`);
    return new KubeconfigFiles(files);
  }

  /** Returns the name of the current context. @throws AccessError if no file sets it */
  currentContext(): string {
    for (const { config } of this.#files) {
      const name = nonEmptyString(config['current-context']);
      if (name !== undefined) return name;
    }
    throw new AccessError(
      `current-context is not set in ${this.#paths()}; choose one with \`kubectl config use-context\``,
    );
  }

  /**
   * Returns the content of the entry with this name, for example the value of `cluster` in `{name, cluster: {…}}`.
   * @throws AccessError if no file has the entry
   */
  entry(list: 'contexts' | 'clusters' | 'users', name: string): Entry {
    const singular = list.slice(0, -1);
    for (const { path, config } of this.#files) {
      const entries = Array.isArray(config[list]) ? config[list] : [];
      const found = fieldsOf(fieldsOf(entries.find((entry) => fieldsOf(entry)?.name === name))?.[singular]);
      if (found !== undefined) return { fields: found, path };
    }
    throw new AccessError(`${this.#paths()} has no ${singular} "${name}"`);
  }

  #paths(): string {
    return this.#files.map(({ path }) => path).join(' and ');
  }
}

export function fieldsOf(value: unknown): Fields | undefined {
  return isFields(value) ? value : undefined;
}

/** Returns the value if it is a non-empty string; undefined otherwise. */
export function nonEmptyString(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns undefined if the file does not exist. An unreadable file is an error: skipping it could select another
 * cluster.
 */
async function load(path: string): Promise<ConfigFile | undefined> {
  const content = await readFile(path, 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return undefined;
    throw new AccessError(`cannot read ${path}: ${messageOf(error)}`, { cause: error });
  });
  if (content === undefined) return undefined;
  const { parseDocument } = await import('yaml'); // loaded on demand: in-cluster access does not need YAML
  const document = parseDocument(content);
  const [error] = document.errors;
  // The parser's message is left out, because it quotes the line, which may contain a token.
  if (error !== undefined)
    throw new AccessError(`${path} is not valid YAML: error in line ${error.linePos?.[0].line ?? 1}`);
  const config = fieldsOf(document.toJS());
  if (config === undefined) throw new AccessError(`${path} is not a kubeconfig`);
  return { path, config };
}
