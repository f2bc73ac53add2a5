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

/** Driver that records its calls. Tests set its behaviour. */
class ScriptedDriver implements Driver {
  readonly name = 'scripted';
  readonly calls: string[] = [];
  observation: Observation = { state: 'building', cpuUtilization: 0 };
  onStart: (id: string) => Promise<void> = async () => undefined;
  onStop: (id: string) => Promise<void> = async () => undefined;

  async start({ id }: { id: string }): Promise<void> {
    this.calls.push(`start ${id}`);
    await this.onStart(id);
    this.calls.push(`started ${id}`);
  }

  async stop({ id }: { id: string }): Promise<void> {
    this.calls.push(`stop ${id}`);
    await this.onStop(id);
    this.calls.push(`stopped ${id}`);
  }

  observe(): Observation {
    return this.observation;
  }

  async close(): Promise<void> {
    this.calls.push('close');
  }
}

async function start(createDriver: (clock: VirtualWorld) => Driver) {
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
  const createMachines = () =>
    new Machines({ store, driver: createDriver(clock), clock, log, metrics, observeEveryMs: 100 });
  let machines = createMachines();
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
      machines = createMachines();
      machines.resume();
    },
    /** Advances the clock in small steps and lets the resulting promises settle. */
    async advance(ms: number) {
      for (let left = ms; left > 0; left -= 50) {
        clock.advance(50);
        for (let turn = 0; turn < 10; turn++) await Promise.resolve();
      }
    },
  };
}

describe('servers', () => {
  test('a server is running after its boot time and removed after its stop time', async () => {
    const env = await start((clock) => new SimulatedDriver(SIMULATED, clock));
    const { id } = env.store.create('1', { name: 'x' }, undefined);
    env.machines.enqueue(id);
    await env.advance(950);
    expect(env.store.find(id)?.state).toBe('building');
    await env.advance(200);
    const running = env.store.find(id);
    expect(running?.state).toBe('running');
    expect(running && env.machines.cpuUtilizationOf(running)).toBe(40);
    env.store.beginDelete(id);
    env.machines.enqueue(id);
    await env.advance(1_950);
    expect(env.store.find(id)?.state).toBe('deleting');
    await env.advance(100);
    expect(env.store.find(id)).toBeUndefined();
    expect(env.audit).toEqual(['created', 'running', 'deleting', 'deleted']);
    const text = env.metrics.text(env.store.countByState());
    expect(text).toContain('vmwright_cloud_driver_operations_total{operation="start",result="success"} 1\n');
    expect(text).toContain('vmwright_cloud_driver_operations_total{operation="stop",result="success"} 1\n');
  });

  test('a server passes through the same states at the same times if the cloud is restarted', async () => {
    for (const restartAfter of [50, 900, 1_500, 2_200, 3_000]) {
      const env = await start((clock) => new SimulatedDriver(SIMULATED, clock));
      env.machines.enqueue(env.store.create('1', { name: 'x' }, undefined).id);
      const states: (string | undefined)[] = [];
      for (let at = 50; at <= 4_500; at += 50) {
        if (at === restartAfter) await env.restart();
        if (at === 2_000) {
          env.store.beginDelete('1');
          env.machines.enqueue('1');
        }
        await env.advance(50);
        if (at % 500 === 250) states.push(env.store.find('1')?.state);
      }
      // States are sampled every 0.5 s from 0.25 s on. The server is deleted after 2 s and removed 2 s later.
      expect(states, `restarted after ${restartAfter} ms`).toEqual([
        ...['building', 'building', 'running', 'running', 'deleting', 'deleting', 'deleting', 'deleting'],
        undefined,
      ]);
    }
  });

  test('a server has the state failed and a message if its boot fails', async () => {
    const env = await start((clock) => new SimulatedDriver({ ...SIMULATED, failureProbability: 1 }, clock));
    env.machines.enqueue(env.store.create('1', { name: 'x' }, undefined).id);
    await env.advance(1_200);
    expect(env.store.find('1')).toMatchObject({ state: 'failed', message: 'simulated boot failure' });
  });

  test('a server has the state failed and a message if the driver cannot start it', async () => {
    const driver = new ScriptedDriver();
    driver.onStart = async () => {
      throw new Error('no memory');
    };
    const env = await start(() => driver);
    env.machines.enqueue(env.store.create('1', { name: 'x' }, undefined).id);
    await env.advance(100);
    expect(env.store.find('1')).toMatchObject({ state: 'failed', message: 'no memory' });
    expect(driver.calls).toEqual(['start 1']);
  });

  test('a server has the state failed and a message if its running machine dies', async () => {
    const driver = new ScriptedDriver();
    const env = await start(() => driver);
    env.machines.enqueue(env.store.create('1', { name: 'x' }, undefined).id);
    driver.observation = { state: 'running', cpuUtilization: 7 };
    await env.advance(150);
    driver.observation = { state: 'failed', message: 'the process has exited', cpuUtilization: 0 };
    await env.advance(150);
    expect(env.store.find('1')).toMatchObject({ state: 'failed', message: 'the process has exited' });
    expect(env.audit).toEqual(['created', 'running', 'failed']);
  });

  test('a server that is deleted during its start is stopped only after the start has finished', async () => {
    const driver = new ScriptedDriver();
    const startGate = Promise.withResolvers<void>();
    driver.onStart = () => startGate.promise;
    const env = await start(() => driver);
    env.machines.enqueue(env.store.create('1', { name: 'x' }, undefined).id);
    env.store.beginDelete('1');
    env.machines.enqueue('1');
    await env.advance(200);
    expect(driver.calls).toEqual(['start 1']);
    startGate.resolve();
    await env.advance(50);
    expect(driver.calls).toEqual(['start 1', 'started 1', 'stop 1', 'stopped 1']);
    expect(env.store.find('1')).toBeUndefined();
  });

  test('a failed removal is retried with exponential back-off, and the message of the server contains the error', async () => {
    const driver = new ScriptedDriver();
    let canStop = false;
    driver.onStop = async () => {
      if (!canStop) throw new Error('the disk is busy');
    };
    const env = await start(() => driver);
    env.store.create('1', { name: 'x' }, undefined);
    env.store.beginDelete('1');
    env.machines.enqueue('1');
    await env.advance(50);
    const message = 'Removing the machine failed: the disk is busy; retrying automatically';
    expect(env.store.find('1')).toMatchObject({ state: 'deleting', message });
    expect(env.lines.join('')).toContain('"error":"the disk is busy"');
    await env.advance(10_000);
    // Retried after 0.5, 1, 2 and 4 s.
    expect(driver.calls).toEqual(Array.from({ length: 5 }, () => 'stop 1'));
    canStop = true;
    await env.advance(8_000);
    expect(env.store.find('1')).toBeUndefined();
  });
});

test('close does not wait until machines are removed, and closes the driver last', async () => {
  const driver = new ScriptedDriver();
  const env = await start((clock) => {
    const simulated = new SimulatedDriver(SIMULATED, clock);
    return {
      name: 'simulated',
      start: () => simulated.start(),
      stop: (machine, signal) => simulated.stop(machine, signal),
      observe: (machine) => simulated.observe(machine),
      close: () => driver.close(),
    };
  });
  env.store.create('1', { name: 'x' }, undefined);
  env.store.beginDelete('1');
  env.machines.enqueue('1');
  await env.machines.close();
  expect(driver.calls).toEqual(['close']);
  expect(env.store.find('1')?.state).toBe('deleting');
  expect(env.clock.timers).toBe(0);
});
