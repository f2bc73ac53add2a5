import { Choices, Counts, REQUEST_FAULTS, STREAM_FAULTS } from '@vmwright/simulation';
import { describe, expect, test } from 'vitest';
import { Greeting, greetings, isConverged } from './greeter.ts';

const SEEDS = Array.from({ length: 50 }, (_, index) => index + 1);

describe("the runtime's real manager in the simulated world", () => {
  test('converges after whatever went wrong has stopped, and every fault did happen', async () => {
    const counts = new Counts();
    let written = 0;
    for (const seed of SEEDS) {
      const { server, simulation } = await greetings(Choices.seeded(seed));
      expect(isConverged(server), `seed ${seed}`).toBe(true);
      counts.include(simulation.counts);
      written += [...server.objects(Greeting)].length;
    }
    expect(written).toBeGreaterThan(SEEDS.length);
    for (const fault of REQUEST_FAULTS) expect(counts.of(`request ${fault}`), fault).toBeGreaterThan(0);
    for (const fault of STREAM_FAULTS) expect(counts.of(`stream ${fault}`), fault).toBeGreaterThan(0);
  });

  test('has the same history for the same seed, and another for another', async () => {
    const hashes = new Set<string>();
    for (const seed of SEEDS) {
      const { hash, steps } = await greetings(Choices.seeded(seed));
      const again = await greetings(Choices.seeded(seed), { story: true });
      expect([again.hash, again.steps], `seed ${seed}`).toEqual([hash, steps]);
      hashes.add(hash);
    }
    expect(hashes.size).toBe(SEEDS.length);
  });

  test('has the same history for the tape of a seed as for the seed', async () => {
    for (const seed of SEEDS.slice(0, 10)) {
      const choices = Choices.seeded(seed, true);
      const { hash } = await greetings(choices);
      expect((await greetings(Choices.replayed(choices.tape))).hash, `seed ${seed}`).toBe(hash);
    }
  });

  test('writes nothing once all is as it should be', async () => {
    const { server, simulation } = await greetings(Choices.seeded(1));
    await simulation.run({ until: simulation.schedule.now + 60_000 }); // what was on the wire has arrived
    const before = server.resourceVersion;
    await simulation.run({ until: simulation.schedule.now + 3_600_000 });
    expect(server.resourceVersion).toBe(before);
    expect(server.watchers).toBe(1);
  });
});
