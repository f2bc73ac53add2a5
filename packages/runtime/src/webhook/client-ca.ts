import { readFile } from 'node:fs/promises';
import { type Clock, type Logger, messageOf, wait } from '@vmwright/core';
import { AccessError } from '../access/access.ts';
import { certificatesIn } from '../pki/pem.ts';

/** A file with the authorities that issue the certificates of clients. */
export class ClientCaFile {
  readonly #path: string;
  #text: string;

  private constructor(path: string, text: string) {
    this.#path = path;
    this.#text = text;
  }

  /** @throws AccessError when it cannot be read or holds no certificate */
  static async read(path: string): Promise<ClientCaFile> {
    return new ClientCaFile(path, await authoritiesIn(path));
  }

  /** As it was read last. */
  get text(): string {
    return this.#text;
  }

  /** Reads it again and again and calls back when it has changed; while it cannot be read, the last content counts. */
  async follow(
    clock: Pick<Clock, 'after'>,
    pollMs: number,
    changed: (text: string) => void,
    logger: Logger,
    signal: AbortSignal,
  ): Promise<void> {
    while (!signal.aborted) {
      await wait(clock, pollMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      try {
        const text = await authoritiesIn(this.#path);
        if (text === this.#text) continue;
        this.#text = text;
        changed(text);
        logger.info({ file: this.#path }, 'Reloaded the authorities of webhook clients');
      } catch (error) {
        const fields = { file: this.#path, error: messageOf(error) };
        logger.warn(fields, 'Reading the authorities of webhook clients failed, keeping the last ones');
      }
    }
  }
}

async function authoritiesIn(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new AccessError(`cannot read the authorities of webhook clients: ${messageOf(error)}`, {
      cause: error,
    });
  });
  if (certificatesIn(text).length === 0) throw new AccessError(`${path} holds no certificate (PEM)`);
  return text;
}
