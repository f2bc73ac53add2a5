import type { IncomingMessage } from 'node:http';
import { RequestError } from './http-response.ts';

export interface ReadOptions {
  /** Maximum size of this body in bytes; a larger one is rejected with 413. */
  readonly maxBytes: number;
  /** Aborts the read: the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Body of a request. It counts against the server's limit until it is disposed. */
export interface Body extends Disposable {
  readonly text: string;
}

/** Body that is still being received. */
interface IncomingBody {
  readonly size: number;
  /** Drops the received bytes immediately and rejects the read. */
  fail(error: unknown): void;
}

/**
 * Reads request bodies and limits their total memory.
 *
 * Guarantees: `heldBytes` never exceeds the limit. Instead of exceeding it, the server rejects the largest body that is
 * still being received, with 503. So large requests do not block small ones. A completely received body is never
 * dropped.
 */
export class RequestBodies {
  readonly #maxTotalBytes: number;
  readonly #incoming = new Set<IncomingBody>();
  #heldBytes = 0;

  /** @param maxTotalBytes maximum total size of all bodies that are being received or processed */
  constructor(maxTotalBytes: number) {
    this.#maxTotalBytes = maxTotalBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Reads the body of a request. @throws RequestError if it is too large, exceeds the total limit, or is incomplete */
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
        this.#incoming.delete(body);
        signal?.removeEventListener('abort', onAbort);
        // Pause the request instead of destroying it: destroying would close the connection before the response is
        // sent.
        request.off('data', onData).off('end', onEnd).off('close', onClose).pause();
      };
      const body: IncomingBody = {
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
        if (!this.#incoming.has(body)) return;
        chunks.push(chunk);
        size += chunk.length;
        this.#heldBytes += chunk.length;
      };
      const onEnd = () => {
        stop();
        resolve({ text: Buffer.concat(chunks).toString(), [Symbol.dispose]: release });
      };
      const onAbort = () => body.fail(signal?.reason);
      const onClose = () => body.fail(new RequestError(400, 'the request body is incomplete\n'));
      this.#incoming.add(body);
      signal?.addEventListener('abort', onAbort, { once: true });
      request.on('data', onData).on('end', onEnd).on('close', onClose);
      request.on('error', () => undefined); // a `close` event follows, which rejects the read
    });
  }

  /**
   * Drops the largest incoming bodies until a chunk of `bytes` bytes fits.
   * @param receiver body that the chunk belongs to
   */
  #makeRoom(bytes: number, receiver: IncomingBody): void {
    while (this.#heldBytes + bytes > this.#maxTotalBytes && this.#incoming.size > 0) {
      const sizeOf = (body: IncomingBody) => body.size + (body === receiver ? bytes : 0);
      const [largest] = [...this.#incoming].sort((a, b) => sizeOf(b) - sizeOf(a));
      largest?.fail(new RequestError(503, 'too many large requests at the same time; try again\n'));
    }
  }
}

function tooLarge(maxBytes: number): RequestError {
  return new RequestError(413, `the request body exceeds ${maxBytes} bytes\n`);
}
