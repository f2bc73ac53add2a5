import type { IncomingMessage } from 'node:http';
import { RequestError } from './answer.ts';

export interface ReadOptions {
  /** Maximum size of this body in bytes; a larger one is rejected with 413. */
  readonly maxBytes: number;
  /** Ends the read: the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The body of a request. It counts against the server's limit until it is disposed of. */
export interface Body extends Disposable {
  readonly text: string;
}

/** A body that is still arriving. */
interface Arriving {
  readonly size: number;
  /** Drops what has arrived, at once, and rejects the read. */
  fail(error: unknown): void;
}

/**
 * Reads request bodies and limits the memory that all of them hold together.
 *
 * Guarantees: `heldBytes` never exceeds the limit, however many clients send however much. When it would, the largest
 * body that is still arriving is rejected with 503: a client that sends a lot does not keep small requests out. A body
 * that has arrived completely is never dropped.
 */
export class RequestBodies {
  readonly #maxTotalBytes: number;
  readonly #arriving = new Set<Arriving>();
  #heldBytes = 0;

  /** @param maxTotalBytes of all bodies that are arriving or being worked on */
  constructor(maxTotalBytes: number) {
    this.#maxTotalBytes = maxTotalBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** @throws RequestError when it is too large, there is no memory for it, or it does not arrive completely */
  read(request: IncomingMessage, { maxBytes, signal }: ReadOptions): Promise<Body> {
    return new Promise((resolve, reject) => {
      const declared = Number(request.headers['content-length'] ?? 0);
      if (declared > maxBytes) return reject(tooLarge(maxBytes));
      if (signal?.aborted) return reject(signal.reason);
      let [chunks, size]: [Buffer[], number] = [[], 0];
      const release = () => {
        this.#heldBytes -= size;
        size = 0;
      };
      const stop = () => {
        this.#arriving.delete(body);
        signal?.removeEventListener('abort', onAbort);
        // Paused, not destroyed: destroying would end the connection before the answer is on it.
        request.off('data', onData).off('end', onEnd).off('close', onClose).pause();
      };
      const body: Arriving = {
        get size() {
          return size;
        },
        fail: (error) => {
          chunks = [];
          release();
          stop();
          reject(error);
        },
      };
      const onData = (chunk: Buffer) => {
        if (size + chunk.length > maxBytes) return body.fail(tooLarge(maxBytes));
        this.#makeRoom(chunk.length, body);
        if (!this.#arriving.has(body)) return;
        chunks.push(chunk);
        size += chunk.length;
        this.#heldBytes += chunk.length;
      };
      const onEnd = () => {
        stop();
        resolve({ text: Buffer.concat(chunks).toString(), [Symbol.dispose]: release });
      };
      const onAbort = () => body.fail(signal?.reason);
      const onClose = () => body.fail(new RequestError(400, 'the request did not arrive completely\n'));
      this.#arriving.add(body);
      signal?.addEventListener('abort', onAbort, { once: true });
      request.on('data', onData).on('end', onEnd).on('close', onClose);
      request.on('error', () => undefined); // `close` follows
    });
  }

  /** Drops the largest bodies that are arriving until there is room for this chunk of one of them. */
  #makeRoom(bytes: number, of: Arriving): void {
    while (this.#heldBytes + bytes > this.#maxTotalBytes && this.#arriving.size > 0) {
      const sizeOf = (body: Arriving) => body.size + (body === of ? bytes : 0);
      const [largest] = [...this.#arriving].sort((a, b) => sizeOf(b) - sizeOf(a));
      largest?.fail(new RequestError(503, 'the server holds too many large requests; try again\n'));
    }
  }
}

function tooLarge(maxBytes: number): RequestError {
  return new RequestError(413, `more than ${maxBytes} bytes are not taken here\n`);
}
