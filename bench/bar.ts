/** One line of `make bench`: what was measured, on both sides where there are two, and the bar it is held to. */
export interface Row {
  readonly name: string;
  /** In the unit that the name ends with. */
  readonly ours: number;
  readonly theirs?: number;
  readonly bar: Bar;
}

/** At most or at least so much: of `ours` itself, or of `ours / theirs` where there is a comparator. */
export type Bar = { readonly atMost: number } | { readonly atLeast: number };

export interface Judged {
  readonly name: string;
  readonly ours: number;
  readonly theirs: number | null;
  readonly ratio: number | null;
  readonly bar: string;
  readonly holds: boolean;
}

export function judge({ name, ours, theirs, bar }: Row): Judged {
  const ratio = theirs === undefined ? null : ours / theirs;
  const value = ratio ?? ours;
  const [holds, text] =
    'atMost' in bar ? [value <= bar.atMost, `≤ ${bar.atMost}`] : [value >= bar.atLeast, `≥ ${bar.atLeast}`];
  return { name, ours, theirs: theirs ?? null, ratio, bar: text, holds };
}

export function line({ name, ours, theirs, ratio, bar, holds }: Judged): string {
  const number = (value: number | null) => (value === null ? '-' : value.toPrecision(4)).padStart(10);
  return `${name.padEnd(40)}${number(ours)}${number(theirs)}${number(ratio)}${bar.padStart(10)}  ${holds ? 'holds' : 'short'}`;
}
