import type { Writable } from 'node:stream';

const QUIET_MS = 15_000;

/**
 * One line a piece of work, with the time it has taken: rewritten in place on a terminal, repeated now and then in a
 * log, so that a build of minutes never looks like a hang.
 */
export class ProgressLine implements Disposable {
  readonly #out: Writable;
  readonly #live: boolean;
  readonly #started = performance.now();
  readonly #timer: NodeJS.Timeout;
  readonly #what: string;
  #detail = '';

  constructor(what: string, out: Writable & { isTTY?: boolean } = process.stderr) {
    this.#what = what;
    this.#out = out;
    this.#live = out.isTTY === true;
    this.#print();
    this.#timer = setInterval(() => this.#print(), this.#live ? 500 : QUIET_MS);
  }

  set detail(detail: string) {
    this.#detail = detail;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#print();
    if (this.#live) this.#out.write('\n');
  }

  #print(): void {
    const parts = [this.#what, this.#detail, elapsed(performance.now() - this.#started)];
    const line = parts.filter((part) => part !== '').join(' · ');
    this.#out.write(this.#live ? `\r\x1b[K${line}` : `${line}\n`);
  }
}

export function elapsed(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
