import { Counts, REQUEST_FAULTS, STREAM_FAULTS, seeded } from '@vmwright/simulation';
import { describe, expect, test } from 'vitest';
import { runSeed, runTape } from '../src/runner/seed.ts';
import { Greeting, greeter, greetings, unanswered } from '../src/samples/greeter.ts';

const SEEDS = Array.from({ length: 50 }, (_, index) => index + 1);

describe("the runtime's real manager in a simulation", () => {
  test('the real manager converges after the faults stop, and every kind of fault occurred', async () => {
    const counts = new Counts();
    let written = 0;
    for (const seed of SEEDS) {
      const simulation = seeded(seed);
      const server = await greetings(simulation);
      expect(unanswered(server, simulation.schedule.now), `seed ${seed}`).toEqual([]);
      counts.include(simulation.counts);
      written += [...server.objects(Greeting)].length;
    }
    expect(written).toBeGreaterThan(SEEDS.length);
    for (const fault of REQUEST_FAULTS) expect(counts.of(`request ${fault}`), fault).toBeGreaterThan(0);
    for (const fault of STREAM_FAULTS) expect(counts.of(`stream ${fault}`), fault).toBeGreaterThan(0);
  });

  test('the same seed gives the same history, and another seed gives another history', async () => {
    const hashes = new Set<string>();
    for (const seed of SEEDS) {
      const { hash, steps } = await runSeed(greeter, seed);
      const again = await runSeed(greeter, seed, { story: true });
      expect([again.hash, again.steps], `seed ${seed}`).toEqual([hash, steps]);
      hashes.add(hash);
    }
    expect(hashes.size).toBe(SEEDS.length);
  });

  test('replaying the recorded choices (tape) of a seed gives the same history', async () => {
    for (const seed of SEEDS.slice(0, 10)) {
      const { hash, tape } = await runSeed(greeter, seed, { tape: true });
      expect((await runTape(greeter, tape)).hash, `seed ${seed}`).toBe(hash);
    }
  });

  test('the real manager writes nothing once converged', async () => {
    const simulation = seeded(1);
    const server = await greetings(simulation);
    await simulation.run({ until: simulation.schedule.now + 60_000 }); // lets requests in transit arrive
    const before = server.resourceVersion;
    await simulation.run({ until: simulation.schedule.now + 3_600_000 });
    expect(server.resourceVersion).toBe(before);
    expect(server.watchers).toBe(1);
  });
});
