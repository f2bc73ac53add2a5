/** How a controller guards against creating twice and losing what it has created. */
export interface Variant {
  readonly name: string;
  /** Looks for a machine with the object's mark before it creates one. */
  readonly looksUp: boolean;
  /** Creates under a key that the object's UID fixes. */
  readonly token: boolean;
  /** Stores that it is about to create or change a machine, guarded by the resource version, before it does. */
  readonly intent: boolean;
  /** Removes machines whose object is gone. */
  readonly sweeps: 'never' | 'machines first' | 'objects first';
}

const NAIVE: Variant = {
  name: 'create-then-write',
  looksUp: false,
  token: false,
  intent: false,
  sweeps: 'never',
};

/** From naive to sound. */
export const VARIANTS: readonly Variant[] = [
  NAIVE,
  { ...NAIVE, name: 'look-up-first', looksUp: true },
  { ...NAIVE, name: 'token', token: true },
  { ...NAIVE, name: 'token-and-intent', token: true, intent: true },
  { ...NAIVE, name: 'sound', token: true, intent: true, sweeps: 'machines first' },
];

/** What looks sound and is not: the sweeper's two lists are in the wrong order. */
export const WRONG_ORDER: Variant = {
  ...NAIVE,
  name: 'sweeper-objects-first',
  token: true,
  intent: true,
  sweeps: 'objects first',
};

export function variantNamed(name: string): Variant {
  const found = [...VARIANTS, WRONG_ORDER].find((variant) => variant.name === name);
  if (found === undefined) throw new Error(`no variant is called ${name}`);
  return found;
}
