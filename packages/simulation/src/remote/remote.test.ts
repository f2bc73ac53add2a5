import { describe, expect, test } from 'vitest';
import { type Simulation, seeded } from '../world/simulation.ts';
import { RemoteClient, RemoteError } from './client.ts';
import { REMOTE, type Remote, startRemote } from './remote.ts';

const { signal } = new AbortController();

function setup(): { simulation: Simulation; remote: Remote; client: RemoteClient } {
  const simulation = seeded(1);
  const remote = startRemote(simulation, 'secret');
  return {
    simulation,
    remote,
    client: new RemoteClient({ world: simulation.start('user'), token: 'secret' }),
  };
}

/** Advances virtual time until the promise has settled, and returns its result. */
async function settled<T>(simulation: Simulation, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const onSettled = () => {
    isSettled = true;
  };
  promise.then(onSettled, onSettled);
  await simulation.run({ until: simulation.schedule.now + 120_000, done: () => isSettled });
  return promise;
}

describe('Remote', () => {
  test('if a machine has the idempotency key of a create request, the backend returns this machine; otherwise it creates one', async () => {
    const { simulation, remote, client } = setup();
    const create = (key?: string) =>
      settled(simulation, client.create({ size: 1, ...(key && { key }) }, signal));
    const first = await create('k');
    expect((await create('k')).id).toBe(first.id);
    await settled(simulation, client.delete(first.id, signal));
    expect((await create('k')).state).toBe('deleting'); // the machine that is being deleted still holds the key
    await simulation.run({ until: simulation.schedule.now + 60_000 });
    expect((await create('k')).id).not.toBe(first.id);
    await create();
    await create();
    expect(remote.machines.size).toBe(3);
  });

  test('the backend returns the machines as of any moment in the past', async () => {
    const { simulation, remote, client } = setup();
    const { id } = await settled(simulation, client.create({ size: 1 }, signal));
    await simulation.run({ until: simulation.schedule.now + 60_000 });
    await settled(simulation, client.resize(id, 2, signal));
    await settled(simulation, client.delete(id, signal));
    await simulation.run({ until: simulation.schedule.now + 60_000 });
    const states = remote.history.map(({ atMs }) =>
      remote.at(atMs).map(({ state, size }) => `${state} ${size}`),
    );
    expect(states).toEqual([['creating 1'], ['ready 1'], ['ready 2'], ['deleting 2'], []]);
  });

  test('the backend executes a create request even if the client timed out before the request arrived', async () => {
    const { simulation, remote } = setup();
    const client = new RemoteClient({ world: simulation.start('hasty'), token: 'secret', timeoutMs: 0 });
    await expect(settled(simulation, client.create({ size: 1 }, signal))).rejects.toThrow('no response');
    await simulation.run({ until: simulation.schedule.now + 60_000 });
    expect(remote.machines.size).toBe(1);
  });

  test('the backend rejects a request with a wrong token, and the error contains no token', async () => {
    const { simulation } = setup();
    const client = new RemoteClient({ world: simulation.start('unauthorized'), token: 'guess' });
    const rejected = settled(simulation, client.list(signal));
    await expect(rejected).rejects.toThrow(RemoteError);
    await expect(rejected).rejects.toMatchObject({ status: 401, code: 'REMOTE' });
    await expect(rejected).rejects.not.toThrow(/guess|secret/);
    expect(REMOTE).toMatch(/^https:/);
  });
});
