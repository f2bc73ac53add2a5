import { readdir, readFile, rm, watch, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '@vmwright/core';
import { TestbedError } from '../errors.ts';
import { until } from '../process/until.ts';

export const VERBS = ['restart', 'stop'] as const;
export type Verb = (typeof VERBS)[number];

/**
 * Requests from other shells to a running `make up`. A request is a file `<verb>.<part>`. `make up` removes the file
 * when it has handled the request. If the request failed, `make up` first writes the error to `<verb>.<part>.failed`. A
 * Unix socket is not used, because its path is limited to 107 bytes.
 */
export class Requests {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Handles requests until the signal aborts. */
  async serve(handle: (verb: Verb, part: string) => Promise<void>, signal: AbortSignal): Promise<void> {
    const inFlight = new Set<string>();
    const handleAll = async () => {
      for (const name of await readdir(this.#folder).catch(() => [])) {
        const [verb, part = ''] = partsOf(name);
        if (verb === undefined || inFlight.has(name)) continue;
        inFlight.add(name);
        void this.#execute(name, () => handle(verb, part)).finally(() => {
          inFlight.delete(name);
          void handleAll(); // the same request may have been sent again while this one was in flight
        });
      }
    };
    try {
      for await (const _ of watch(this.#folder, { signal })) await handleAll();
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /**
   * Sends a request and waits until `make up` has handled it. Throws `PART_DIED` with the error if the request failed.
   */
  async send(verb: Verb, part: string, timeoutMs = 120_000): Promise<void> {
    const name = `${verb}.${part}`;
    const failed = join(this.#folder, `${name}.failed`);
    await rm(failed, { force: true });
    await writeFile(join(this.#folder, name), '');
    const done = async () => !(await readdir(this.#folder)).includes(name);
    await until(done, { what: `${verb} of ${part} is done`, timeoutMs });
    const reason = await readFile(failed, 'utf8').catch(() => undefined);
    await rm(failed, { force: true });
    if (reason !== undefined) throw new TestbedError('PART_DIED', reason);
  }

  async #execute(name: string, handle: () => Promise<void>): Promise<void> {
    const file = join(this.#folder, name);
    try {
      await handle();
    } catch (error) {
      await writeFile(`${file}.failed`, messageOf(error)).catch(() => undefined); // the folder may already be removed
    }
    await rm(file, { force: true });
  }
}

function partsOf(name: string): readonly [Verb | undefined, string] {
  const [first, part = '', ...rest] = name.split('.');
  return [rest.length === 0 ? VERBS.find((verb) => verb === first) : undefined, part];
}
