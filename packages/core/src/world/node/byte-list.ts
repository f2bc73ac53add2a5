/** Chunks up to this number are kept as they came; more are joined. */
const JOIN_AT = 1_024;

/**
 * Bytes in the order in which they arrived. A server may send one byte at a time, and a chunk costs a hundred bytes of
 * memory, so many small chunks are joined into one.
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

  /** Removes all bytes and returns them as text. @throws Error if a string cannot be that long */
  takeText(): string {
    const chunks = this.take();
    const [only] = chunks;
    if (only === undefined) return '';
    return (chunks.length === 1 ? only : Buffer.concat(chunks)).toString();
  }
}
