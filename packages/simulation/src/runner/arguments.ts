/** What `make simulate` is asked for. */
export interface Asked {
  /** None: all that are sound. */
  readonly scenario?: string;
  /** This one alone, with its story. */
  readonly seed?: number;
  /** With the shortest story that shows the same violation. */
  readonly shrink: boolean;
  readonly from: number;
  readonly count?: number;
  readonly minutes?: number;
  readonly workers?: number;
}

/** Of each scenario, when nothing else is said. */
const USUAL_COUNT = 10_000;

const NAMES = ['SCENARIO', 'SEED', 'SHRINK', 'SEEDS', 'MINUTES', 'FROM', 'WORKERS'] as const;
type Name = (typeof NAMES)[number];

/**
 * Reads `NAME=value`, from the command line or, as make hands them on, from the environment.
 * @throws with a sentence for whoever typed it
 */
export function parse(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Asked {
  const given = new Map<Name, string>();
  for (const name of NAMES) if (env[name]) given.set(name, env[name]);
  for (const arg of args) {
    const [, name = '', value = ''] = /^([^=]*)=(.*)$/.exec(arg) ?? [];
    if (!isName(name))
      throw new Error(
        `"${arg}" means nothing here; there are: ${NAMES.map((each) => `${each}=`).join(', ')}`,
      );
    given.set(name, value);
  }
  const seed = whole('SEED', 0);
  const count = whole('SEEDS', 1);
  const minutes = numeric('MINUTES');
  const shrink = given.get('SHRINK') ?? '0';
  if (shrink !== '0' && shrink !== '1') throw new Error(`SHRINK is 1 or 0, not "${shrink}"`);
  if (seed === undefined && shrink === '1') throw new Error('SHRINK=1 wants a SEED to shrink');
  for (const name of ['SEEDS', 'MINUTES', 'FROM'] as const)
    if (seed !== undefined && given.has(name))
      throw new Error(`SEED replays one seed; ${name} is for many: give one of them`);
  if (count !== undefined && minutes !== undefined)
    throw new Error('SEEDS says how many, MINUTES how long: give one of them');
  const scenario = given.get('SCENARIO');
  const workers = whole('WORKERS', 1);
  return {
    ...(scenario !== undefined && { scenario }),
    ...(seed !== undefined && { seed }),
    ...(minutes === undefined ? { count: count ?? USUAL_COUNT } : { minutes }),
    ...(workers !== undefined && { workers }),
    shrink: shrink === '1',
    from: whole('FROM', 0) ?? 1,
  };

  function whole(name: Name, least: number): number | undefined {
    const text = given.get(name);
    if (text === undefined) return undefined;
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isSafeInteger(value) && value >= least) return value;
    throw new Error(`${name} is a whole number from ${least} on, not "${text}"`);
  }

  function numeric(name: Name): number | undefined {
    const text = given.get(name);
    if (text === undefined) return undefined;
    const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value > 0) return value;
    throw new Error(`${name} is a number above 0, not "${text}"`);
  }
}

function isName(name: string): name is Name {
  return NAMES.some((each) => each === name);
}
