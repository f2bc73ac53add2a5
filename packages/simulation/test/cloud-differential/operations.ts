import type { Choices } from '@vmwright/simulation';

/** Index of a server that the sequence has seen, counted from the newest; `none` for a server that never existed. */
export type Which = number | 'none';

export type Labelling = Readonly<Record<string, string | null>>;

export type Operation =
  | { readonly do: 'check'; readonly name: Name }
  | {
      readonly do: 'create';
      readonly name: Name;
      readonly labels: Readonly<Record<string, string>>;
      readonly key: string | undefined;
    }
  | { readonly do: 'get' | 'status' | 'delete'; readonly which: Which }
  | { readonly do: 'relabel'; readonly which: Which; readonly labels: Labelling }
  | {
      readonly do: 'list';
      readonly name: Name | undefined;
      readonly labels: Readonly<Record<string, string | undefined>>;
      readonly limit: number | undefined;
    }
  | { readonly do: 'wrongKey' };

/**
 * Name of a server. `own` gets the prefix of the sequence. `fixed` is prohibited or invalid, so that no server can have
 * it.
 */
export type Name = { readonly own: string } | { readonly fixed: string };

/** Lines of the cloud's file of prohibited names: a name and an optional reason. */
export const PROHIBITED = ['forbidden it is the name of a river', 'Banned'] as const;

const NAMES: readonly [Name, ...Name[]] = [
  { own: 'a' },
  { own: 'b' },
  { own: 'A' },
  { own: 'a' },
  { own: 'b' },
  { own: 'a._-' },
  { fixed: 'forbidden' },
  { fixed: 'FORBIDDEN' },
  { fixed: 'banned' },
  { fixed: 'no name' },
  { fixed: 'ñ' },
  { fixed: 'x'.repeat(64) },
  { fixed: 'y'.repeat(120) },
];

const KEYS = [undefined, 'k1', 'k2', 'k1', 'k3', 'not a key', 'k'.repeat(256)] as const;

const MANY = Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`many${at}`, 'x']));
const FEW = Object.fromEntries(Object.entries(MANY).slice(0, 40));
const OTHERS = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`other${at}`, 'x']));

const LABELS: readonly [Readonly<Record<string, string>>, ...Readonly<Record<string, string>>[]] = [
  {},
  { tier: 'gold' },
  { tier: 'silver', 'example.com/zone': '1' },
  { 'example.com/zone': '1', tier: 'silver' },
  { empty: '', words: 'naïve = ☃' },
  FEW,
  MANY,
  { '-x': '1' },
  { tier: 'two\nlines' },
  { tier: 'x'.repeat(256) },
];

const CHANGES: readonly [Labelling, ...Labelling[]] = [
  {},
  { tier: 'bronze' },
  { tier: null },
  { tier: null, fresh: 'yes', empty: null },
  { 'never-was': null },
  { 'example.com/zone': '2', words: '' },
  OTHERS,
  MANY,
  { 'x-': null },
  { tier: '\u0007' },
];

const SELECTORS: readonly [
  Readonly<Record<string, string | undefined>>,
  ...Readonly<Record<string, string | undefined>>[],
] = [
  {},
  { tier: 'gold' },
  { tier: undefined },
  { tier: 'silver', 'example.com/zone': undefined },
  { empty: '' },
  { words: 'naïve = ☃' },
  { unused: 'x' },
  { '-x': '1' },
];

/** Draws a sequence of operations. */
export function sequence(choices: Choices): readonly Operation[] {
  return Array.from({ length: 8 + choices.pick(20) }, () => drawn(choices));
}

function drawn(choices: Choices): Operation {
  const which = (): Which => (choices.oneIn(10) ? 'none' : choices.pick(3));
  const create = (): Operation => ({
    do: 'create',
    name: choices.one(NAMES),
    labels: choices.one(LABELS),
    key: choices.one(KEYS),
  });
  return choices.one<() => Operation>([
    create,
    create,
    // Often repeats an earlier create exactly, like a client that got no response.
    () => ({ do: 'create', name: { own: 'a' }, labels: { tier: 'gold' }, key: 'k1' }),
    () => ({ do: 'create', name: { own: 'b' }, labels: {}, key: choices.one(['k2', undefined] as const) }),
    () => ({ do: 'check', name: choices.one(NAMES) }),
    () => ({ do: 'get', which: which() }),
    () => ({ do: 'status', which: which() }),
    () => ({ do: 'delete', which: which() }),
    () => ({ do: 'relabel', which: which(), labels: choices.one(CHANGES) }),
    () => ({
      do: 'list',
      name: choices.oneIn(3) ? choices.one(NAMES) : undefined,
      labels: choices.one(SELECTORS),
      limit: choices.one([undefined, 1, 2, 1_000, 0, 1_001] as const),
    }),
    () => (choices.oneIn(4) ? { do: 'wrongKey' } : { do: 'delete', which: 0 }),
  ])();
}
