import { readdir, readFile, rm, watch, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '@vmwright/core';
import { TestbedError } from '../errors.ts';
import { until } from '../process/until.ts';

export const VERBS = ['restart', 'stop'] as const;
export type Verb = (typeof VERBS)[number];

/**
 * Requests to a running `make up` from other shells: a file `<verb>.<part>` in a folder, removed when it is done, with
 * `<verb>.<part>.failed` beside it when it could not be. Files, since a socket's path may have no more than 107 bytes.
 */
export class Requests {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Carries out requests until the signal. */
  async serve(handle: (verb: Verb, part: string) => Promise<void>, signal: AbortSignal): Promise<void> {
    const underWay = new Set<string>();
    const take = async () => {
      for (const name of await readdir(this.#folder).catch(() => [])) {
        const [verb, part = ''] = partsOf(name);
        if (verb === undefined || underWay.has(name)) continue;
        underWay.add(name);
        void this.#carryOut(name, () => handle(verb, part)).finally(() => {
          underWay.delete(name);
          void take(); // the same request may have come again before this one was off the list
        });
      }
    };
    try {
      for await (const _ of watch(this.#folder, { signal })) await take();
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Asks the `make up` that serves this folder, and waits until it has done it. */
  async send(verb: Verb, part: string, timeoutMs = 120_000): Promise<void> {
    const name = `${verb}.${part}`;
    const failed = join(this.#folder, `${name}.failed`);
    await rm(failed, { force: true });
    await writeFile(join(this.#folder, name), '');
    const done = async () => !(await readdir(this.#folder)).includes(name);
    await until(done, { what: `${verb} of ${part}`, timeoutMs });
    const reason = await readFile(failed, 'utf8').catch(() => undefined);
    await rm(failed, { force: true });
    if (reason !== undefined) throw new TestbedError('PART_DIED', reason);
  }

  async #carryOut(name: string, handle: () => Promise<void>): Promise<void> {
    const file = join(this.#folder, name);
    try {
      await handle();
    } catch (error) {
      await writeFile(`${file}.failed`, messageOf(error)).catch(() => undefined); // `make up` may end at this moment
    }
    await rm(file, { force: true });
  }
}

function partsOf(name: string): readonly [Verb | undefined, string] {
  const [first, part = '', ...rest] = name.split('.');
  return [rest.length === 0 ? VERBS.find((verb) => verb === first) : undefined, part];
}
