/** One line of `make bench`: what was measured, on both sides where there are two, and the bar it is held to. */
export interface Row {
  /** Ends with the unit, in brackets. */
  readonly name: string;
  readonly ours: number;
  readonly theirs?: number;
  /** Without: told, and held to nothing. */
  readonly bar?: Bar;
}

/** At most or at least so much: of `ours / theirs` where there is a comparator, of `ours` itself where not or if said so. */
export type Bar = ({ readonly atMost: number } | { readonly atLeast: number }) & { readonly of?: 'ours' };

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
  const verdict = holds === null ? '' : holds ? 'holds' : 'short';
  return [name, number(ours), number(theirs), number(ratio), bar ?? '-', verdict];
}

export function line(row: readonly string[]): string {
  const [name = '', ...rest] = row;
  return name.padEnd(58) + rest.map((cell) => cell.padStart(10)).join('');
}

function number(value: number | null): string {
  return value === null ? '-' : value >= 1000 ? value.toFixed(0) : value.toPrecision(3);
}
