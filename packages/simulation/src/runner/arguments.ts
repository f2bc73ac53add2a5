/** Parsed arguments of `make simulate`. */
export interface Arguments {
  /** Name of the scenario. @default all scenarios without known violations */
  readonly scenario?: string;
  /** Replays only this seed and prints its trace. */
  readonly seed?: number;
  /** Shrinks the run of `seed` to one with the same violation, but few faults and a short trace. */
  readonly shrink: boolean;
  readonly from: number;
  readonly count?: number;
  readonly minutes?: number;
  readonly workers?: number;
}

/** Default number of seeds per scenario. */
const DEFAULT_COUNT = 10_000;

const NAMES = ['SCENARIO', 'SEED', 'SHRINK', 'SEEDS', 'MINUTES', 'FROM', 'WORKERS'] as const;
type Name = (typeof NAMES)[number];

/**
 * Reads `NAME=value` arguments from the command line and from the environment, through which make passes them.
 * @throws with a message for the user when an argument is unknown or invalid
 */
export function parse(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Arguments {
  const given = new Map<Name, string>();
  for (const name of NAMES) if (env[name]) given.set(name, env[name]);
  for (const arg of args) {
    const [, name = '', value = ''] = /^([^=]*)=(.*)$/.exec(arg) ?? [];
    if (!isName(name))
      throw new Error(`unknown argument "${arg}"; supported: ${NAMES.map((each) => `${each}=`).join(', ')}`);
    given.set(name, value);
  }
  const seed = integer('SEED', 0);
  const count = integer('SEEDS', 1);
  const minutes = positive('MINUTES');
  const shrink = given.get('SHRINK') ?? '0';
  if (shrink !== '0' && shrink !== '1') throw new Error(`SHRINK must be 1 or 0, not "${shrink}"`);
  if (seed === undefined && shrink === '1') throw new Error('SHRINK=1 requires SEED');
  for (const name of ['SEEDS', 'MINUTES', 'FROM'] as const)
    if (seed !== undefined && given.has(name))
      throw new Error(`SEED and ${name} cannot be combined: SEED replays one seed`);
  if (count !== undefined && minutes !== undefined) throw new Error('SEEDS and MINUTES cannot be combined');
  const scenario = given.get('SCENARIO');
  const workers = integer('WORKERS', 1);
  return {
    ...(scenario !== undefined && { scenario }),
    ...(seed !== undefined && { seed }),
    ...(minutes === undefined ? { count: count ?? DEFAULT_COUNT } : { minutes }),
    ...(workers !== undefined && { workers }),
    shrink: shrink === '1',
    from: integer('FROM', 0) ?? 1,
  };

  function integer(name: Name, minimum: number): number | undefined {
    const text = given.get(name);
    if (text === undefined) return undefined;
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isSafeInteger(value) && value >= minimum) return value;
    throw new Error(`${name} must be an integer of at least ${minimum}, not "${text}"`);
  }

  function positive(name: Name): number | undefined {
    const text = given.get(name);
    if (text === undefined) return undefined;
    const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value > 0) return value;
    throw new Error(`${name} must be a number greater than 0, not "${text}"`);
  }
}

function isName(name: string): name is Name {
  return NAMES.some((each) => each === name);
}
