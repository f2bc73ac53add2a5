import { join } from 'node:path';
import { jsonLogger } from '@vmwright/core';
import { temporaryFolder } from '@vmwright/testbed';
import { describe, expect, onTestFinished, test } from 'vitest';
import { VirtualWorld } from '../../../test/virtual-world.ts';
import { CloudMetrics } from '../metrics/cloud-metrics.ts';
import { SimulatedDriver } from '../simulated/simulated-driver.ts';
import { Store } from '../store/store.ts';
import type { Driver, Observation } from './driver.ts';
import { Machines } from './machines.ts';

const SIMULATED = {
  seed: 1,
  bootMs: { min: 1_000, max: 1_000 },
  stopMs: { min: 2_000, max: 2_000 },
  failureProbability: 0,
  cpu: { min: 40, max: 40, periodMs: 1_000, noise: 0 },
};

/** Does what it is told, when it is told to. */
class HandDriver implements Driver {
  readonly name = 'hand';
  readonly done: string[] = [];
  observation: Observation = { state: 'building', cpuUtilization: 0 };
  starting: (id: string) => Promise<void> = async () => undefined;
  stopping: (id: string) => Promise<void> = async () => undefined;

  async start({ id }: { id: string }): Promise<void> {
    this.done.push(`start ${id}`);
    await this.starting(id);
    this.done.push(`started ${id}`);
  }

  async stop({ id }: { id: string }): Promise<void> {
    this.done.push(`stop ${id}`);
    await this.stopping(id);
    this.done.push(`stopped ${id}`);
  }

  observe(): Observation {
    return this.observation;
  }

  async close(): Promise<void> {
    this.done.push('close');
  }
}

async function start(make: (clock: VirtualWorld) => Driver) {
  const clock = new VirtualWorld();
  const file = join(await temporaryFolder('machines'), 'cloud.sqlite');
  const audit: string[] = [];
  const lines: string[] = [];
  const open = () =>
    new Store({
      file,
      clock,
      keepKeysMs: 1_000,
      writeAudit: (line) => void audit.push(JSON.parse(line).event),
    });
  let store = open();
  const log = jsonLogger({ clock, level: 'debug', write: (line) => void lines.push(line) });
  const metrics = new CloudMetrics();
  const machinesOf = () =>
    new Machines({ store, driver: make(clock), clock, log, metrics, observeEveryMs: 100 });
  let machines = machinesOf();
  machines.resume();
  onTestFinished(async () => {
    await machines.close();
    store[Symbol.dispose]();
  });
  return {
    clock,
    audit,
    lines,
    metrics,
    get store() {
      return store;
    },
    get machines() {
      return machines;
    },
    async restart() {
      await machines.close();
      store[Symbol.dispose]();
      store = open();
      machines = machinesOf();
      machines.resume();
    },
    /** Lets time pass, with all that comes of it. */
    async pass(ms: number) {
      for (let left = ms; left > 0; left -= 50) {
        clock.advance(50);
        for (let turn = 0; turn < 10; turn++) await Promise.resolve();
      }
    },
  };
}

describe('a server', () => {
  test('runs once it has booted, and is gone some time after it is deleted', async () => {
    const all = await start((clock) => new SimulatedDriver(SIMULATED, clock));
    const { id } = all.store.create('1', { name: 'x' }, undefined);
    all.machines.attend(id);
    await all.pass(950);
    expect(all.store.find(id)?.state).toBe('building');
    await all.pass(200);
    const running = all.store.find(id);
    expect(running?.state).toBe('running');
    expect(running && all.machines.cpuUtilizationOf(running)).toBe(40);
    all.store.beginDelete(id);
    all.machines.attend(id);
    await all.pass(1_950);
    expect(all.store.find(id)?.state).toBe('deleting');
    await all.pass(100);
    expect(all.store.find(id)).toBeUndefined();
    expect(all.audit).toEqual(['created', 'running', 'deleting', 'deleted']);
    const text = all.metrics.text(all.store.countByState());
    expect(text).toContain('vmwright_cloud_driver_operations_total{operation="start",result="success"} 1\n');
    expect(text).toContain('vmwright_cloud_driver_operations_total{operation="stop",result="success"} 1\n');
  });

  test('goes through the same after a restart at any point of it', async () => {
    for (const restartAfter of [50, 900, 1_500, 2_200, 3_000]) {
      const all = await start((clock) => new SimulatedDriver(SIMULATED, clock));
      all.machines.attend(all.store.create('1', { name: 'x' }, undefined).id);
      const states: (string | undefined)[] = [];
      for (let at = 50; at <= 4_500; at += 50) {
        if (at === restartAfter) await all.restart();
        if (at === 2_000) {
          all.store.beginDelete('1');
          all.machines.attend('1');
        }
        await all.pass(50);
        if (at % 500 === 250) states.push(all.store.find('1')?.state);
      }
      // Every half second from 0.25 s on; deleted after 2 s, gone 2 s later.
      expect(states, `restarted after ${restartAfter} ms`).toEqual([
        ...['building', 'building', 'running', 'running', 'deleting', 'deleting', 'deleting', 'deleting'],
        undefined,
      ]);
    }
  });

  test('that fails to boot is failed, with the reason', async () => {
    const all = await start((clock) => new SimulatedDriver({ ...SIMULATED, failureProbability: 1 }, clock));
    all.machines.attend(all.store.create('1', { name: 'x' }, undefined).id);
    await all.pass(1_200);
    expect(all.store.find('1')).toMatchObject({ state: 'failed', message: 'the simulated boot has failed' });
  });

  test('that cannot be started is failed, with the reason', async () => {
    const driver = new HandDriver();
    driver.starting = async () => {
      throw new Error('no memory');
    };
    const all = await start(() => driver);
    all.machines.attend(all.store.create('1', { name: 'x' }, undefined).id);
    await all.pass(100);
    expect(all.store.find('1')).toMatchObject({ state: 'failed', message: 'no memory' });
    expect(driver.done).toEqual(['start 1']);
  });

  test('that runs and then dies is failed', async () => {
    const driver = new HandDriver();
    const all = await start(() => driver);
    all.machines.attend(all.store.create('1', { name: 'x' }, undefined).id);
    driver.observation = { state: 'running', cpuUtilization: 7 };
    await all.pass(150);
    driver.observation = { state: 'failed', message: 'its process has ended', cpuUtilization: 0 };
    await all.pass(150);
    expect(all.store.find('1')).toMatchObject({ state: 'failed', message: 'its process has ended' });
    expect(all.audit).toEqual(['created', 'running', 'failed']);
  });

  test('that is deleted while it is started is stopped after it, never meanwhile', async () => {
    const driver = new HandDriver();
    const go = Promise.withResolvers<void>();
    driver.starting = () => go.promise;
    const all = await start(() => driver);
    all.machines.attend(all.store.create('1', { name: 'x' }, undefined).id);
    all.store.beginDelete('1');
    all.machines.attend('1');
    await all.pass(200);
    expect(driver.done).toEqual(['start 1']);
    go.resolve();
    await all.pass(50);
    expect(driver.done).toEqual(['start 1', 'started 1', 'stop 1', 'stopped 1']);
    expect(all.store.find('1')).toBeUndefined();
  });

  test('that cannot be removed says so, and is tried again, with growing waits', async () => {
    const driver = new HandDriver();
    let works = false;
    driver.stopping = async () => {
      if (!works) throw new Error('the disk is busy');
    };
    const all = await start(() => driver);
    all.store.create('1', { name: 'x' }, undefined);
    all.store.beginDelete('1');
    all.machines.attend('1');
    await all.pass(50);
    const message = 'It cannot be removed yet: the disk is busy. It is tried again.';
    expect(all.store.find('1')).toMatchObject({ state: 'deleting', message });
    expect(all.lines.join('')).toContain('"error":"the disk is busy"');
    await all.pass(10_000);
    // After 0.5, 1, 2 and 4 s.
    expect(driver.done).toEqual(Array.from({ length: 5 }, () => 'stop 1'));
    works = true;
    await all.pass(8_000);
    expect(all.store.find('1')).toBeUndefined();
  });
});

test('closing waits for no machine, and the driver is closed last', async () => {
  const driver = new HandDriver();
  const all = await start((clock) => {
    const simulated = new SimulatedDriver(SIMULATED, clock);
    return {
      name: 'both',
      start: () => simulated.start(),
      stop: (machine, signal) => simulated.stop(machine, signal),
      observe: (machine) => simulated.observe(machine),
      close: () => driver.close(),
    };
  });
  all.store.create('1', { name: 'x' }, undefined);
  all.store.beginDelete('1');
  all.machines.attend('1');
  await all.machines.close();
  expect(driver.done).toEqual(['close']);
  expect(all.store.find('1')?.state).toBe('deleting');
  expect(all.clock.alarms).toBe(0);
});
