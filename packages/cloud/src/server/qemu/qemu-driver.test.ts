import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { jsonLogger, nodeWorld } from '@vmwright/core';
import { temporaryFolder } from '@vmwright/testbed';
import { describe, expect, onTestFinished, test } from 'vitest';
import { bootSector, findQemu } from '../../../test/qemu.ts';
import type { Machine, Observation } from '../machines/driver.ts';
import { pidIn, processesOf } from './processes.ts';
import { QemuDriver } from './qemu-driver.ts';
import { defaultBinary, type QemuSettings } from './settings.ts';

const IMITATION = fileURLToPath(new URL('../../../test/qemu-imitation.ts', import.meta.url));
const log = jsonLogger({ clock: nodeWorld, level: 'error', write: () => undefined });
const never = new AbortController().signal;

async function settingsWith(more: Partial<QemuSettings> = {}): Promise<QemuSettings> {
  return {
    binary: IMITATION,
    dir: join(await temporaryFolder('qemu'), 'm'),
    memoryMb: 64,
    cpus: 1,
    accel: 'tcg',
    cpu: undefined,
    image: undefined,
    imageFormat: 'raw',
    args: [],
    ...more,
  };
}

function machineOf(name = 'vmsample'): Machine {
  const machine = { id: crypto.randomUUID(), name, createdAt: Date.now(), deletingSince: undefined };
  onTestFinished(() => {
    for (const pid of processesOf(machine.id)) process.kill(pid, 'SIGKILL');
  });
  return machine;
}

/** Of processes, which tell nobody. A machine that is emulated takes its time. */
const POLLED = { interval: 20, timeout: 60_000 };

async function open(settings: QemuSettings): Promise<QemuDriver> {
  const driver = await QemuDriver.open(settings, { clock: nodeWorld, log });
  onTestFinished(() => driver.close());
  return driver;
}

/** Asks until it is so: a process has no event for what its monitor would say. */
async function observed(driver: QemuDriver, machine: Machine, is: (observation: Observation) => boolean) {
  let observation = driver.observe(machine);
  const look = () => {
    observation = driver.observe(machine);
    return is(observation);
  };
  await expect.poll(look, POLLED).toBe(true);
  return observation;
}

function behave(how: string): void {
  process.env.QEMU_IMITATION = how;
  onTestFinished(() => void delete process.env.QEMU_IMITATION);
}

/** What must hold of QEMU and its imitation alike. */
async function liveAndDie(settings: QemuSettings): Promise<void> {
  const machine = machineOf();
  const first = await open(settings);
  await first.start(machine, never);
  const [pid, ...others] = processesOf(machine.id);
  expect(others).toEqual([]);
  expect(await observed(first, machine, ({ state }) => state === 'running')).toMatchObject({
    state: 'running',
  });
  const console = join(settings.dir, machine.id, 'console.log');
  await expect.poll(() => readFileSync(console, 'utf8'), POLLED).toMatch(/^booted/);
  const { cpuUtilization } = await observed(first, machine, (seen) => seen.cpuUtilization > 10);
  expect(cpuUtilization).toBeLessThanOrEqual(100);

  // The cloud is killed and started again: the machine was not asked, and there is still one.
  await first.close();
  const second = await open(settings);
  await second.start(machine, never);
  expect(processesOf(machine.id)).toEqual([pid]);
  await observed(second, machine, ({ state }) => state === 'running');

  await second.stop(machine, never);
  expect(processesOf(machine.id)).toEqual([]);
  expect(existsSync(join(settings.dir, machine.id))).toBe(false);
  await second.stop(machine, never); // and once more, as after a crash before that was stored
}

describe('a machine of QEMU', () => {
  test('lives, is found again after a restart of the cloud, and dies; or QEMU is missed in a sentence', async () => {
    const qemu = await findQemu();
    const settings = await settingsWith();
    if ('why' in qemu) {
      // Not to be had here: then this is what there is to show. The imitation below shows the rest.
      console.warn(`QEMU itself is not tested: ${qemu.why}`);
      await expect(open({ ...settings, binary: defaultBinary() })).rejects.toThrow(
        /^the driver qemu needs qemu-system/,
      );
      return;
    }
    const image = join(settings.dir, '..', 'disk.img');
    writeFileSync(image, bootSector());
    await liveAndDie({ ...settings, ...qemu, image });
    expect(readFileSync(image)).toEqual(bootSector());
  });

  test('runs with KVM where that works, and is emulated where it does not', async () => {
    const qemu = await findQemu();
    if ('why' in qemu) return expect(qemu.why).not.toBe('');
    const settings = { ...(await settingsWith()), ...qemu };
    const said: string[] = [];
    const tell = jsonLogger({ clock: nodeWorld, level: 'info', write: (line) => void said.push(line) });
    await (await QemuDriver.open({ ...settings, accel: 'auto' }, { clock: nodeWorld, log: tell })).close();
    expect(said.join('')).toMatch(/"version":"QEMU emulator version [^"]+","accel":"(kvm|tcg)"/);
    // One that exists nowhere: whatever this machine has, it does not come up with it.
    const broken = { ...settings, accel: 'kvm', cpu: 'no-such-cpu' } as const;
    await expect(open(broken)).rejects.toThrow(/^qemu.accel is kvm, which does not work here: /);
  });
});

describe('a machine of the imitation of QEMU', () => {
  test('lives, is found again after a restart of the cloud, and dies', async () => {
    await liveAndDie(await settingsWith());
  });

  test('is one, however many starts there are at a time', async () => {
    const settings = await settingsWith();
    const machine = machineOf();
    const clouds = await Promise.all([open(settings), open(settings), open(settings)]);
    await Promise.all(clouds.map((driver) => driver.start(machine, never)));
    await expect.poll(() => processesOf(machine.id), POLLED).toHaveLength(1); // those who came second leave
    expect(processesOf(machine.id)).toEqual([pidIn(join(settings.dir, machine.id, 'pid'))]);
  });

  test('is found, and not started twice, by a cloud that was told another folder', async () => {
    const settings = await settingsWith();
    const machine = machineOf();
    await (await open(settings)).start(machine, never);
    const [pid] = processesOf(machine.id);
    const elsewhere = await open({ ...settings, dir: `${settings.dir}2` });
    await elsewhere.start(machine, never);
    expect(processesOf(machine.id)).toEqual([pid]);
    await elsewhere.stop(machine, never);
    expect(processesOf(machine.id)).toEqual([]);
  });

  test('that ends by itself has failed, and its console log is there to read', async () => {
    behave('dies');
    const settings = await settingsWith();
    const machine = machineOf();
    const driver = await open(settings);
    await driver.start(machine, never);
    const { message } = await observed(driver, machine, ({ state }) => state === 'failed');
    const console = join(settings.dir, machine.id, 'console.log');
    expect(message).toBe(`its process has ended; the console log is ${console}`);
    expect(readFileSync(console, 'utf8')).toBe('booted vmsample\n');
  });

  test('that stands still has failed', async () => {
    behave('paused');
    const driver = await open(await settingsWith());
    const machine = machineOf();
    await driver.start(machine, never);
    const { message } = await observed(driver, machine, ({ state }) => state === 'failed');
    expect(message).toBe('QEMU says that it is "paused"');
  });

  test('that cannot be started says what QEMU says', async () => {
    behave('refuses');
    const driver = await open(await settingsWith());
    await expect(driver.start(machineOf(), never)).rejects.toThrow(
      'QEMU has not started: qemu-imitation: -drive: Could not open the disk',
    );
  });

  test('that does not quit when asked to is killed', async () => {
    behave('deaf');
    const driver = await open(await settingsWith());
    const machine = machineOf();
    await driver.start(machine, never);
    await driver.stop(machine, never);
    expect(processesOf(machine.id)).toEqual([]);
  });

  test('that a killed cloud was just starting is gone after its deletion as well', async () => {
    const settings = await settingsWith();
    const driver = await open(settings);
    for (let round = 0; round < 5; round++) {
      const machine = machineOf();
      const killed = new AbortController();
      const starting = driver.start(machine, killed.signal).catch(() => undefined);
      await sleep(round * 15); // another moment of the start each time; nothing is waited for
      killed.abort();
      await driver.stop(machine, never);
      await starting;
      await driver.stop(machine, never);
      expect(processesOf(machine.id)).toEqual([]);
    }
  });
});

describe('the driver does not open', () => {
  test('without QEMU', async () => {
    const missing = open(await settingsWith({ binary: 'qemu-system-nowhere' }));
    await expect(missing).rejects.toThrow(
      'the driver qemu needs qemu-system-nowhere, which is not there; install it, or name another by qemu.binary in the --config file',
    );
  });

  test('without the disk that machines are to have', async () => {
    await expect(open(await settingsWith({ image: '/nowhere/disk.img' }))).rejects.toThrow(
      'qemu.image: there is no file /nowhere/disk.img',
    );
  });

  test('in a folder whose path leaves no room for a socket', async () => {
    const dir = join(await temporaryFolder('qemu'), 'x'.repeat(80));
    await expect(open(await settingsWith({ dir }))).rejects.toThrow(
      `qemu.dir: ${dir} is too long a path; a monitor's socket in it would not have the room that the system gives it`,
    );
  });

  test('with a program that does not run', async () => {
    const binary = join(await temporaryFolder('qemu'), 'qemu');
    writeFileSync(binary, '#!/bin/sh\nexit 3\n', { mode: 0o755 });
    await expect(open(await settingsWith({ binary }))).rejects.toThrow(
      `${binary} does not run: Command failed`,
    );
  });
});
