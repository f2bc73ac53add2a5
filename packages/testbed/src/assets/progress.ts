import type { Writable } from 'node:stream';

const LOG_INTERVAL_MS = 15_000;

/**
 * Progress line with the elapsed time of a task. On a terminal, it is rewritten in place. In a log, it is repeated
 * every 15 s, so that a long build does not look like a hang.
 */
export class ProgressLine implements Disposable {
  readonly #out: Writable;
  readonly #isTerminal: boolean;
  readonly #started = performance.now();
  readonly #timer: NodeJS.Timeout;
  readonly #what: string;
  #detail = '';

  constructor(what: string, out: Writable & { isTTY?: boolean } = process.stderr) {
    this.#what = what;
    this.#out = out;
    this.#isTerminal = out.isTTY === true;
    this.#print();
    this.#timer = setInterval(() => this.#print(), this.#isTerminal ? 500 : LOG_INTERVAL_MS);
  }

  set detail(detail: string) {
    this.#detail = detail;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#print();
    if (this.#isTerminal) this.#out.write('\n');
  }

  #print(): void {
    const parts = [this.#what, this.#detail, elapsed(performance.now() - this.#started)];
    const line = parts.filter((part) => part !== '').join(' · ');
    this.#out.write(this.#isTerminal ? `\r\x1b[K${line}` : `${line}\n`);
  }
}

export function elapsed(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
