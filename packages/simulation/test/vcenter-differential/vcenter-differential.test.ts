import { isDeepStrictEqual } from 'node:util';
import { nodeWorld } from '@vmwright/runtime';
import { Choices } from '@vmwright/simulation';
import { startVcsim, type Vcsim } from '@vmwright/testbed';
import { test } from 'vitest';
import { compareAll } from '../compare-all.ts';
import { DirectVcenter } from './model.ts';
import { type Operation, sequence } from './operations.ts';
import { type Answer, Side } from './side.ts';

const TEMPLATES = ['template-1', 'template-2'] as const;

/** Where the model and the simulator have parted. */
interface Difference {
  readonly seed: number;
  readonly at: string;
  readonly operations: readonly Operation[];
  readonly real: unknown;
  readonly model: unknown;
}

test('random sequences of calls by the real client get the same answers from the model and from the simulator, and leave the same inventory, told and listed', {
  timeout: 600_000,
}, async () => {
  const inventory = { standaloneHosts: 0, hosts: 2, vms: 2 };
  await using vcsim = await startVcsim({ inventory, templates: TEMPLATES });
  await compareAll({
    ...{ sequences: 200, atATime: 8, expected: EXPECTED, least: 3 },
    compare: (seed, tell) => compare(seed, vcsim, tell),
  });
});

/** Every operation succeeds, and is refused for each of its reasons. */
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
  'readFolder succeeds',
  'readFolder gets OBJECT_NOT_FOUND',
  'mark succeeds',
  'mark gets OBJECT_NOT_FOUND',
  'lookUp succeeds',
  'lookUp gets NOT_FOUND',
  'template succeeds',
  'template gets NOT_FOUND',
  'find succeeds',
  'loseSession succeeds',
  'intrude gets INVALID_LOGIN',
];

/** Runs one sequence on both, and says where they part first. */
async function compare(
  seed: number,
  { url, username, password, ca }: Vcsim,
  tell: (outcome: string) => void,
): Promise<Difference | undefined> {
  const user = { username, password, prefix: `s${seed}` };
  const direct = new DirectVcenter(user, TEMPLATES);
  await using real = new Side({ ...user, world: nodeWorld, server: url, tls: { ca } });
  await using model = new Side({ ...user, world: direct.world, server: 'https://model' });
  await Promise.all([real.begin(), model.begin()]);
  const operations = sequence(Choices.seeded(seed));
  const parted = (at: string, index: number, answers: readonly [unknown, unknown]) =>
    isDeepStrictEqual(...answers)
      ? undefined
      : { seed, at, operations: operations.slice(0, index + 1), real: answers[0], model: answers[1] };
  for (const [index, operation] of operations.entries()) {
    const answers = [await real.perform(operation), await model.perform(operation)] as const;
    tell(`${operation.do} ${outcomeOf(answers[0])}`);
    const difference = parted(`operation ${index}`, index, answers);
    if (difference !== undefined) return difference;
  }
  const [reals, models] = [await real.left(), await model.left()];
  await Promise.all([real.end(), model.end()]);
  const last = operations.length;
  return (
    parted('the end, as listed', last, [reals.listed, models.listed]) ??
    parted('the end, as told', last, [reals.told, reals.listed]) ??
    parted('the end, as told', last, [reals.told, models.told])
  );
}

function outcomeOf(answer: Answer): string {
  if ('ok' in answer) return 'succeeds';
  const { refused } = answer;
  return `gets ${typeof refused === 'object' && refused !== null && 'code' in refused ? refused.code : 'refused'}`;
}
