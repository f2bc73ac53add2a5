import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { jsonLogger, nodeWorld } from '@vmwright/core';
import { temporaryFolder } from '@vmwright/testbed';
import { describe, expect, onTestFinished, test } from 'vitest';
import { bootSector, findQemu } from '../../../test/qemu.ts';
import type { Machine, Observation } from '../machines/driver.ts';
import { processesOf, readPid } from './processes.ts';
import { QemuDriver } from './qemu-driver.ts';
import { defaultBinary, type QemuSettings } from './settings.ts';

const FAKE_QEMU = fileURLToPath(new URL('../../../test/fake-qemu.ts', import.meta.url));
const log = jsonLogger({ clock: nodeWorld, level: 'error', write: () => undefined });
const never = new AbortController().signal;

async function settingsWith(overrides: Partial<QemuSettings> = {}): Promise<QemuSettings> {
  return {
    binary: FAKE_QEMU,
    dir: join(await temporaryFolder('qemu'), 'm'),
    memoryMb: 64,
    cpus: 1,
    accel: 'tcg',
    cpu: undefined,
    image: undefined,
    imageFormat: 'raw',
    args: [],
    ...overrides,
  };
}

function createMachine(name = 'vmsample'): Machine {
  const machine = { id: crypto.randomUUID(), name, createdAt: Date.now(), deletingSince: undefined };
  onTestFinished(() => {
    for (const pid of processesOf(machine.id)) process.kill(pid, 'SIGKILL');
  });
  return machine;
}

/** Processes send no events, so the tests poll. The timeout allows for slow emulation. */
const POLL_OPTIONS = { interval: 20, timeout: 60_000 };

async function open(settings: QemuSettings): Promise<QemuDriver> {
  const driver = await QemuDriver.open(settings, { clock: nodeWorld, log });
  onTestFinished(() => driver.close());
  return driver;
}

/** Polls until the observation satisfies the predicate. @returns the observation */
async function waitForObservation(
  driver: QemuDriver,
  machine: Machine,
  predicate: (observation: Observation) => boolean,
) {
  let observation = driver.observe(machine);
  const check = () => {
    observation = driver.observe(machine);
    return predicate(observation);
  };
  await expect.poll(check, POLL_OPTIONS).toBe(true);
  return observation;
}

function setFakeBehaviour(behaviour: string): void {
  process.env.FAKE_QEMU = behaviour;
  onTestFinished(() => void delete process.env.FAKE_QEMU);
}

/** Tests the whole lifecycle, with the real QEMU and with the fake one. */
async function testLifecycle(settings: QemuSettings): Promise<void> {
  const machine = createMachine();
  const first = await open(settings);
  await first.start(machine, never);
  const [pid, ...others] = processesOf(machine.id);
  expect(others).toEqual([]);
  expect(await waitForObservation(first, machine, ({ state }) => state === 'running')).toMatchObject({
    state: 'running',
  });
  const console = join(settings.dir, machine.id, 'console.log');
  await expect.poll(() => readFileSync(console, 'utf8'), POLL_OPTIONS).toMatch(/^booted/);
  const { cpuUtilization } = await waitForObservation(
    first,
    machine,
    (observation) => observation.cpuUtilization > 10,
  );
  expect(cpuUtilization).toBeLessThanOrEqual(100);

  // After a restart of the cloud the same process still runs the machine.
  await first.close();
  const second = await open(settings);
  await second.start(machine, never);
  expect(processesOf(machine.id)).toEqual([pid]);
  await waitForObservation(second, machine, ({ state }) => state === 'running');

  await second.stop(machine, never);
  expect(processesOf(machine.id)).toEqual([]);
  expect(existsSync(join(settings.dir, machine.id))).toBe(false);
  await second.stop(machine, never); // The cloud calls stop again if it crashed before it stored the removal.
}

describe('with the real QEMU', () => {
  test('a machine starts, is found again after a restart of the cloud, and stops; without QEMU, open fails', async () => {
    const qemu = await findQemu();
    const settings = await settingsWith();
    if ('why' in qemu) {
      // Without QEMU, only the error of `open` is tested here. The tests with the fake QEMU test the lifecycle.
      console.warn(`The real QEMU is not tested: ${qemu.why}`);
      await expect(open({ ...settings, binary: defaultBinary() })).rejects.toThrow(
        /^the qemu driver needs qemu-system/,
      );
      return;
    }
    const image = join(settings.dir, '..', 'disk.img');
    writeFileSync(image, bootSector());
    await testLifecycle({ ...settings, ...qemu, image });
    expect(readFileSync(image)).toEqual(bootSector());
  });

  test('accel auto uses KVM if it works, and emulation otherwise; accel kvm is rejected if KVM does not work', async () => {
    const qemu = await findQemu();
    if ('why' in qemu) return expect(qemu.why).not.toBe('');
    const settings = { ...(await settingsWith()), ...qemu };
    const lines: string[] = [];
    const infoLog = jsonLogger({ clock: nodeWorld, level: 'info', write: (line) => void lines.push(line) });
    const driver = await QemuDriver.open({ ...settings, accel: 'auto' }, { clock: nodeWorld, log: infoLog });
    await driver.close();
    expect(lines.join('')).toMatch(/"version":"QEMU emulator version [^"]+","accel":"(kvm|tcg)"/);
    // Simulates a host on which KVM does not work: with an unknown CPU model, `testKvm` fails on every host.
    const broken = { ...settings, accel: 'kvm', cpu: 'no-such-cpu' } as const;
    await expect(open(broken)).rejects.toThrow(/^qemu.accel is kvm, but KVM does not work on this host: /);
  });
});

describe('with a fake QEMU', () => {
  test('a machine starts, is found again after a restart of the cloud, and stops', async () => {
    await testLifecycle(await settingsWith());
  });

  test('concurrent starts of one machine leave one process', async () => {
    const settings = await settingsWith();
    const machine = createMachine();
    const drivers = await Promise.all([open(settings), open(settings), open(settings)]);
    await Promise.all(drivers.map((driver) => driver.start(machine, never)));
    await expect.poll(() => processesOf(machine.id), POLL_OPTIONS).toHaveLength(1); // the processes that lost the race exit
    expect(processesOf(machine.id)).toEqual([readPid(join(settings.dir, machine.id, 'pid'))]);
  });

  test('a driver with a different `dir` does not start a running machine again', async () => {
    const settings = await settingsWith();
    const machine = createMachine();
    await (await open(settings)).start(machine, never);
    const [pid] = processesOf(machine.id);
    const elsewhere = await open({ ...settings, dir: `${settings.dir}2` });
    await elsewhere.start(machine, never);
    expect(processesOf(machine.id)).toEqual([pid]);
    await elsewhere.stop(machine, never);
    expect(processesOf(machine.id)).toEqual([]);
  });

  test('a machine fails when its process exits, and its message names the console log', async () => {
    setFakeBehaviour('exits');
    const settings = await settingsWith();
    const machine = createMachine();
    const driver = await open(settings);
    await driver.start(machine, never);
    const { message } = await waitForObservation(driver, machine, ({ state }) => state === 'failed');
    const console = join(settings.dir, machine.id, 'console.log');
    expect(message).toBe(`the QEMU process has exited; see the console log ${console}`);
    expect(readFileSync(console, 'utf8')).toBe('booted vmsample\n');
  });

  test('a machine that QEMU reports as paused counts as failed', async () => {
    setFakeBehaviour('paused');
    const driver = await open(await settingsWith());
    const machine = createMachine();
    await driver.start(machine, never);
    const { message } = await waitForObservation(driver, machine, ({ state }) => state === 'failed');
    expect(message).toBe('QEMU reports the run state "paused"');
  });

  test('a failed start throws with the error output of QEMU', async () => {
    setFakeBehaviour('fails');
    const driver = await open(await settingsWith());
    await expect(driver.start(createMachine(), never)).rejects.toThrow(
      'QEMU failed to start: fake-qemu: -drive: Could not open the disk',
    );
  });

  test('stop kills a machine that ignores the QMP command quit', async () => {
    setFakeBehaviour('ignores-quit');
    const driver = await open(await settingsWith());
    const machine = createMachine();
    await driver.start(machine, never);
    await driver.stop(machine, never);
    expect(processesOf(machine.id)).toEqual([]);
  });

  test('stop removes a machine after its start was interrupted', async () => {
    const settings = await settingsWith();
    const driver = await open(settings);
    for (let round = 0; round < 5; round++) {
      const machine = createMachine();
      const interrupted = new AbortController();
      const starting = driver.start(machine, interrupted.signal).catch(() => undefined);
      await sleep(round * 15); // interrupts the start at a different point each round
      interrupted.abort();
      await driver.stop(machine, never);
      await starting;
      await driver.stop(machine, never);
      expect(processesOf(machine.id)).toEqual([]);
    }
  });
});

describe('open', () => {
  test('open fails without QEMU', async () => {
    const missing = open(await settingsWith({ binary: 'qemu-system-nowhere' }));
    await expect(missing).rejects.toThrow(
      'the qemu driver needs qemu-system-nowhere, which is not installed; install it, or set qemu.binary in the --config file',
    );
  });

  test('open fails if the disk image does not exist', async () => {
    await expect(open(await settingsWith({ image: '/nowhere/disk.img' }))).rejects.toThrow(
      'qemu.image: /nowhere/disk.img does not exist',
    );
  });

  test('open fails if the path of dir is too long for a socket', async () => {
    const dir = join(await temporaryFolder('qemu'), 'x'.repeat(80));
    await expect(open(await settingsWith({ dir }))).rejects.toThrow(
      `qemu.dir: the path ${dir} is too long for a Unix socket in it; use a shorter path`,
    );
  });

  test('open fails if the QEMU program fails', async () => {
    const binary = join(await temporaryFolder('qemu'), 'qemu');
    writeFileSync(binary, '#!/bin/sh\nexit 3\n', { mode: 0o755 });
    await expect(open(await settingsWith({ binary }))).rejects.toThrow(
      `cannot run ${binary}: Command failed`,
    );
  });
});
