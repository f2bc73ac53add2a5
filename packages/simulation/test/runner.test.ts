import { readFileSync } from 'node:fs';
import {
  ENDS,
  firstViolation,
  NOTHING_THROWN,
  problems,
  runSeed,
  runSeeds,
  runTape,
  scenarioNamed,
  shrink,
  WorkerPool,
} from '@vmwright/simulation';
import { describe, expect, test } from 'vitest';
import * as example from './runner-example.ts';
import * as own from './runner-scenarios.ts';

const registry = new URL('runner-scenarios.ts', import.meta.url).href;
const named = (name: string) => scenarioNamed(name, own);

describe('runSeed', () => {
  test('runSeed returns violations, counts, trace and hash', async () => {
    const outcome = await runSeed(named('calm'), 7, { story: true });
    expect(outcome).toMatchObject({ seed: 7, violations: [], virtualMs: 20_000, steps: 5 });
    expect(outcome.counts).toEqual({ 'something happened': 5 });
    expect(outcome.story).toHaveLength(outcome.lines);
    expect(outcome.hash).toBe((await runSeed(named('calm'), 7)).hash);
    expect(outcome.hash).not.toBe((await runSeed(named('calm'), 8)).hash);
  });

  test.for([
    ['throws', 'uncaught TypeError: it is broken'],
    ['rejects', 'uncaught Error: not handled'],
    ['rejects-last', 'uncaught Error: in the last moment'],
  ] as const)('runSeed reports "no uncaught errors" as violated for scenario %s', async ([name, detail]) => {
    const { violations } = await runSeed(named(name), 1);
    expect(violations).toEqual([{ invariant: NOTHING_THROWN, atMs: expect.any(Number), detail }]);
  });

  test.for([
    ['endless', 'the run did not end within 604800 s of virtual time'],
    ['stands-still', 'the run did not end within 2000 events'],
  ] as const)('runSeed reports "every run ends" as violated for scenario %s', async ([name, detail]) => {
    const { violations } = await runSeed(named(name), 1, { bounds: { steps: 2_000 } });
    expect(violations).toEqual([{ invariant: ENDS, atMs: expect.any(Number), detail }]);
  });
});

describe('runSeeds', () => {
  test('runSeeds returns the same tally on one thread and on three', async () => {
    const tallyOn = async (workers: number) => {
      const {
        cpuMs,
        elapsedMs,
        workers: _,
        ...tally
      } = await runSeeds('tenth', { count: 300, workers, registry });
      expect(cpuMs).toBeGreaterThan(0);
      return tally;
    };
    const tally = await tallyOn(1);
    expect(tally.seeds).toBe(300);
    expect(tally.violating).toBeGreaterThan(10);
    expect(tally.counts['something happened']).toBe(1_500);
    expect(tally.broken['nine in ten']?.seeds).toBe(tally.violating);
    const { first = [] } = tally.broken['nine in ten'] ?? {};
    const violating: number[] = [];
    for (let seed = 1; violating.length < first.length; seed++)
      if ((await runSeed(named('tenth'), seed)).violations.length > 0) violating.push(seed);
    expect(first.map(({ seed }) => seed)).toEqual(violating);
    expect(await tallyOn(3)).toEqual(tally);
  });

  test('stopAtFirst stops at the same violating seed on any number of threads', async () => {
    const firstOn = async (workers: number) =>
      firstViolation(
        await runSeeds('tenth', { from: 50, count: 1_000, workers, registry, stopAtFirst: true }),
      );
    const first = await firstOn(1);
    expect(first?.seed).toBeGreaterThanOrEqual(50);
    expect(await firstOn(3)).toEqual(first);
  });

  test('runSeeds stops when the time is up or the signal aborts', async () => {
    const timed = await runSeeds('calm', { minutes: 0.01, registry });
    expect(timed.elapsedMs).toBeGreaterThanOrEqual(600);
    expect(timed.seeds).toBeGreaterThan(0);
    const stop = new AbortController();
    const stopped = await runSeeds('calm', {
      count: 1_000_000_000,
      registry,
      signal: stop.signal,
      onProgress: ({ seeds }) => seeds > 100 && stop.abort(),
    });
    expect(stopped.seeds).toBeGreaterThan(100);
  });

  test.for([
    ['loops', 'no event within 1 s of CPU time'],
    ['waits', 'waited 1 s for something outside the simulated world'],
    ['exits', 'the run ended its thread with exit code 7'],
  ] as const)('runSeeds counts a run that %s as a violation and continues', async ([name, detail]) => {
    const tenths: number[] = [];
    for (let seed = 1; tenths.length < 2; seed++)
      if ((await runSeed(named('tenth'), seed)).violations.length > 0) tenths.push(seed);
    const count = (tenths[1] ?? 0) + 3;
    const { seeds, violating, broken } = await runSeeds(name, {
      count,
      registry,
      workers: 2,
      hangTimeoutMs: 1_000,
    });
    expect([seeds, violating]).toEqual([count, 2]);
    expect(broken[ENDS]?.first.map(({ seed }) => seed)).toEqual(tenths);
    expect(broken[ENDS]?.first[0]?.detail).toBe(detail);
  });

  test('runSeeds rejects an unknown scenario and lists the available ones', async () => {
    await using pool = new WorkerPool({ registry });
    await expect(runSeeds('clam', { count: 10, pool })).rejects.toThrow(
      'scenario "clam" does not exist; available: calm, boring, tenth,',
    );
    expect((await runSeeds('calm', { count: 10, pool })).seeds).toBe(10);
    await expect(runSeeds('calm', { count: 10, registry: 'file:///nowhere.ts' })).rejects.toThrow(
      'nowhere.ts',
    );
  });

  test('runSeeds imports the preload modules in each thread before anything else', async () => {
    // Makes every choice among ten return the last one, so that every seed of `tenth` violates its invariant.
    const preload = ['data:text/javascript,Math.floor=()=>9'];
    const plain = await runSeeds('tenth', { count: 100, registry });
    const changed = await runSeeds('tenth', { count: 100, registry, preload });
    expect(plain.violating).toBeLessThan(50);
    expect(changed.violating).toBe(100);
  });

  test('runSeeds rejects when a thread exits before it is ready', async () => {
    const preload = ['data:text/javascript,process.exit(3)'];
    await expect(runSeeds('calm', { count: 10, registry, preload })).rejects.toThrow(
      'a simulation thread exited with code 3 before it was ready',
    );
  });

  test('problems() reports the violating seed, and the required events that never occurred', async () => {
    const tenth = await runSeeds('tenth', { count: 100, registry });
    const seed = firstViolation(tenth)?.seed;
    expect(problems(named('tenth'), tenth)).toEqual([
      `tenth: ${tenth.violating} of 100 seeds violate an invariant, first ${seed} ("nine in ten": it is the tenth). ` +
        `Replay it with: make simulate SCENARIO=tenth SEED=${seed}`,
    ]);
    const boring = (count: number) => runSeeds('boring', { count, registry });
    expect(problems(named('boring'), await boring(2_000))).toEqual([
      'boring: "a miracle" never happened in 2,000 seeds, so the scenario does not test it.',
    ]);
    expect(problems(named('boring'), await boring(100))).toEqual([]); // too few seeds to report missing events
  });
});

describe('shrink', () => {
  test('shrink reduces the recorded choices (tape) of a violation to those that matter', async () => {
    const tape = Array.from({ length: 500 }, (_, at) => (at * 7_919) % 1_000);
    const shows = async (candidate: readonly number[]) =>
      (candidate[3] ?? 0) > 600 && candidate.includes(17) ? candidate.length : undefined;
    tape[3] = 900;
    tape[300] = 17;
    const { tape: shrunk, tries } = await shrink(tape, shows);
    expect(shrunk).toEqual([0, 0, 0, 601, 17]);
    expect(tries).toBeLessThan(3_000);
  });

  test('shrink returns the shortest tape so far when aborted', async () => {
    const stop = new AbortController();
    const { tape, tries } = await shrink(
      [5, 5, 5, 5, 5, 5, 5, 5],
      async (candidate) => {
        if (candidate.length === 4) stop.abort();
        return candidate.length;
      },
      { signal: stop.signal },
    );
    expect(tape).toEqual([5, 5, 5, 5]);
    expect(tries).toBe(2);
  });

  test('shrink returns a tape unchanged if its run does not show the violation', async () => {
    expect((await shrink([1, 2, 3], async () => undefined)).tape).toEqual([1, 2, 3]);
  });

  test('shrink reduces the tape of a run to one with a short trace and the same violation', async () => {
    const scenario = scenarioNamed('bell-without-key', example);
    const first = firstViolation(
      await runSeeds(scenario.name, {
        count: 100,
        registry: new URL('runner-example.ts', import.meta.url).href,
      }),
    );
    const found = await runSeed(scenario, first?.seed ?? 0, { tape: true });
    const { tape } = await shrink(found.tape, async (candidate) => {
      const { violations, lines } = await runTape(scenario, candidate);
      return violations[0]?.invariant === first?.invariant ? lines : undefined;
    });
    const { violations, story } = await runTape(scenario, tape, { story: true });
    expect(violations[0]?.invariant).toBe('the bell rings once');
    expect(tape.length).toBeLessThanOrEqual(found.tape.length);
    expect(story.length).toBeLessThanOrEqual(4);
  });
});

describe('the example of docs/internals/simulation.md', () => {
  const file = new URL('runner-example.ts', import.meta.url);

  test('the example of docs/internals/simulation.md equals test/runner-example.ts', () => {
    const docs = readFileSync(new URL('../../../docs/internals/simulation.md', import.meta.url), 'utf8');
    expect(docs).toContain(`\`\`\`ts\n${readFileSync(file, 'utf8')}\`\`\`\n`);
  });

  test('the example of docs/internals/simulation.md violates an invariant only without the idempotency key', async () => {
    await using pool = new WorkerPool({ registry: file.href });
    const sound = scenarioNamed('bell', example);
    expect(problems(sound, await runSeeds(sound.name, { count: 2_000, pool }))).toEqual([]);
    const { violating, broken } = await runSeeds('bell-without-key', { count: 200, pool });
    expect(violating).toBeGreaterThan(0);
    expect(Object.keys(broken)).toEqual(['the bell rings once']);
  });
});
