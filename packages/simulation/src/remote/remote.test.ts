import { describe, expect, test } from 'vitest';
import { type Simulation, seeded } from '../world/simulation.ts';
import { RemoteClient, RemoteError } from './client.ts';
import { REMOTE, type Remote, startRemote } from './remote.ts';

const { signal } = new AbortController();

function world(): { simulation: Simulation; remote: Remote; client: RemoteClient } {
  const simulation = seeded(1);
  const remote = startRemote(simulation, 'secret');
  return {
    simulation,
    remote,
    client: new RemoteClient({ world: simulation.start('user'), token: 'secret' }),
  };
}

/** Lets virtual time pass until the promise has settled, and gives what it gave. */
async function settled<T>(simulation: Simulation, promise: Promise<T>): Promise<T> {
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  promise.then(over, over);
  await simulation.run({ until: simulation.schedule.now + 120_000, done: () => isOver });
  return promise;
}

describe('the remote backend', () => {
  test('makes one machine a key for as long as it is there, and two without a key', async () => {
    const { simulation, remote, client } = world();
    const create = (key?: string) =>
      settled(simulation, client.create({ size: 1, ...(key && { key }) }, signal));
    const first = await create('k');
    expect((await create('k')).id).toBe(first.id);
    await settled(simulation, client.delete(first.id, signal));
    expect((await create('k')).state).toBe('deleting'); // it still holds its key
    await simulation.run({ until: simulation.schedule.now + 60_000 });
    expect((await create('k')).id).not.toBe(first.id);
    await create();
    await create();
    expect(remote.machines.size).toBe(3);
  });

  test('knows what there was at each moment, which is what an old list shows', async () => {
    const { simulation, remote, client } = world();
    const { id } = await settled(simulation, client.create({ size: 1 }, signal));
    await simulation.run({ until: simulation.schedule.now + 60_000 });
    await settled(simulation, client.resize(id, 2, signal));
    await settled(simulation, client.delete(id, signal));
    await simulation.run({ until: simulation.schedule.now + 60_000 });
    const told = remote.history.map(({ atMs }) =>
      remote.at(atMs).map(({ state, size }) => `${state} ${size}`),
    );
    expect(told).toEqual([['creating 1'], ['ready 1'], ['ready 2'], ['deleting 2'], []]);
  });

  test('carries out a create whose client has given up', async () => {
    const { simulation, remote } = world();
    const client = new RemoteClient({ world: simulation.start('hasty'), token: 'secret', timeoutMs: 0 });
    await expect(settled(simulation, client.create({ size: 1 }, signal))).rejects.toThrow('no answer');
    await simulation.run({ until: simulation.schedule.now + 60_000 });
    expect(remote.machines.size).toBe(1);
  });

  test('answers nobody without the token, and says so without telling it', async () => {
    const { simulation } = world();
    const client = new RemoteClient({ world: simulation.start('stranger'), token: 'guess' });
    const refused = settled(simulation, client.list(signal));
    await expect(refused).rejects.toThrow(RemoteError);
    await expect(refused).rejects.toMatchObject({ status: 401, code: 'REMOTE' });
    await expect(refused).rejects.not.toThrow(/guess|secret/);
    expect(REMOTE).toMatch(/^https:/);
  });
});
