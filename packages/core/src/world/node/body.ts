import { ResponseTooLargeError } from '../response-too-large.ts';
import type { TransportResponse } from '../world.ts';
import { ByteList } from './byte-list.ts';

/** The connection, as far as the reader of its body controls it. */
interface Flow {
  readonly paused: boolean;
  pause(): void;
  resume(): void;
  /** Ends the exchange and, where nothing else uses it, the connection. */
  abort(reason: Error): void;
}

/** Bytes that may wait for their reader before the server is asked to pause. */
const HIGH_WATER = 1 << 20;
/** Limit of requests that set none. */
const DEFAULT_MAX_BYTES = 64 << 20;
/** Limit of answers that report an error, whatever the request allows: they are quoted and not processed. */
const MAX_ERROR_BYTES = 1 << 20;

/** The body of one response. It has one reader, which wants either the whole text or lines as they come. */
export class Body {
  readonly #flow: Flow;
  readonly #maxBytes: number;
  readonly #bytes = new ByteList();
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  /** The reader wants the whole text: waiting for it must not pause the connection. */
  #isWhole = false;

  /** @param maxBytes limit of the whole text, or of one line */
  constructor(flow: Flow, status: number, maxBytes = DEFAULT_MAX_BYTES) {
    this.#flow = flow;
    this.#maxBytes = status >= 400 ? Math.min(maxBytes, MAX_ERROR_BYTES) : maxBytes;
  }

  /** As the sender of the request sees it. */
  response(
    status: number,
    headers: Readonly<Record<string, string | number | string[] | undefined>>,
  ): TransportResponse {
    return {
      status,
      header: (name) => joined(headers[name]),
      text: () => this.text(),
      lines: () => this.lines(),
    };
  }

  push(chunk: Buffer): void {
    if (this.#error !== undefined) return;
    this.#bytes.push(chunk);
    if (!this.#isWhole) {
      if (this.#bytes.size > HIGH_WATER) this.#flow.pause();
      this.#notify();
    } else if (this.#bytes.size > this.#maxBytes) this.#refuse();
  }

  end(): void {
    this.#ended = true;
    this.#notify();
  }

  /** Does nothing to a body that has ended. */
  fail(error: Error): void {
    if (this.#ended) return;
    this.#error ??= error;
    this.#notify();
  }

  text(): Promise<string> {
    this.#isWhole = true;
    return new Promise((resolve, reject) => {
      const settle = () => {
        if (this.#error !== undefined) reject(this.#error);
        else if (!this.#ended) this.#wake = settle;
        else
          try {
            resolve(this.#bytes.takeText());
          } catch (error) {
            reject(error); // longer than a string can be
          }
      };
      if (this.#bytes.size > this.#maxBytes) this.#refuse();
      else if (this.#flow.paused) this.#flow.resume();
      settle();
    });
  }

  async *lines(): AsyncGenerator<string, void, undefined> {
    const line = new ByteList();
    try {
      for (let chunks = await this.#next(); chunks !== undefined; chunks = await this.#next()) {
        for (const chunk of chunks) {
          let start = 0;
          for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
            line.push(chunk.subarray(start, end));
            start = end + 1;
            if (line.size > this.#maxBytes) throw this.#refuse('a line of the answer');
            const text = line.takeText();
            if (text !== '') yield text;
          }
          if (start < chunk.length) line.push(chunk.subarray(start));
          if (line.size > this.#maxBytes) throw this.#refuse('a line of the answer');
        }
      }
    } finally {
      if (!this.#ended && this.#error === undefined) this.#flow.abort(new Error('the reader has left'));
    }
  }

  /** Ends the exchange: what is still to come is not read, however much it is. */
  #refuse(what?: string): Error {
    const error = new ResponseTooLargeError(this.#maxBytes, what);
    this.fail(error);
    this.#bytes.take();
    this.#flow.abort(error);
    return error;
  }

  /** The bytes since the last call, as soon as there are some; undefined at the end. */
  async #next(): Promise<Buffer[] | undefined> {
    while (this.#bytes.size === 0) {
      if (this.#error !== undefined) throw this.#error;
      if (this.#ended) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const chunks = this.#bytes.take();
    if (this.#flow.paused) this.#flow.resume();
    return chunks;
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

const NEWLINE = 0x0a;

/** Several values are one list to HTTP: the API server sends each of its warnings as a header of its own. */
function joined(value: string | number | readonly string[] | undefined): string | undefined {
  if (typeof value === 'object') return value.join(', ');
  return value?.toString();
}
