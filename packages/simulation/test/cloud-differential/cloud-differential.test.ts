import { isDeepStrictEqual } from 'node:util';
import type { Server } from '@vmwright/cloud';
import { nodeWorld } from '@vmwright/runtime';
import { Choices } from '@vmwright/simulation';
import { type Cloud, startCloud } from '@vmwright/testbed';
import { describe, expect, test, vi } from 'vitest';
import { compareAll } from '../compare-all.ts';
import { configOf, DirectCloud, type Machines } from './model.ts';
import { type Operation, PROHIBITED, sequence } from './operations.ts';
import { type Result, Side } from './side.ts';

/** The first difference between the model and the real cloud. */
interface Difference {
  readonly seed: number;
  readonly at: string;
  readonly operations: readonly Operation[];
  readonly real: unknown;
  readonly model: unknown;
}

const KINDS: readonly (Machines & { readonly title: string })[] = [
  { title: 'that boot immediately and never stop', boots: 'immediately', stops: 'never' },
  { title: 'that never boot and stop immediately', boots: 'never', stops: 'immediately' },
  { title: 'that fail to boot and stop immediately', boots: 'fails', stops: 'immediately' },
];

describe('the model answers random requests like the real cloud and ends with the same servers', () => {
  test.for(KINDS)('with machines $title', { timeout: 600_000 }, async (machines) => {
    await using cloud = await startCloud({ config: configOf(machines), prohibited: PROHIBITED });
    await compareAll({
      sequences: 200,
      concurrency: 8,
      expected: EXPECTED,
      least: 3,
      compare: (seed, onOutcome) => compare(seed, machines, cloud, onOutcome),
    });
  });
});

/** Outcomes that must occur in the run of all sequences: for every operation, success and each possible error. */
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
  'wrongKey gets UNAUTHORIZED',
];

/** Runs one sequence on the real cloud and on the model, and returns the first difference. */
async function compare(
  seed: number,
  machines: Machines,
  cloud: Cloud,
  onOutcome: (outcome: string) => void,
): Promise<Difference | undefined> {
  const { url, apiKey } = cloud;
  const direct = new DirectCloud(apiKey, machines);
  const prefix = `s${seed}`;
  await using real = new Side({ world: nodeWorld, url, apiKey, prefix });
  await using model = new Side({ world: direct.world, url, apiKey, prefix });
  const operations = sequence(Choices.seeded(seed));
  for (const [index, operation] of operations.entries()) {
    const results = [await real.perform(operation), await model.perform(operation)] as const;
    onOutcome(`${operation.do} ${outcomeOf(results[0])}`);
    if (!isDeepStrictEqual(...results))
      return {
        seed,
        at: `operation ${index}`,
        operations: operations.slice(0, index + 1),
        real: results[0],
        model: results[1],
      };
    // Waits until servers have booted or stopped, because the timing of the real cloud is not specified.
    direct.settle();
    await vi.waitFor(async () => expect(await real.isMoving(movesIn(machines))).toBe(false), {
      timeout: 30_000,
      interval: 5,
    });
  }
  const remaining = [await real.servers(), await model.servers()] as const;
  if (isDeepStrictEqual(...remaining)) return undefined;
  return { seed, at: 'the end', operations, real: remaining[0], model: remaining[1] };
}

function movesIn({ boots, stops }: Machines): (server: Server) => boolean {
  return ({ state }) =>
    (state === 'building' && boots !== 'never') || (state === 'deleting' && stops === 'immediately');
}

function outcomeOf(result: Result): string {
  if ('ok' in result) return 'succeeds';
  const { error } = result;
  return `gets ${typeof error === 'object' && error !== null && 'problem' in error ? error.problem : 'an error'}`;
}
