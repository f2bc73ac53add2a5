import { readFile } from 'node:fs/promises';
import { type Clock, type Logger, messageOf, wait } from '@vmwright/core';
import { AccessError } from '../access/access.ts';
import { certificatesIn } from '../pki/pem.ts';

/** PEM file with the CAs of client certificates. */
export class ClientCaFile {
  readonly #path: string;
  #text: string;

  private constructor(path: string, text: string) {
    this.#path = path;
    this.#text = text;
  }

  /** Reads the file. @throws AccessError if it cannot be read or contains no certificate */
  static async read(path: string): Promise<ClientCaFile> {
    return new ClientCaFile(path, await authoritiesIn(path));
  }

  /** Last valid content. */
  get text(): string {
    return this.#text;
  }

  /**
   * Polls the file and calls `onChange` with changed content. While it cannot be read, the last content stays in use.
   */
  async watch(
    clock: Pick<Clock, 'after'>,
    pollMs: number,
    onChange: (text: string) => void,
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
        onChange(text);
        logger.info({ file: this.#path }, 'Reloaded the client CA file of the webhooks');
      } catch (error) {
        const fields = { file: this.#path, error: messageOf(error) };
        logger.warn(fields, 'Reading the client CA file of the webhooks failed, keeping the last content');
      }
    }
  }
}

async function authoritiesIn(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new AccessError(`cannot read the client CA file of the webhooks: ${messageOf(error)}`, {
      cause: error,
    });
  });
  if (certificatesIn(text).length === 0)
    throw new AccessError(`the client CA file of the webhooks, ${path}, contains no PEM certificate`);
  return text;
}
