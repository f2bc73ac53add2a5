import { CloudClient, NotFoundError, type Server, UnavailableError } from '@vmwright/cloud';
import { describe, expect, test } from 'vitest';
import { type Simulation, seeded } from '../world/simulation.ts';
import { Cloud } from './cloud.ts';
import { CLOUD, simulatedCloud } from './simulated.ts';

/*
 * What the real cloud does not do, or does in real time; all else is in test/cloud-differential.
 */

const API_KEY = 'a-key-of-the-cloud';

interface World {
  readonly simulation: Simulation;
  readonly cloud: Cloud;
  readonly client: CloudClient;
}

/** A cloud that its only user can reach without any trouble, and whose lists are as old as that user wants. */
function world(lag: () => number = () => 0): World {
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
      longestPage: 2,
      note: () => undefined,
    },
  });
  simulation.network.serve(CLOUD, cloud);
  const client = new CloudClient({ world: simulation.start('client'), url: CLOUD, apiKey: API_KEY });
  return { simulation, cloud, client };
}

/** What comes of a call, with as much virtual time as it takes. */
async function during<T>({ schedule }: Simulation, call: Promise<T>): Promise<T> {
  let done = false;
  const end = () => {
    done = true;
  };
  call.then(end, end);
  await schedule.run({ until: Number.POSITIVE_INFINITY, done: () => done });
  return call;
}

async function listed({ simulation, client }: World): Promise<readonly Server[]> {
  return (await during(simulation, Array.fromAsync(client.list()))).flat();
}

describe('the modelled cloud', () => {
  test('makes a machine and wipes it in its own time', async () => {
    const it = world();
    const { simulation, client } = it;
    const { id } = await during(simulation, client.create({ name: 'a' }, 'k'));
    expect(await listed(it)).toMatchObject([{ id, state: 'building', cpuUtilization: 0 }]);
    await simulation.run({ until: simulation.schedule.now + 1_000 });
    expect(await listed(it)).toMatchObject([{ id, state: 'running' }]);
    await during(simulation, client.delete(id));
    expect(await listed(it)).toMatchObject([{ id, state: 'deleting' }]);
    await simulation.run({ until: simulation.schedule.now + 2_000 });
    await expect(during(simulation, client.get(id))).rejects.toThrow(NotFoundError);
  });

  test('lists what was some seconds ago, page by page, while a look at one server shows what is', async () => {
    let lag = 0;
    const it = world(() => lag);
    const { simulation, client, cloud } = it;
    const [a, b, c] = ['a', 'b', 'c'].map((name) => cloud.add({ name }).id);
    await simulation.run({ until: 60_000 });
    cloud.beginDelete(a ?? '', 'somebody');
    await simulation.run({ until: 70_000 });
    const d = cloud.add({ name: 'd' }).id;
    expect((await listed(it)).map(({ id }) => id)).toEqual([b, c, d]);
    lag = 15_000;
    expect((await listed(it)).map(({ id, state }) => `${id} ${state}`)).toEqual(
      [a, b, c].map((id) => `${id} running`),
    );
    expect(await during(simulation, client.get(d))).toMatchObject({ name: 'd' });
  });

  test('has machines whose use of the CPU changes, until it is asked to keep still', async () => {
    const it = world();
    it.cloud.add({ name: 'a' });
    const seen = new Set<number>();
    const look = async () => {
      for (const { cpuUtilization } of await listed(it)) seen.add(cpuUtilization);
      await it.simulation.run({ until: it.simulation.schedule.now + 60_000 });
    };
    for (let times = 0; times < 5; times++) await look();
    expect(seen.size).toBeGreaterThan(3);
    it.cloud.keepStill();
    seen.clear();
    for (let times = 0; times < 5; times++) await look();
    expect(seen.size).toBe(1);
  });

  test('is spoken for by a proxy that repeats the key, which the client keeps to itself', async () => {
    const { simulation, client, cloud } = world();
    cloud.outOfOrder = true;
    const answer = during(simulation, client.check('a'));
    await expect(answer).rejects.toThrow(UnavailableError);
    await expect(answer).rejects.toThrow(/^(?!.*a-key-of-the-cloud).*Bad gateway/);
  });

  test('has lists that are old only while things go wrong in the world', async () => {
    const simulation = seeded(7);
    const cloud = simulatedCloud(simulation, API_KEY);
    const ages = (faulty: boolean) => {
      simulation.network.faulty = faulty;
      for (let times = 0; times < 50; times++)
        cloud.receive({ method: 'GET', path: '/servers', headers: { authorization: `Bearer ${API_KEY}` } });
      return simulation.counts.of('a list was old');
    };
    expect(ages(false)).toBe(0);
    expect(ages(true)).toBeGreaterThan(0);
  });
});
