/** Number of chunks at which they are joined into one. */
const JOIN_AT = 1_024;

/**
 * Bytes in order of arrival. Small chunks are joined, because each chunk costs about 100 bytes of memory, and a server
 * may send one byte at a time.
 */
export class ByteList {
  #joined: Buffer[] = [];
  #recent: Buffer[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(chunk: Buffer): void {
    this.#recent.push(chunk);
    this.#size += chunk.length;
    if (this.#recent.length < JOIN_AT) return;
    this.#joined.push(Buffer.concat(this.#recent));
    this.#recent = [];
  }

  /** Removes all chunks and returns them. */
  take(): Buffer[] {
    const all = this.#joined.length === 0 ? this.#recent : [...this.#joined, ...this.#recent];
    this.#joined = [];
    this.#recent = [];
    this.#size = 0;
    return all;
  }

  /** Removes all bytes and returns them as text. @throws Error if they exceed the maximum length of a string */
  takeText(): string {
    const chunks = this.take();
    const [only] = chunks;
    if (only === undefined) return '';
    return (chunks.length === 1 ? only : Buffer.concat(chunks)).toString();
  }
}
