import type { TransportResponse } from '../world.ts';

/** The connection, as far as its reader steers it. */
interface Flow {
  readonly paused: boolean;
  pause(): void;
  resume(): void;
  abort(reason: Error): void;
}

/** Bytes that may wait for their reader before the server is asked to hold on. */
const HIGH_WATER = 1 << 20;

/**
 * The body of a response, fed by the parser. Less than a Node stream on purpose: no event emitters, no copies, one
 * reader.
 */
export class Body {
  readonly #flow: Flow;
  #chunks: Buffer[] = [];
  #size = 0;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  /** It is wanted at its end, not piece by piece. */
  #isWhole = false;

  constructor(flow: Flow) {
    this.#flow = flow;
  }

  /** As the one who sent the request sees it. */
  response(
    status: number,
    headers: Readonly<Record<string, string | number | string[] | undefined>>,
  ): TransportResponse {
    return {
      status,
      header: (name) => [headers[name]].flat()[0]?.toString(),
      text: () => this.text(),
      lines: () => this.lines(),
    };
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size > HIGH_WATER && !this.#isWhole) this.#flow.pause();
    this.#tell();
  }

  end(): void {
    this.#ended = true;
    this.#tell();
  }

  /** Does nothing to one that has ended. */
  fail(error: Error): void {
    if (this.#ended) return;
    this.#error = error;
    this.#tell();
  }

  text(): Promise<string> {
    this.#isWhole = true;
    if (this.#flow.paused) this.#flow.resume();
    return new Promise((resolve, reject) => {
      const settle = () => {
        if (this.#error !== undefined) reject(this.#error);
        else if (!this.#ended) this.#wake = settle;
        else
          try {
            resolve(this.#all());
          } catch (error) {
            reject(error); // it is longer than a string can be
          }
      };
      settle();
    });
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
      if (!this.#ended && this.#error === undefined) this.#flow.abort(new Error('the reader has left'));
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
    if (this.#flow.paused) this.#flow.resume();
    return chunks;
  }

  #all(): string {
    const [only, ...more] = this.#chunks;
    if (only === undefined) return '';
    return (more.length === 0 ? only : Buffer.concat(this.#chunks)).toString();
  }

  #tell(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

const NEWLINE = 0x0a;
