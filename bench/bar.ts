/**
 * One measurement of `make bench`. Optional: the value of the comparator (`theirs`), and the limit that the measurement
 * must meet (`bar`).
 */
export interface Row {
  /** Name of the measurement, with its unit in parentheses at the end. */
  readonly name: string;
  readonly ours: number;
  readonly theirs?: number;
  /** Without a bar, the row is informational. */
  readonly bar?: Bar;
}

/**
 * Limit for the ratio `ours / theirs`. Without a comparator, or if `of` is `ours`, the limit applies to `ours` itself.
 */
export type Bar = ({ readonly atMost: number } | { readonly atLeast: number }) & { readonly of?: 'ours' };

/** A row, and whether it meets its bar. */
export interface Judged {
  readonly name: string;
  readonly ours: number;
  readonly theirs: number | null;
  readonly ratio: number | null;
  readonly bar: string | null;
  readonly holds: boolean | null;
}

export function judge({ name, ours, theirs, bar }: Row): Judged {
  const ratio = theirs === undefined ? null : ours / theirs;
  const measured = { name, ours, theirs: theirs ?? null, ratio };
  if (bar === undefined) return { ...measured, bar: null, holds: null };
  const value = bar.of === 'ours' ? ours : (ratio ?? ours);
  return 'atMost' in bar
    ? { ...measured, bar: `≤ ${bar.atMost}`, holds: value <= bar.atMost }
    : { ...measured, bar: `≥ ${bar.atLeast}`, holds: value >= bar.atLeast };
}

export const HEADER = ['name', 'ours', 'theirs', 'ratio', 'bar', ''] as const;

export function cells({ name, ours, theirs, ratio, bar, holds }: Judged): readonly string[] {
  const verdict = holds === null ? '' : holds ? 'holds' : 'missed';
  return [name, number(ours), number(theirs), number(ratio), bar ?? '-', verdict];
}

export function line(row: readonly string[]): string {
  const [name = '', ...rest] = row;
  return name.padEnd(58) + rest.map((cell) => cell.padStart(10)).join('');
}

function number(value: number | null): string {
  return value === null ? '-' : value >= 1000 ? value.toFixed(0) : value.toPrecision(3);
}
