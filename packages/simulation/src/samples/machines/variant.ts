/** Safeguards of a controller against duplicate and leaked machines. */
export interface Variant {
  readonly name: string;
  /** Whether the controller looks up a machine by its ownership label before it creates one. */
  readonly looksUp: boolean;
  /** Whether create requests have an idempotency key that is derived from the object's UID. */
  readonly token: boolean;
  /**
   * Whether the controller stores its intent in the status before it creates or changes a machine. This write has a
   * resourceVersion precondition.
   */
  readonly intent: boolean;
  /**
   * Garbage collection of machines without an object:
   * - `never`: none.
   * - `machines first`: lists the machines before the objects. Safe, because an object exists before its
   *   machine.
   * - `objects first`: lists the objects before the machines. Unsafe, because an object and its machine may
   *   be created between the two lists.
   */
  readonly garbageCollection: 'never' | 'machines first' | 'objects first';
}

const NAIVE: Variant = {
  name: 'create-then-write',
  looksUp: false,
  token: false,
  intent: false,
  garbageCollection: 'never',
};

/** Variants from naive to correct. */
export const VARIANTS: readonly Variant[] = [
  NAIVE,
  { ...NAIVE, name: 'look-up-first', looksUp: true },
  { ...NAIVE, name: 'token', token: true },
  { ...NAIVE, name: 'token-and-intent', token: true, intent: true },
  { ...NAIVE, name: 'sound', token: true, intent: true, garbageCollection: 'machines first' },
];

/** Variant that looks correct but is wrong: its garbage collector lists the objects before the machines. */
export const WRONG_ORDER: Variant = {
  ...NAIVE,
  name: 'gc-objects-first',
  token: true,
  intent: true,
  garbageCollection: 'objects first',
};

export function variantNamed(name: string): Variant {
  const found = [...VARIANTS, WRONG_ORDER].find((variant) => variant.name === name);
  if (found === undefined) throw new Error(`variant "${name}" does not exist`);
  return found;
}
