import { duration, grouped } from './numbers.ts';
import type { Progress } from './seeds.ts';

const BAR = 24;
/**
 * Intervals between updates: `TERMINAL_MS` on a terminal, where each update overwrites the line, and `FILE_MS` in a
 * file.
 */
const TERMINAL_MS = 100;
const FILE_MS = 10_000;

interface Output {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Reports progress. On a terminal, one line is overwritten. Otherwise, a new line is printed from time to time. */
export class ProgressLine {
  readonly #output: Output;
  readonly #now: () => number;
  #reportedAt: number;

  constructor(output: Output, now: () => number = () => performance.now()) {
    this.#output = output;
    this.#now = now;
    this.#reportedAt = now();
  }

  update(scenario: string, progress: Progress): void {
    const now = this.#now();
    if (now - this.#reportedAt < (this.#output.isTTY ? TERMINAL_MS : FILE_MS)) return;
    this.#reportedAt = now;
    const line = lineOf(scenario, progress);
    this.#output.write(this.#output.isTTY ? `\r\x1b[K${line}` : `${line}\n`);
  }

  /** Clears the line before other output. */
  clear(): void {
    if (this.#output.isTTY) this.#output.write('\r\x1b[K');
  }
}

export function lineOf(scenario: string, { seeds, violating, elapsedMs, part }: Progress): string {
  const full = Math.floor(part * BAR);
  const left = part > 0 ? duration(elapsedMs / part - elapsedMs) : '?';
  return [
    `${scenario} [${'█'.repeat(full)}${'░'.repeat(BAR - full)}] ${Math.floor(part * 100)} %`,
    `${grouped(seeds)} seeds`,
    `${grouped((seeds / elapsedMs) * 1_000)}/s`,
    `${grouped(violating)} violating`,
    `${left} left`,
  ].join(' · ');
}
