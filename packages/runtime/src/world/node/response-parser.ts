/** Told of a response as it is read. */
export interface ResponseReader {
  /** @param head the status line and the headers, without the empty line */
  onHead(status: number, head: string): void;
  /** A piece of the body: valid during the call alone, the memory is used again. */
  onBody(bytes: Buffer): void;
  /** The response is whole. @param reusable whether the connection can take another request */
  onEnd(reusable: boolean): void;
}

type State = 'head' | 'length' | 'chunk size' | 'chunk' | 'chunk end' | 'trailer' | 'until close';

const CRLF = Buffer.from('\r\n');
const END_OF_HEAD = Buffer.from('\r\n\r\n');
/** More than any server of ours sends; what is longer is no HTTP. */
const LONGEST_HEAD = 64 * 1024;

/**
 * Reads HTTP/1.1 responses from the pieces in which they arrive, however they are cut, one after another.
 * @throws Error from `read` for what is no HTTP; the connection is then of no use any more
 */
export class ResponseParser {
  readonly #reader: ResponseReader;
  #state: State = 'head';
  /** Of a line or a head that is not whole yet. */
  #rest: Buffer = Buffer.alloc(0);
  /** Of the body or of the chunk, still to come. */
  #left = 0;
  #reusable = true;

  constructor(reader: ResponseReader) {
    this.#reader = reader;
  }

  read(piece: Buffer): void {
    let bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    this.#rest = EMPTY;
    while (bytes.length > 0) {
      const used = this.#step(bytes);
      if (used === 0) {
        if (bytes.length > LONGEST_HEAD) throw new Error('the answer is no HTTP: a line without an end');
        this.#rest = Buffer.from(bytes); // a copy: the memory is used again
        return;
      }
      bytes = bytes.subarray(used);
    }
  }

  /** The other side has closed. @returns whether that is the end of the response, and not its breaking off */
  close(): boolean {
    if (this.#state !== 'until close') return false;
    this.#end();
    return true;
  }

  /** @returns how many bytes it has used; 0 when it needs more */
  #step(bytes: Buffer): number {
    switch (this.#state) {
      case 'head': {
        const end = bytes.indexOf(END_OF_HEAD);
        if (end === -1) return 0;
        this.#begin(bytes.toString('latin1', 0, end));
        return end + END_OF_HEAD.length;
      }
      case 'length':
      case 'chunk': {
        const used = Math.min(bytes.length, this.#left);
        this.#reader.onBody(used === bytes.length ? bytes : bytes.subarray(0, used));
        this.#left -= used;
        if (this.#left === 0) {
          if (this.#state === 'chunk') this.#state = 'chunk end';
          else this.#end();
        }
        return used;
      }
      case 'until close':
        this.#reader.onBody(bytes);
        return bytes.length;
      default: {
        const end = bytes.indexOf(CRLF);
        if (end === -1) return 0;
        this.#line(bytes.toString('latin1', 0, end));
        return end + CRLF.length;
      }
    }
  }

  #begin(head: string): void {
    const match = /^HTTP\/1\.([01]) (\d{3})(?: |\r|$)/.exec(head);
    if (match === null) throw new Error('the answer is no HTTP');
    const status = Number(match[2]);
    if (status >= 100 && status < 200) return; // an interim answer: the real one follows
    const connection = headerIn(head, 'connection')?.toLowerCase();
    this.#reusable = match[1] === '1' ? connection !== 'close' : connection === 'keep-alive';
    this.#reader.onHead(status, head);
    const length = headerIn(head, 'content-length');
    if (status === 204 || status === 304) this.#end();
    else if (headerIn(head, 'transfer-encoding')?.toLowerCase() === 'chunked') this.#state = 'chunk size';
    else if (length === undefined) {
      this.#state = 'until close';
      this.#reusable = false;
    } else {
      if (!/^\d+$/.test(length)) throw new Error(`the answer's length is no number: ${length}`);
      this.#left = Number(length);
      if (this.#left === 0) this.#end();
      else this.#state = 'length';
    }
  }

  #line(line: string): void {
    switch (this.#state) {
      case 'chunk size': {
        const size = /^[0-9a-fA-F]+/.exec(line)?.[0];
        if (size === undefined) throw new Error('a part of the answer has no size');
        this.#left = Number.parseInt(size, 16);
        this.#state = this.#left === 0 ? 'trailer' : 'chunk';
        break;
      }
      case 'chunk end':
        if (line !== '') throw new Error('a part of the answer is longer than it says');
        this.#state = 'chunk size';
        break;
      default:
        if (line === '') this.#end(); // trailers are passed over
    }
  }

  #end(): void {
    this.#state = 'head';
    this.#reader.onEnd(this.#reusable);
  }
}

const EMPTY = Buffer.alloc(0);

/** The value of a header; of several, the first. @param name in small letters */
export function headerIn(head: string, name: string): string | undefined {
  for (let at = head.indexOf('\r\n'); at !== -1; at = head.indexOf('\r\n', at + 2)) {
    const start = at + 2;
    const colon = start + name.length;
    if (head.charCodeAt(colon) !== COLON) continue;
    if (head.slice(start, colon).toLowerCase() !== name) continue;
    const end = head.indexOf('\r\n', colon);
    return head.slice(colon + 1, end === -1 ? head.length : end).trim();
  }
  return undefined;
}

const COLON = 0x3a;
