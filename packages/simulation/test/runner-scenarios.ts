import type { Scenario, Simulation, Violation } from '@vmwright/simulation';

/** Creates a small scenario for the tests of the runner. `tenth` is true for one seed in ten. */
function scenario(
  name: string,
  run: (simulation: Simulation, tenth: boolean) => Promise<readonly Violation[]>,
  mustHappen: readonly string[] = [],
): Scenario {
  return {
    name,
    mustHappen,
    run: async (simulation) => {
      const { schedule, choices, counts } = simulation;
      const tenth = choices.pick(10) === 9;
      for (let i = 0; i < 5; i++)
        schedule.after(choices.delay(), () => {
          counts.add('something happened');
          simulation.note('actor', `did ${choices.pick(100)}`);
        });
      await simulation.run({ until: 20_000 });
      return run(simulation, tenth);
    },
  };
}

const violation = (simulation: Simulation, detail: string) => ({
  invariant: 'nine in ten',
  atMs: simulation.schedule.now,
  detail,
});
const wholeTenth = async (simulation: Simulation, tenth: boolean) =>
  tenth ? [violation(simulation, 'it is the tenth')] : [];

/** Runs an event and the events that it schedules. */
const runEvent = async (simulation: Simulation, act: () => void): Promise<readonly Violation[]> => {
  simulation.schedule.after(1, act);
  await simulation.run({ until: Number.POSITIVE_INFINITY });
  return [];
};

export const scenarios: readonly Scenario[] = [
  scenario('calm', async () => [], ['something happened']),
  scenario('boring', async () => [], ['something happened', 'a miracle']),
];

export const unsound: readonly Scenario[] = [
  scenario('tenth', wholeTenth),
  scenario('throws', (simulation) =>
    runEvent(simulation, () => {
      throw new TypeError('it is broken');
    }),
  ),
  scenario('rejects', (simulation) =>
    runEvent(simulation, () => void Promise.reject(new Error('not handled'))),
  ),
  scenario('rejects-last', async () => {
    void Promise.reject(new Error('in the last moment'));
    return [];
  }),
  scenario('endless', (simulation) => {
    const again = () => void simulation.schedule.after(3_600_000, again);
    return runEvent(simulation, again);
  }),
  scenario('stands-still', (simulation) => {
    const again = () => void simulation.schedule.after(0, again);
    return runEvent(simulation, again);
  }),
  scenario('loops', async (_, tenth) => {
    while (tenth);
    return [];
  }),
  scenario('waits', async (_, tenth) => {
    if (tenth) await new Promise(() => undefined);
    return [];
  }),
  scenario('exits', async (_, tenth) => {
    if (tenth) process.exit(7);
    return [];
  }),
];
