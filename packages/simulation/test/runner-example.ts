import type { ModelRequest, ModelServer, Scenario, SimulatedWorld, Violation } from '@vmwright/simulation';

const BELL = 'https://bell.simulated';

/** The model of a server. It executes each request immediately; the network adds delays and faults. */
class Bell implements ModelServer {
  rung = 0;
  readonly #keys = new Set<string>();

  receive({ headers }: ModelRequest) {
    const key = headers['idempotency-key'] ?? '';
    if (!this.#keys.has(key)) this.rung += 1;
    if (key !== '') this.#keys.add(key);
    return { status: 200, body: 'rung' };
  }

  reject(status: 429 | 500, seconds = 1) {
    return { status, headers: { 'retry-after': String(seconds) }, body: 'not now' };
  }
}

/** The code under test: production code that takes clock, randomness and network from a `World`. */
async function ring(world: SimulatedWorld, headers: Record<string, string>): Promise<void> {
  const bell = world.connect({ origin: BELL });
  for (;;) {
    const giveUp = new AbortController();
    const timer = world.after(5_000, () => giveUp.abort(new Error('timed out')));
    const request = { method: 'POST', path: '/ring', headers, signal: giveUp.signal } as const;
    const status = await bell.request(request).then(
      (response) => response.status,
      () => undefined,
    );
    timer.cancel();
    if (status === 200) return;
    await new Promise<void>((resolve) => world.after(1_000, resolve));
  }
}

function ringing(name: string, keyOf: (world: SimulatedWorld) => Record<string, string>): Scenario {
  return {
    name,
    mustHappen: ['request lost', 'request reset', 'request late', 'it took more than ten seconds'],
    run: async (simulation) => {
      const { schedule, network, counts } = simulation;
      const violations: Violation[] = [];
      const violated = (invariant: string, detail: string) =>
        violations.push({ invariant, atMs: schedule.now, detail });
      const bell = new Bell();
      network.serve(BELL, bell, {
        request: 2,
        requestFaults: ['lost', 'reset', 'late'],
        line: 0,
        streamFaults: ['cut'],
      });
      // An invariant that must always hold: checked after each event on the state of the model.
      schedule.check(() => {
        if (bell.rung > 1 && violations.length === 0)
          violated('the bell rings once', `it rang ${bell.rung} times`);
      });
      network.faulty = true;
      const world = simulation.start('ringer');
      let done = false;
      void ring(world, keyOf(world)).then(() => {
        done = true;
        if (schedule.now > 10_000) counts.add('it took more than ten seconds');
      });
      await simulation.run({ until: 120_000, done: () => violations.length > 0 });
      network.faulty = false;
      await simulation.run({ until: 240_000, done: () => done || violations.length > 0 });
      // An invariant that must hold once the faults have stopped.
      if (!done && violations.length === 0)
        violated('the ringer comes to an end', 'it still rings two minutes after the faults');
      return violations;
    },
  };
}

export const scenarios = [ringing('bell', (world) => ({ 'idempotency-key': world.uuid() }))];
export const unsound = [ringing('bell-without-key', () => ({}))];
