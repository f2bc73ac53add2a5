import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { messageOf } from '@vmwright/core';
import { AccessError } from './access.ts';

/** Something with fields, of which nothing is known yet. */
export type Fields = Readonly<Record<string, unknown>>;

/** An entry of one of a kubeconfig's lists, and the file that has it: paths in it are relative to that file. */
export interface Entry {
  readonly fields: Fields;
  readonly path: string;
}

interface ConfigFile {
  readonly path: string;
  readonly config: Fields;
}

/** Several kubeconfig files taken as one, as kubectl does: what an earlier one says goes before a later one. */
export class KubeconfigFiles {
  readonly #files: readonly ConfigFile[];

  private constructor(files: readonly ConfigFile[]) {
    this.#files = files;
  }

  /** @param path one file; without it those of `$KUBECONFIG`, as far as they exist, else `~/.kube/config` */
  static async load(path: string | undefined, env: NodeJS.ProcessEnv): Promise<KubeconfigFiles> {
    const listed = (env.KUBECONFIG ?? '').split(delimiter).filter((each) => each !== '');
    const candidates =
      path !== undefined ? [path] : listed.length > 0 ? listed : [join(homedir(), '.kube', 'config')];
    const files = (await Promise.all(candidates.map(load))).filter((file) => file !== undefined);
    if (files.length === 0)
      throw new AccessError(`no kubeconfig at ${candidates.join(' or ')}; set KUBECONFIG to the path of one`);
    return new KubeconfigFiles(files);
  }

  get currentContext(): string | undefined {
    for (const { config } of this.#files) {
      const name = nonEmptyString(config['current-context']);
      if (name !== undefined) return name;
    }
    return undefined;
  }

  /** The entry of this name: of `{name, cluster: {…}}` what is in `cluster`. */
  entry(list: 'contexts' | 'clusters' | 'users', name: string | undefined): Entry {
    const singular = list.slice(0, -1);
    const where = this.#files.map(({ path }) => path).join(' and ');
    if (name === undefined) {
      const advice = list === 'contexts' ? 'choose one with `kubectl config use-context`' : 'add it';
      throw new AccessError(
        `${where} names no ${singular}${list === 'contexts' ? '' : ' in the context'}; ${advice}`,
      );
    }
    for (const { path, config } of this.#files) {
      const entries = Array.isArray(config[list]) ? config[list] : [];
      const found = fieldsOf(fieldsOf(entries.find((entry) => fieldsOf(entry)?.name === name))?.[singular]);
      if (found !== undefined) return { fields: found, path };
    }
    throw new AccessError(`${where} has no ${singular} "${name}"`);
  }
}

export function fieldsOf(value: unknown): Fields | undefined {
  return isFields(value) ? value : undefined;
}

/** Text with something in it. */
export function nonEmptyString(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Undefined if there is no such file. One that cannot be read is an error: another cluster's would be used instead. */
async function load(path: string): Promise<ConfigFile | undefined> {
  const content = await readFile(path, 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return undefined;
    throw new AccessError(`cannot read ${path}: ${messageOf(error)}`, { cause: error });
  });
  if (content === undefined) return undefined;
  const { parseDocument } = await import('yaml'); // not loaded in a pod, which needs none
  const document = parseDocument(content);
  const [error] = document.errors;
  // The parser's own message shows the lines in question, which may hold a token.
  if (error !== undefined)
    throw new AccessError(`${path} is not valid YAML: see line ${error.linePos?.[0].line ?? 1}`);
  const config = fieldsOf(document.toJS());
  if (config === undefined) throw new AccessError(`${path} is not a kubeconfig`);
  return { path, config };
}
