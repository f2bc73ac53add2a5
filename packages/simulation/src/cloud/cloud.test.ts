import { CloudClient, NotFoundError, type Server, UnavailableError } from '@vmwright/cloud';
import { describe, expect, test } from 'vitest';
import { type Simulation, seeded } from '../world/simulation.ts';
import { Cloud } from './cloud.ts';
import { CLOUD, simulatedCloud } from './simulated.ts';

/*
 * Covers behaviour of the model that the real cloud does not have, or that takes real time there.
 * test/cloud-differential covers all other behaviour.
 */

const API_KEY = 'a-key-of-the-cloud';

interface Env {
  readonly simulation: Simulation;
  readonly cloud: Cloud;
  readonly client: CloudClient;
}

/** Starts a client and a cloud without network faults. @param lag age of the state that a list shows, in ms */
function setup(lag: () => number = () => 0): Env {
  const simulation = seeded(1);
  const { schedule } = simulation;
  const cloud = new Cloud({
    apiKey: API_KEY,
    environment: {
      now: () => schedule.now,
      uuid: () => simulation.uuid(),
      after: (ms, act) => void schedule.after(ms, act),
      bootMs: () => 1_000,
      wipeMs: () => 2_000,
      bootFails: () => false,
      lagMs: lag,
      maxPageSize: 2,
      note: () => undefined,
    },
  });
  simulation.network.serve(CLOUD, cloud);
  const client = new CloudClient({ world: simulation.start('client'), url: CLOUD, apiKey: API_KEY });
  return { simulation, cloud, client };
}

/** Advances virtual time until the call has settled, and returns its result. */
async function during<T>({ schedule }: Simulation, call: Promise<T>): Promise<T> {
  let done = false;
  const end = () => {
    done = true;
  };
  call.then(end, end);
  await schedule.run({ until: Number.POSITIVE_INFINITY, done: () => done });
  return call;
}

async function listed({ simulation, client }: Env): Promise<readonly Server[]> {
  return (await during(simulation, Array.fromAsync(client.list()))).flat();
}

describe('Cloud', () => {
  test('booting and wiping a server take time', async () => {
    const env = setup();
    const { simulation, client } = env;
    const { id } = await during(simulation, client.create({ name: 'a' }, 'k'));
    expect(await listed(env)).toMatchObject([{ id, state: 'building', cpuUtilization: 0 }]);
    await simulation.run({ until: simulation.schedule.now + 1_000 });
    expect(await listed(env)).toMatchObject([{ id, state: 'running' }]);
    await during(simulation, client.delete(id));
    expect(await listed(env)).toMatchObject([{ id, state: 'deleting' }]);
    await simulation.run({ until: simulation.schedule.now + 2_000 });
    await expect(during(simulation, client.get(id))).rejects.toThrow(NotFoundError);
  });

  test('while lists lag, every page of a list shows old state, but a get shows the current state', async () => {
    let lag = 0;
    const env = setup(() => lag);
    const { simulation, client, cloud } = env;
    const [a, b, c] = ['a', 'b', 'c'].map((name) => cloud.add({ name }).id);
    await simulation.run({ until: 60_000 });
    cloud.beginDelete(a ?? '', 'somebody');
    await simulation.run({ until: 70_000 });
    const d = cloud.add({ name: 'd' }).id;
    expect((await listed(env)).map(({ id }) => id)).toEqual([b, c, d]);
    lag = 15_000;
    expect((await listed(env)).map(({ id, state }) => `${id} ${state}`)).toEqual(
      [a, b, c].map((id) => `${id} running`),
    );
    expect(await during(simulation, client.get(d))).toMatchObject({ name: 'd' });
  });

  test('CPU utilization changes over time until keepStill is called', async () => {
    const env = setup();
    env.cloud.add({ name: 'a' });
    const seen = new Set<number>();
    const sample = async () => {
      for (const { cpuUtilization } of await listed(env)) seen.add(cpuUtilization);
      await env.simulation.run({ until: env.simulation.schedule.now + 60_000 });
    };
    for (let times = 0; times < 5; times++) await sample();
    expect(seen.size).toBeGreaterThan(3);
    env.cloud.keepStill();
    seen.clear();
    for (let times = 0; times < 5; times++) await sample();
    expect(seen.size).toBe(1);
  });

  test('an error of the client does not contain the API key that a proxy echoes in its error page', async () => {
    const { simulation, client, cloud } = setup();
    cloud.outOfOrder = true;
    const result = during(simulation, client.check('a'));
    await expect(result).rejects.toThrow(UnavailableError);
    await expect(result).rejects.toThrow(/^(?!.*a-key-of-the-cloud).*Bad gateway/);
  });

  test('lists show outdated state only while the network is faulty', async () => {
    const simulation = seeded(7);
    const cloud = simulatedCloud(simulation, API_KEY);
    const countOldLists = (faulty: boolean) => {
      simulation.network.faulty = faulty;
      for (let times = 0; times < 50; times++)
        cloud.receive({ method: 'GET', path: '/servers', headers: { authorization: `Bearer ${API_KEY}` } });
      return simulation.counts.of('a list was old');
    };
    expect(countOldLists(false)).toBe(0);
    expect(countOldLists(true)).toBeGreaterThan(0);
  });
});
