import { ResponseTooLargeError } from '../response-too-large.ts';
import type { TransportResponse } from '../world.ts';
import { ByteList } from './byte-list.ts';

/** Flow control of the connection that a response body is read from. */
interface Flow {
  readonly paused: boolean;
  pause(): void;
  resume(): void;
  /** Aborts the exchange, and closes the connection if nothing else uses it. */
  abort(reason: Error): void;
}

/** Number of unread bytes above which the connection is paused. */
const HIGH_WATER = 1 << 20;
/** Limit in bytes for requests without `maxBytes`. */
const DEFAULT_MAX_BYTES = 64 << 20;
/** Limit in bytes for error responses, even if `maxBytes` is larger: error messages quote only a part of them. */
const MAX_ERROR_BYTES = 1 << 20;

/** Body of one response. Its only reader reads either the whole text or the lines as they arrive. */
export class Body {
  readonly #flow: Flow;
  readonly #maxBytes: number;
  readonly #bytes = new ByteList();
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  /**
   * Whether the reader reads the whole text. Such a reader waits for the end of the body, so the flow must not pause.
   */
  #readsText = false;

  /** @param maxBytes limit for the whole text or, when read by lines, for one line */
  constructor(flow: Flow, status: number, maxBytes = DEFAULT_MAX_BYTES) {
    this.#flow = flow;
    this.#maxBytes = status >= 400 ? Math.min(maxBytes, MAX_ERROR_BYTES) : maxBytes;
  }

  /** Returns the response that the sender of the request gets. */
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
    if (!this.#readsText) {
      if (this.#bytes.size > HIGH_WATER) this.#flow.pause();
      this.#notify();
    } else if (this.#bytes.size > this.#maxBytes) this.#abortTooLarge();
  }

  end(): void {
    this.#ended = true;
    this.#notify();
  }

  /** Fails the body. Does nothing if it has already ended. */
  fail(error: Error): void {
    if (this.#ended) return;
    this.#error ??= error;
    this.#notify();
  }

  text(): Promise<string> {
    this.#readsText = true;
    return new Promise((resolve, reject) => {
      const settle = () => {
        if (this.#error !== undefined) reject(this.#error);
        else if (!this.#ended) this.#wake = settle;
        else
          try {
            resolve(this.#bytes.takeText());
          } catch (error) {
            reject(error); // the body exceeds the maximum length of a string
          }
      };
      if (this.#bytes.size > this.#maxBytes) this.#abortTooLarge();
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
            if (line.size > this.#maxBytes) throw this.#abortTooLarge('a line of the response');
            const text = line.takeText();
            if (text !== '') yield text;
          }
          if (start < chunk.length) line.push(chunk.subarray(start));
          if (line.size > this.#maxBytes) throw this.#abortTooLarge('a line of the response');
        }
      }
    } finally {
      if (!this.#ended && this.#error === undefined)
        this.#flow.abort(new Error('the reader stopped reading'));
    }
  }

  /** Aborts the exchange without reading the rest of the body, and returns the error. */
  #abortTooLarge(part?: string): Error {
    const error = new ResponseTooLargeError(this.#maxBytes, part);
    this.fail(error);
    this.#bytes.take();
    this.#flow.abort(error);
    return error;
  }

  /** Waits until there are unread bytes, and returns all of them. Returns undefined at the end of the body. */
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

/** Joins repeated headers into one list, as HTTP defines. The API server sends each warning as a separate header. */
function joined(value: string | number | readonly string[] | undefined): string | undefined {
  if (typeof value === 'object') return value.join(', ');
  return value?.toString();
}
