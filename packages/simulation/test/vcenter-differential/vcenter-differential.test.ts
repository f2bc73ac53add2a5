import { isDeepStrictEqual } from 'node:util';
import { nodeWorld } from '@vmwright/runtime';
import { Choices } from '@vmwright/simulation';
import { startVcsim, type Vcsim } from '@vmwright/testbed';
import { test } from 'vitest';
import { compareAll } from '../compare-all.ts';
import { DirectVcenter } from './model.ts';
import { type Operation, sequence } from './operations.ts';
import { type Result, Side } from './side.ts';

const TEMPLATES = ['template-1', 'template-2'] as const;

/** The first difference between the model and vcsim. */
interface Difference {
  readonly seed: number;
  readonly at: string;
  readonly operations: readonly Operation[];
  readonly real: unknown;
  readonly model: unknown;
}

test('the model answers random calls like vcsim and ends with the same inventory', {
  timeout: 600_000,
}, async () => {
  const inventory = { standaloneHosts: 0, hosts: 2, vms: 2 };
  await using vcsim = await startVcsim({ inventory, templates: TEMPLATES });
  await compareAll({
    sequences: 200,
    concurrency: 8,
    expected: EXPECTED,
    least: 3,
    compare: (seed, onOutcome) => compare(seed, vcsim, onOutcome),
  });
});

/** Outcomes that must occur in the run of all sequences: for every operation, success and each possible error. */
const EXPECTED = [
  'createFolder succeeds',
  'createFolder gets DUPLICATE_NAME',
  'createFolder gets OBJECT_NOT_FOUND',
  'clone succeeds',
  'clone gets DUPLICATE_NAME',
  'clone gets OBJECT_NOT_FOUND',
  'clone gets INVALID_ARGUMENT',
  'reconfigure succeeds',
  'reconfigure gets OBJECT_NOT_FOUND',
  'powerOn succeeds',
  'powerOn gets INVALID_POWER_STATE',
  'powerOn gets OBJECT_NOT_FOUND',
  'powerOff succeeds',
  'powerOff gets INVALID_POWER_STATE',
  'shutDown succeeds',
  'destroy succeeds',
  'destroy gets INVALID_POWER_STATE',
  'destroy gets OBJECT_NOT_FOUND',
  'destroyFolder succeeds',
  'renameFolder succeeds',
  'renameFolder gets OBJECT_NOT_FOUND',
  'readFolder succeeds',
  'readFolder gets OBJECT_NOT_FOUND',
  'setAttribute succeeds',
  'setAttribute gets OBJECT_NOT_FOUND',
  'lookUp succeeds',
  'lookUp gets NOT_FOUND',
  'template succeeds',
  'template gets NOT_FOUND',
  'find succeeds',
  'loseSession succeeds',
  'wrongPassword gets INVALID_LOGIN',
];

/** Runs one sequence on vcsim and on the model and returns the first difference. */
async function compare(
  seed: number,
  { url, username, password, ca }: Vcsim,
  onOutcome: (outcome: string) => void,
): Promise<Difference | undefined> {
  const user = { username, password, prefix: `s${seed}` };
  const direct = new DirectVcenter(user, TEMPLATES);
  await using real = new Side({ ...user, world: nodeWorld, server: url, tls: { ca } });
  await using model = new Side({ ...user, world: direct.world, server: 'https://model' });
  await Promise.all([real.begin(), model.begin()]);
  const operations = sequence(Choices.seeded(seed));
  const differenceAt = (at: string, index: number, results: readonly [unknown, unknown]) =>
    isDeepStrictEqual(...results)
      ? undefined
      : { seed, at, operations: operations.slice(0, index + 1), real: results[0], model: results[1] };
  for (const [index, operation] of operations.entries()) {
    const results = [await real.perform(operation), await model.perform(operation)] as const;
    onOutcome(`${operation.do} ${outcomeOf(results[0])}`);
    const difference = differenceAt(`operation ${index}`, index, results);
    if (difference !== undefined) return difference;
  }
  const [reals, models] = [await real.objects(), await model.objects()];
  await Promise.all([real.cleanUp(), model.cleanUp()]);
  const last = operations.length;
  return (
    differenceAt('the end, as listed', last, [reals.listed, models.listed]) ??
    differenceAt('the end, as watched', last, [reals.watched, reals.listed]) ??
    differenceAt('the end, as watched', last, [reals.watched, models.watched])
  );
}

function outcomeOf(result: Result): string {
  if ('ok' in result) return 'succeeds';
  const { error } = result;
  return `gets ${typeof error === 'object' && error !== null && 'code' in error ? error.code : 'an error'}`;
}
