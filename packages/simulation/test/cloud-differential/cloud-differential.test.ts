import { isDeepStrictEqual } from 'node:util';
import type { Server } from '@vmwright/cloud';
import { nodeWorld } from '@vmwright/runtime';
import { Choices } from '@vmwright/simulation';
import { type Cloud, startCloud } from '@vmwright/testbed';
import { describe, expect, test, vi } from 'vitest';
import { compareAll } from '../compare-all.ts';
import { configOf, DirectCloud, type Machines } from './model.ts';
import { type Operation, PROHIBITED, sequence } from './operations.ts';
import { type Answer, Side } from './side.ts';

/** Where the model and the real cloud have parted. */
interface Difference {
  readonly seed: number;
  readonly at: string;
  readonly operations: readonly Operation[];
  readonly real: unknown;
  readonly model: unknown;
}

const KINDS: readonly (Machines & { readonly title: string })[] = [
  { title: 'that boot at once and never stop', boots: 'at once', stops: 'never' },
  { title: 'that never boot and stop at once', boots: 'never', stops: 'at once' },
  { title: 'that fail and stop at once', boots: 'and fails', stops: 'at once' },
];

describe('random sequences of requests by the real client get the same answers from the model and the real cloud, and leave the same servers', () => {
  test.for(KINDS)('with machines $title', { timeout: 600_000 }, async (machines) => {
    await using cloud = await startCloud({ config: configOf(machines), prohibited: PROHIBITED });
    await compareAll({
      ...{ sequences: 200, atATime: 8, expected: EXPECTED, least: 3 },
      compare: (seed, tell) => compare(seed, machines, cloud, tell),
    });
  });
});

/** Every operation succeeds, and is refused for each of its reasons. */
const EXPECTED = [
  'check succeeds',
  'check gets PROHIBITED_NAME',
  'check gets NAME_TAKEN',
  'check gets INVALID_NAME',
  'create succeeds',
  'create gets PROHIBITED_NAME',
  'create gets NAME_TAKEN',
  'create gets INVALID_NAME',
  'create gets INVALID_REQUEST',
  'create gets IDEMPOTENCY_KEY_REUSED',
  'create gets SERVER_GONE',
  'get succeeds',
  'get gets NOT_FOUND',
  'status succeeds',
  'status gets NOT_FOUND',
  'delete succeeds',
  'delete gets NOT_FOUND',
  'relabel succeeds',
  'relabel gets NOT_FOUND',
  'relabel gets INVALID_REQUEST',
  'list succeeds',
  'list gets INVALID_REQUEST',
  'list gets INVALID_NAME',
  'intrude gets UNAUTHORIZED',
];

/** Runs one sequence on both clouds, and says where they part first. */
async function compare(
  seed: number,
  machines: Machines,
  cloud: Cloud,
  tell: (outcome: string) => void,
): Promise<Difference | undefined> {
  const { url, apiKey } = cloud;
  const direct = new DirectCloud(apiKey, machines);
  const prefix = `s${seed}`;
  await using real = new Side({ world: nodeWorld, url, apiKey, prefix });
  await using model = new Side({ world: direct.world, url, apiKey, prefix });
  const operations = sequence(Choices.seeded(seed));
  for (const [index, operation] of operations.entries()) {
    const answers = [await real.perform(operation), await model.perform(operation)] as const;
    tell(`${operation.do} ${outcomeOf(answers[0])}`);
    if (!isDeepStrictEqual(...answers))
      return {
        seed,
        at: `operation ${index}`,
        operations: operations.slice(0, index + 1),
        real: answers[0],
        model: answers[1],
      };
    // What moves by itself is waited for, since how long it takes is nobody's promise.
    direct.settle();
    await vi.waitFor(async () => expect(await real.isMoving(movesIn(machines))).toBe(false), {
      timeout: 30_000,
      interval: 5,
    });
  }
  const left = [await real.servers(), await model.servers()] as const;
  if (isDeepStrictEqual(...left)) return undefined;
  return { seed, at: 'the end', operations, real: left[0], model: left[1] };
}

function movesIn({ boots, stops }: Machines): (server: Server) => boolean {
  return ({ state }) =>
    (state === 'building' && boots !== 'never') || (state === 'deleting' && stops === 'at once');
}

function outcomeOf(answer: Answer): string {
  if ('ok' in answer) return 'succeeds';
  const { refused } = answer;
  return `gets ${typeof refused === 'object' && refused !== null && 'problem' in refused ? refused.problem : 'refused'}`;
}
