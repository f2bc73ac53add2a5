import { describe, expect, test } from 'vitest';
import type { ModelResponse } from '../world/server.ts';
import { type Simulation, seeded } from '../world/simulation.ts';
import { FaultInjector } from './fault-injector.ts';
import type { ReplicaWorld } from './replica-world.ts';
import { type Program, Replicas } from './replicas.ts';
import { Traffic } from './traffic.ts';

const SERVER = 'https://server.simulated';
const OTHER = 'https://other.simulated';

/** Starts a server that records the sender of each write. */
function serving(traffic: Traffic, origin: string): string[] {
  const arrived: string[] = [];
  const yes: ModelResponse = { status: 200, body: '{}' };
  traffic.serve(origin, {
    receive: ({ body = '' }) => {
      arrived.push(body);
      return yes;
    },
    reject: (status) => ({ status, body: '{}' }),
  });
  return arrived;
}

/** Program that writes its identity to a server once a second. */
const writing =
  (origin: string): Program =>
  (world) =>
    new Promise((resolve) => {
      const transport = world.connect({ origin });
      const write = () => {
        transport
          .request({ method: 'POST', path: '/', headers: {}, body: world.identity })
          .catch(() => undefined);
        world.after(1_000, write);
      };
      write();
      world.stopping.addEventListener('abort', () => resolve());
    });

function stage(program: Program): { simulation: Simulation; traffic: Traffic; replicas: Replicas } {
  const simulation = seeded(1);
  const traffic = new Traffic(simulation);
  return {
    simulation,
    traffic,
    replicas: new Replicas({ simulation, traffic, names: ['alpha', 'beta'], program }),
  };
}

const pass = (simulation: Simulation, ms: number) => simulation.run({ until: simulation.schedule.now + ms });

describe('replicas', () => {
  test('a crashed replica restarts under a new identity, and the requests that it had sent still arrive', async () => {
    const { simulation, traffic, replicas } = stage(writing(SERVER));
    const arrived = serving(traffic, SERVER);
    replicas.start();
    replicas.crash('alpha');
    await pass(simulation, 60_000);
    expect(arrived.filter((sender) => sender === 'alpha.1')).toHaveLength(1);
    expect(new Set(arrived)).toEqual(new Set(['alpha.1', 'alpha.2', 'beta.1']));
    expect(simulation.counts.of('a replica crashed')).toBe(1);
  });

  test('a replica that does not stop within its grace period is killed', async () => {
    const stubborn: Program = () => new Promise(() => undefined);
    for (const [program, how] of [
      [writing(SERVER), 'a replica ended'],
      [stubborn, 'a replica was killed'],
    ] as const) {
      const { simulation, traffic, replicas } = stage(program);
      serving(traffic, SERVER);
      replicas.start();
      replicas.stop('beta');
      await pass(simulation, 60_000);
      expect(simulation.counts.of(how)).toBe(1);
    }
  });

  test('a replica is restarted when its program fails', async () => {
    let starts = 0;
    const { simulation, replicas } = stage(async () => {
      starts += 1;
      if (starts === 1) throw new Error('no list');
      await new Promise(() => undefined);
    });
    replicas.start();
    await pass(simulation, 60_000);
    expect([starts, simulation.counts.of('a replica failed')]).toEqual([3, 1]);
  });

  test('a paused replica does nothing, and a restarted replica keeps its clock skew', async () => {
    const worlds: ReplicaWorld[] = [];
    const { simulation, traffic, replicas } = stage((world) => {
      worlds.push(world);
      return writing(SERVER)(world);
    });
    const arrived = serving(traffic, SERVER);
    replicas.start();
    replicas.setClock('alpha', 5_000);
    await pass(simulation, 30_000);
    replicas.pause('alpha');
    await pass(simulation, 15_000); // the requests that it sent before the pause have arrived
    arrived.length = 0;
    await pass(simulation, 30_000);
    expect(new Set(arrived)).toEqual(new Set(['beta.1']));
    replicas.resume('alpha');
    await pass(simulation, 30_000);
    expect(arrived).toContain('alpha.1');
    replicas.crash('alpha');
    await pass(simulation, 30_000);
    const [alpha, beta, restarted] = worlds;
    expect(alpha?.identity).toBe('alpha.1');
    expect((restarted?.now() ?? 0) - (beta?.now() ?? 0)).toBe(5_000);
  });
});

test('after the faults have stopped, every replica runs and reaches every server', async () => {
  for (let seed = 1; seed <= 50; seed++) {
    const simulation = seeded(seed);
    const traffic = new Traffic(simulation);
    const [here, there] = [serving(traffic, SERVER), serving(traffic, OTHER)];
    const program: Program = (world) => Promise.race([writing(SERVER)(world), writing(OTHER)(world)]);
    const replicas = new Replicas({ simulation, traffic, names: ['alpha', 'beta'], program });
    const faultInjector = new FaultInjector({ simulation, replicas, origins: [SERVER, OTHER] });
    replicas.start();
    faultInjector.begin(60_000);
    await pass(simulation, 60_000);
    faultInjector.heal();
    await pass(simulation, 60_000); // ended replicas have restarted, and requests in flight have arrived
    for (const arrived of [here, there]) arrived.length = 0;
    await pass(simulation, 30_000);
    for (const arrived of [here, there])
      expect(new Set(arrived.map((sender) => sender.split('.')[0])), `seed ${seed}`).toEqual(
        new Set(['alpha', 'beta']),
      );
  }
});
