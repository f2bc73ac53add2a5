import type { Dispatcher } from 'undici';

/** Bytes that may wait for their reader before the server is asked to hold on. */
const HIGH_WATER = 1 << 20;

/**
 * The body of a response, fed by undici's parser. Less than a Node stream on purpose: no event emitters, no copies, one
 * reader.
 */
export class Body {
  readonly #controller: Dispatcher.DispatchController;
  #chunks: Buffer[] = [];
  #size = 0;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(controller: Dispatcher.DispatchController) {
    this.#controller = controller;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size > HIGH_WATER) this.#controller.pause();
    this.#tell();
  }

  end(): void {
    this.#ended = true;
    this.#tell();
  }

  fail(error: Error): void {
    this.#error = error;
    this.#tell();
  }

  async text(): Promise<string> {
    const all: Buffer[] = [];
    for (let chunks = await this.#next(); chunks !== undefined; chunks = await this.#next())
      all.push(...chunks);
    return all.length === 1 && all[0] !== undefined ? all[0].toString() : Buffer.concat(all).toString();
  }

  async *lines(): AsyncGenerator<string, void, undefined> {
    let rest: Buffer[] = [];
    try {
      for (let chunks = await this.#next(); chunks !== undefined; chunks = await this.#next()) {
        for (const chunk of chunks) {
          let start = 0;
          for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
            const last = chunk.subarray(start, end);
            const line = rest.length === 0 ? last : Buffer.concat([...rest, last]);
            rest = [];
            start = end + 1;
            if (line.length > 0) yield line.toString();
          }
          if (start < chunk.length) rest.push(chunk.subarray(start));
        }
      }
    } finally {
      if (!this.#ended && this.#error === undefined) this.#controller.abort(new Error('the reader has left'));
    }
  }

  /** What has come since the last time, as soon as there is something; undefined at the end. */
  async #next(): Promise<Buffer[] | undefined> {
    while (this.#chunks.length === 0) {
      if (this.#error !== undefined) throw this.#error;
      if (this.#ended) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#size = 0;
    if (this.#controller.paused) this.#controller.resume();
    return chunks;
  }

  #tell(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}

const NEWLINE = 0x0a;
