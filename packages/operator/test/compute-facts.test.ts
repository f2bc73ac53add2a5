import { collectingLogger } from '@vmwright/core';
import { nodeWorld, type World } from '@vmwright/runtime';
import { startVcsim, type Vcsim, type VcsimOptions } from '@vmwright/testbed';
import { isRef, VcenterClient } from '@vmwright/vsphere';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { ComputeChange, ComputeFacts, HostFacts } from '../src/vcenter/compute-facts.ts';
import { STALE_MS } from '../src/vcenter/health.ts';
import { MAINTENANCE_ATTRIBUTE } from '../src/vcenter/host-maintenance.ts';
import { openComputeFacts } from '../src/vcenter/pooled-compute-facts.ts';
import { VCenter } from '../src/vcenter/vcenter.ts';
import { VCenterPool } from '../src/vcenter/vcenter-pool.ts';

const OPTIONS: VcsimOptions = {
  inventory: { hosts: 2, standaloneHosts: 0, vms: 4 },
  templates: ['template'],
};
/** Machines of the vCenter east. The last machine of its inventory is left out, because it is the template. */
const MACHINES = ['DC0_C0_RP0_VM0', 'DC0_C0_RP0_VM1', 'DC0_C0_RP0_VM2'] as const;
const AT = new Date('2040-01-31T22:00:00Z');

/** Callbacks of the timers after which the facts about an unresponsive vCenter become stale. */
const staleTimers = new Set<() => void>();
/**
 * A world in which the facts about an unresponsive vCenter become stale only when the test calls the callbacks in
 * `staleTimers`. With a shorter `STALE_MS` instead, the facts would also become stale while vCenter or this process is
 * only slow.
 */
const world: World = {
  ...nodeWorld,
  after: (ms, callback) => {
    if (ms !== STALE_MS) return nodeWorld.after(ms, callback);
    staleTimers.add(callback);
    return { cancel: () => void staleTimers.delete(callback) };
  },
};

const stack = new AsyncDisposableStack();
let east: Vcsim;
let west: Vcsim;
let pool: VCenterPool;
let facts: ComputeFacts;
let changes: ComputeChange[] = [];
let client: VcenterClient;
const listeners = new Set<() => void>();

function clientOf({ url: server, username, password, ca }: Vcsim): VcenterClient {
  return new VcenterClient({
    world: nodeWorld,
    server,
    tls: { ca },
    credentials: () => ({ username, password }),
  });
}

function vcenterOf(name: string, vcsim: Vcsim): VCenter {
  const { logger: log } = collectingLogger();
  return new VCenter({
    world,
    log,
    name,
    placement: {},
    concurrency: 1,
    client: clientOf(vcsim),
    enqueue: () => undefined,
  });
}

beforeAll(async () => {
  east = stack.use(await startVcsim(OPTIONS));
  west = stack.use(await startVcsim({ inventory: { clusters: 0, standaloneHosts: 1, vms: 1 } }));
  client = stack.use(clientOf(east));
});
afterAll(() => stack.disposeAsync());

beforeEach(async () => {
  pool = new VCenterPool([vcenterOf('east', east), vcenterOf('west', west)]);
  facts = openComputeFacts(pool, { maintenanceAttribute: MAINTENANCE_ATTRIBUTE });
  facts.subscribe((change) => {
    changes.push(change);
    for (const listener of [...listeners]) listener();
  });
  await facts.synced(AbortSignal.timeout(60_000));
  changes = [];
  return () => pool[Symbol.asyncDispose]();
});

/** Calls `check` now and on each change, until it returns neither undefined nor false. @returns its last result */
function until<T>(check: () => T | undefined | false): Promise<T> {
  return new Promise((resolve) => {
    const listener = () => {
      const found = check();
      if (found === undefined || found === false) return;
      listeners.delete(listener);
      resolve(found);
    };
    listeners.add(listener);
    listener();
  });
}

/** Returns the host of a machine. */
function hostOf(machine: string): HostFacts | undefined {
  const id = facts.machineByName(machine)?.hostId;
  return id === undefined ? undefined : facts.host(id);
}

/** Returns a machine of the vCenter east, and its host. */
function first(): { readonly machine: string; readonly host: HostFacts } {
  const machine = MACHINES[0];
  const host = hostOf(machine);
  if (host === undefined) throw new Error('the machine has no host');
  return { machine, host };
}

/** Returns the name of the other host of the vCenter east. */
function otherThan(host: HostFacts): string {
  return host.name === 'DC0_C0_H0' ? 'DC0_C0_H1' : 'DC0_C0_H0';
}

async function refOf(name: string) {
  const all = await client.list('VirtualMachine', ['name']);
  const found = all.find(({ properties }) => properties.name === name);
  if (found === undefined) throw new Error(`no machine is named ${name}`);
  return found.ref;
}

test('the hosts of all vCenters are found by id, and their machines by UUID and by name', async () => {
  const { machine, host } = first();
  expect(facts.staleVcenters).toEqual([]);
  expect(host).toMatchObject({
    isConnected: true,
    isInMaintenance: false,
    gpus: [],
    maintenance: [],
    warnings: [],
  });
  expect(host.id).toMatch(/^east\/host-\d+$/);
  const found = facts.machineByName(machine);
  expect(found).toMatchObject({ name: machine, isPoweredOn: true, hostId: host.id, gpus: [] });
  expect(facts.machineByUuid(found?.uuid.toUpperCase() ?? '')).toBe(found);
  expect(facts.machineByUuid(found?.instanceUuid ?? '')).toBe(found);
  expect(facts.machineByName('template')).toBe(undefined);
  const west = facts.machineByName('DC0_H0_VM0');
  expect(west?.id).toMatch(/^west\/vm-\d+$/);
  expect(facts.host(west?.hostId ?? '')?.name).toBe('DC0_H0');
});

test('the facts contain the GPUs of a host and whether machines use them', async () => {
  const { machine, host } = first();
  // After the host gets GPUs, all of them count as in use until the devices of its machines are known. This state may
  // end before the call of `control.host` returns, so the test begins to wait for the state before the call.
  const firstGpus = until(() => {
    const { gpus = [] } = facts.host(host.id) ?? {};
    return gpus.length === 2 && gpus;
  });
  await east.control.host(host.name, { gpus: 2, gpuModel: 'NVIDIA H100' });
  const isFree = () => facts.host(host.id)?.gpus.filter(({ isInUse }) => !isInUse).length === 2;
  expect((await firstGpus).every(({ isInUse }) => isInUse)).toBe(true);
  const seen = await until(() => isFree() && facts.host(host.id));
  const gpu = { model: 'NVIDIA H100', vendor: 'NVIDIA Corporation', mode: 'passthrough', isInUse: false };
  expect(seen.gpus).toEqual([
    { ...gpu, id: '0000:af:00.0' },
    { ...gpu, id: '0000:af:01.0' },
  ]);

  await east.control.vm(machine, { pciDevices: [{ id: '0000:af:01.0' }] });
  await until(() => facts.host(host.id)?.gpus[1]?.isInUse);
  expect(facts.host(host.id)?.gpus[0]?.isInUse).toBe(false);
  expect(facts.machineByName(machine)?.gpus).toEqual([{ model: 'NVIDIA H100', mode: 'passthrough' }]);

  await client.tasks.follow(await client.machines.powerOff(await refOf(machine)));
  await until(() => facts.machineByName(machine)?.isPoweredOn === false);
  expect(facts.host(host.id)?.gpus[1]?.isInUse).toBe(false);
  expect(facts.machineByName(machine)?.gpus).toHaveLength(1);

  await client.tasks.follow(await client.machines.powerOn(await refOf(machine)));
  await until(() => facts.host(host.id)?.gpus[1]?.isInUse);
  await east.control.vm(machine, { pciDevices: [{ id: '0000:af:00.0', dynamic: true }] });
  await until(() => facts.host(host.id)?.gpus[0]?.isInUse);
  expect(facts.host(host.id)?.gpus[1]?.isInUse).toBe(false);

  await east.control.vm(machine, { pciDevices: [] });
  await until(() => facts.machineByName(machine)?.gpus.length === 0);
  await east.control.host(host.name, { gpus: 0 });
  await until(() => facts.host(host.id)?.gpus.length === 0);
});

test('a GPU of a host is in use while a machine has a vGPU on it', async () => {
  const { machine, host } = first();
  await east.control.host(host.name, { gpus: 1, gpuMode: 'vgpu' });
  await until(() => facts.host(host.id)?.gpus[0]?.isInUse === false);
  expect(facts.host(host.id)?.gpus[0]?.mode).toBe('vgpu');
  await east.control.vm(machine, { pciDevices: [{ vgpu: 'grid_a100-10c' }] });
  await until(() => facts.host(host.id)?.gpus[0]?.isInUse);
  expect(facts.machineByName(machine)?.gpus).toEqual([{ model: 'grid_a100-10c', mode: 'vgpu' }]);
  await east.control.vm(machine, { pciDevices: [] });
  await east.control.host(host.name, { gpus: 0 });
  await until(() => facts.host(host.id)?.gpus.length === 0);
});

test('a machine that moves to another host uses GPUs of the new host', async () => {
  const { machine, host } = first();
  const other = otherThan(host);
  await east.control.host(host.name, { gpus: 1 });
  await east.control.host(other, { gpus: 1 });
  await east.control.vm(machine, { pciDevices: [{ id: '0000:af:00.0' }] });
  const isOtherFree = () =>
    MACHINES.every((name) => hostOf(name)?.gpus[0]?.isInUse === (hostOf(name)?.id === host.id));
  await until(() => facts.machineByName(machine)?.gpus.length === 1 && isOtherFree());
  changes = [];

  await east.control.vm(machine, { host: other });
  const moved = await until(() => hostOf(machine)?.name === other && hostOf(machine));
  await until(() => facts.host(moved.id)?.gpus[0]?.isInUse);
  expect(facts.host(host.id)?.gpus[0]?.isInUse).toBe(false);
  const id = facts.machineByName(machine)?.id ?? '';
  expect(changes.flatMap((change) => [...change.machines])).toContain(id);
  expect(new Set(changes.flatMap((change) => [...change.hosts]))).toEqual(new Set([host.id, moved.id]));

  await east.control.vm(machine, { host: host.name, pciDevices: [] });
  for (const name of [host.name, other]) await east.control.host(name, { gpus: 0 });
  await until(() => hostOf(machine)?.name === host.name && hostOf(machine)?.gpus.length === 0);
});

test('a GPU that a new machine takes is in use from the moment the machine runs', async () => {
  const { host } = first();
  await east.control.host(host.name, { gpus: 1 });
  await until(() => facts.host(host.id)?.gpus[0]?.isInUse === false);
  const datacenter = await client.lookup.datacenter();
  const cloned = await client.tasks.follow(
    await client.machines.clone({
      name: 'clone',
      template: await client.lookup.template(datacenter, 'template'),
      folder: datacenter.vmFolder,
      resourcePool: await client.lookup.resourcePool(datacenter),
    }),
  );
  await east.control.vm('clone', { host: host.name, pciDevices: [{ id: '0000:af:00.0' }] });
  await until(() => hostOf('clone')?.id === host.id && facts.machineByName('clone')?.gpus.length === 1);
  expect(facts.host(host.id)?.gpus[0]?.isInUse).toBe(false);
  if (!isRef(cloned, 'VirtualMachine')) throw new Error('the clone task returned no machine');
  await client.tasks.follow(await client.machines.powerOn(cloned));
  await until(() => facts.machineByName('clone')?.isPoweredOn);
  expect(facts.host(host.id)?.gpus[0]?.isInUse).toBe(true);

  await client.tasks.follow(await client.machines.powerOff(cloned));
  await client.tasks.follow(await client.machines.destroy(cloned));
  await until(() => facts.machineByName('clone') === undefined);
  expect(facts.host(host.id)?.gpus[0]?.isInUse).toBe(false);
  await east.control.host(host.name, { gpus: 0 });
  await until(() => facts.host(host.id)?.gpus.length === 0);
});

test('the facts follow maintenance mode and connection state of a host', async () => {
  const { host } = first();
  await east.control.host(host.name, { maintenance: true });
  await until(() => facts.host(host.id)?.isInMaintenance);
  await east.control.host(host.name, { maintenance: false, connection: 'notResponding' });
  await until(() => facts.host(host.id)?.isConnected === false);
  expect(facts.host(host.id)?.isInMaintenance).toBe(false);
  await east.control.host(host.name, { connection: 'connected' });
  await until(() => facts.host(host.id)?.isConnected);
});

test('scheduled tasks for a host or its cluster count as planned maintenance', async () => {
  const { host } = first();
  const isPlanned = (count: number) => () => facts.host(host.id)?.maintenance.length === count;
  const { control } = east;
  await control.scheduleTask('Patch', { entity: host.name, method: 'EnterMaintenanceMode_Task', at: AT });
  await until(isPlanned(1));
  expect(facts.host(host.id)?.maintenance).toEqual([
    { startsAt: AT.getTime(), source: "vCenter scheduled task 'Patch'" },
  ]);

  const sooner = new Date(AT.getTime() - 3_600_000);
  await control.scheduleTask('Reboot all', { entity: 'DC0_C0', method: 'RebootHost_Task', at: sooner });
  await until(isPlanned(2));
  expect(facts.host(host.id)?.maintenance[0]).toEqual({
    startsAt: sooner.getTime(),
    source: "vCenter scheduled task 'Reboot all'",
  });
  const others = MACHINES.flatMap((name) => hostOf(name)?.maintenance.length ?? []);
  expect(Math.min(...others)).toBeGreaterThan(0);

  await control.scheduleTask('Patch', {
    entity: host.name,
    method: 'EnterMaintenanceMode_Task',
    at: AT,
    enabled: false,
  });
  await until(isPlanned(1));
  await control.removeScheduledTask('Reboot all');
  await until(isPlanned(0));
  await control.scheduleTask('Patch', {
    entity: host.name,
    method: 'EnterMaintenanceMode_Task',
    running: true,
  });
  await until(isPlanned(1));
  expect(facts.host(host.id)?.maintenance[0]?.startsAt).toBeLessThan(AT.getTime());
  await control.scheduleTask('Patch', { entity: host.name, method: 'ExitMaintenanceMode_Task', at: AT });
  await until(isPlanned(0));
  await control.removeScheduledTask('Patch');
});

test('a time in the maintenance attribute of a host counts as planned maintenance, and an invalid value leads to a warning', async () => {
  const { host } = first();
  const set = (value: string) =>
    east.control.host(host.name, { attributes: { [MAINTENANCE_ATTRIBUTE]: value, other: 'x' } });
  await set(AT.toISOString());
  await until(() => facts.host(host.id)?.maintenance.length === 1);
  const source = `custom attribute '${MAINTENANCE_ATTRIBUTE}'`;
  expect(facts.host(host.id)?.maintenance).toEqual([{ startsAt: AT.getTime(), source }]);
  await set('next week');
  await until(() => facts.host(host.id)?.warnings.length === 1);
  expect(facts.host(host.id)?.warnings[0]).toContain("is 'next week'");
  expect(facts.host(host.id)?.maintenance).toEqual([]);
  await set('now');
  await until(() => facts.host(host.id)?.maintenance[0]?.startsAt === 0);
  await set('');
  await until(() => facts.host(host.id)?.maintenance.length === 0);
  expect(facts.host(host.id)?.warnings).toEqual([]);
});

test('a change of the CPU or memory usage of a machine is reported as a usage change', async () => {
  const { machine } = first();
  await east.control.vm(machine, { cpuDemandMhz: 1234, guestMemoryMb: 567, hostMemoryMb: 890 });
  await until(() => facts.machineByName(machine)?.cpuDemandMhz === 1234);
  const id = facts.machineByName(machine)?.id ?? '';
  expect(facts.machineByName(machine)?.memoryUsageMb).toBe(567);
  expect(changes).toEqual([
    { hosts: new Set(), machines: new Set(), usage: new Set([id]), isStalenessChanged: false },
  ]);
});

test('a machine whose UUID changes is found by the new UUID', async () => {
  const { machine } = first();
  const before = facts.machineByName(machine)?.uuid ?? '';
  const uuid = '420A1B2C-3D4E-5F60-7182-93A4B5C6D7E8';
  await east.control.vm(machine, { uuid });
  await until(() => facts.machineByUuid(uuid)?.name === machine);
  expect(facts.machineByUuid('2c1b0a42-4e3d-605f-7182-93a4b5c6d7e8')?.name).toBe(machine);
  expect(facts.machineByUuid(before)).toBe(undefined);
  await east.control.vm(machine, { uuid: before });
  await until(() => facts.machineByUuid(before)?.name === machine);
});

test('apart from WaitForUpdatesEx, the number of vCenter calls does not depend on the number of objects and changes', async () => {
  const { host } = first();
  await east.control.host(host.name, { gpus: 1 });
  // The GPUs of the host count as in use until the devices of its machines are watched. This watch calls CreateFilter,
  // so the test waits for it before it counts calls.
  await until(() => facts.host(host.id)?.gpus[0]?.isInUse === false);
  await east.control.resetCalls();
  for (const [index, name] of MACHINES.entries()) await east.control.vm(name, { cpuDemandMhz: 5000 + index });
  await until(() =>
    MACHINES.every((name, index) => facts.machineByName(name)?.cpuDemandMhz === 5000 + index),
  );
  const { WaitForUpdatesEx: _, ...calls } = await east.control.calls();
  expect(calls).toEqual({});

  await east.control.resetCalls();
  await using again = new VCenterPool([vcenterOf('again', east)]);
  await openComputeFacts(again, { maintenanceAttribute: MAINTENANCE_ATTRIBUTE }).synced(
    AbortSignal.timeout(60_000),
  );
  // Three filters: hosts and machines, scheduled tasks, and the devices of machines on hosts with GPUs.
  expect(await east.control.calls()).toMatchObject({ CreateFilter: 3, CreateContainerView: 1 });
  await east.control.host(host.name, { gpus: 0 });
  await until(() => facts.host(host.id)?.gpus.length === 0);
});

test('after the vCenter session expired, objects that did not change are not reported as changed', async () => {
  const { machine } = first();
  await east.control.expireSessions();
  await east.control.vm(machine, { cpuDemandMhz: 4321 });
  await until(() => facts.machineByName(machine)?.cpuDemandMhz === 4321);
  expect(facts.staleVcenters).toEqual([]);
  expect(changes.flatMap((change) => [...change.hosts, ...change.machines])).toEqual([]);
});

test('a vCenter that does not respond is reported as stale, and its hosts and machines stay known', async () => {
  const { machine, host } = first();
  await east.part.stop();
  await expect.poll(() => staleTimers.size).toBeGreaterThan(0);
  expect(facts.staleVcenters).toEqual([]);
  for (const becomeStale of staleTimers) becomeStale();
  staleTimers.clear();
  expect(facts.staleVcenters).toEqual(['east']);
  expect(facts.host(host.id)?.name).toBe(host.name);
  expect(facts.machineByName(machine)?.hostId).toBe(host.id);
  expect(changes.at(-1)).toMatchObject({ isStalenessChanged: true });
  await using late = new VCenterPool([vcenterOf('east', east), vcenterOf('west', west)]);
  const opened = openComputeFacts(late, { maintenanceAttribute: MAINTENANCE_ATTRIBUTE });
  await new Promise<void>((resolve) => {
    opened.subscribe(() => opened.machineByName('DC0_H0_VM0') && resolve());
  });
  expect(opened.staleVcenters).toEqual(['east']);

  await east.part.start();
  await until(() => facts.staleVcenters.length === 0);
  await opened.synced(AbortSignal.timeout(60_000));
  expect(opened.staleVcenters).toEqual([]);
  expect(facts.machineByName('DC0_H0_VM0')?.id).toMatch(/^west/);
});

test('when vCenter denies access to scheduled tasks, its hosts are known, each with a warning', async () => {
  const { host } = first();
  await using isolated = await startVcsim(OPTIONS);
  await isolated.control.fault({ method: 'CreateFilter', fault: 'NoPermission', skip: 1, max: 1 });
  await using rejected = new VCenterPool([vcenterOf('rejected', isolated)]);
  const limited = openComputeFacts(rejected, { maintenanceAttribute: MAINTENANCE_ATTRIBUTE });
  await limited.synced(AbortSignal.timeout(60_000));
  expect(limited.staleVcenters).toEqual([]);
  const known = limited.host(limited.machineByName(MACHINES[0])?.hostId ?? '');
  expect(known?.warnings[0]).toMatch(/^planned maintenance in vCenter cannot be read: /);
  expect(host.warnings).toEqual([]);
});
