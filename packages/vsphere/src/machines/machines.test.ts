import { startVcsim, type Vcsim } from '@vmwright/testbed';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { clientOf } from '../../test/vcenter.ts';
import {
  type CloneOptions,
  customValueOf,
  type Datacenter,
  FaultError,
  faultOf,
  isRef,
  type Ref,
  type VcenterClient,
} from '../index.ts';
import { cloneSpec } from './specs.ts';

let vcsim: Vcsim;
let vcenter: VcenterClient;
let datacenter: Datacenter;
let template: Ref<'VirtualMachine'>;
let resourcePool: Ref<'ResourcePool'>;
let clones = 0;

beforeAll(async () => {
  vcsim = await startVcsim();
  vcenter = clientOf(vcsim);
  datacenter = await vcenter.lookup.datacenter();
  template = await vcenter.lookup.template(datacenter, 'DC0_C0_RP0_VM0');
  resourcePool = await vcenter.lookup.resourcePool(datacenter, 'DC0_C0');
});
afterAll(async () => {
  await vcenter.stop();
  await vcsim[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await Promise.all([vcsim.control.clearFaults(), vcsim.control.clearDelays()]);
});

async function clone(options: Partial<CloneOptions> = {}): Promise<Ref<'VirtualMachine'>> {
  const name = `clone-${++clones}`;
  const { vmFolder: folder } = datacenter;
  const result = await vcenter.tasks.follow(
    await vcenter.machines.clone({ name, template, folder, resourcePool, ...options }),
  );
  if (isRef(result, 'VirtualMachine')) return result;
  throw new Error('the result is not a machine');
}

async function powerOf(vm: Ref<'VirtualMachine'>): Promise<unknown> {
  return (await vcenter.read(vm, ['runtime.powerState']))['runtime.powerState'];
}

describe('clone', () => {
  test('clone applies name, folder, datastore, size, extraConfig and power state', async () => {
    const folder = await vcenter.machines.createFolder(datacenter.vmFolder, 'clones');
    const instanceUuid = '5f0c2c1e-7f4e-4a8e-9d0e-0c6f0a5d1b11';
    const datastore = await vcenter.lookup.datastore(datacenter, 'LocalDS_0');
    const extraConfig = { 'vmwright.owner': 'ns/<group> & "uid"' };
    const vm = await clone({
      name: 'wanted',
      folder,
      datastore,
      instanceUuid,
      extraConfig,
      cpus: 6,
      memoryMb: 12_288,
      powerOn: true,
    });
    const read = await vcenter.read(vm, [
      ...([
        'name',
        'parent',
        'resourcePool',
        'datastore',
        'runtime.powerState',
        'config.instanceUuid',
      ] as const),
      ...(['config.hardware.numCPU', 'config.hardware.memoryMB', 'config.extraConfig'] as const),
    ]);
    expect(read).toMatchObject({
      name: 'wanted',
      parent: folder,
      resourcePool,
      datastore: [datastore],
      'runtime.powerState': 'poweredOn',
      'config.instanceUuid': instanceUuid,
      'config.hardware.numCPU': 6,
      'config.hardware.memoryMB': 12_288,
    });
    expect(read['config.extraConfig']).toContainEqual({
      _type: 'OptionValue',
      key: 'vmwright.owner',
      value: 'ns/<group> & "uid"',
    });
  });

  test('clone creates a powered-off full clone by default', async () => {
    expect(await powerOf(await clone())).toBe('poweredOff');
    const { location, snapshot } = cloneSpec({
      name: 'x',
      template,
      folder: datacenter.vmFolder,
      resourcePool,
    });
    expect([location, snapshot]).toEqual([{ pool: resourcePool }, undefined]);
  });

  test('clone creates a linked clone from a snapshot', async () => {
    const snapshot = await vcenter.tasks.follow(await vcenter.machines.snapshot(template, 'base'));
    if (!isRef(snapshot, 'VirtualMachineSnapshot')) throw new Error('the result is not a snapshot');
    expect(await vcenter.read(template, ['snapshot.currentSnapshot'])).toEqual({
      'snapshot.currentSnapshot': snapshot,
    });
    const options = { name: 'x', template, folder: datacenter.vmFolder, linked: { snapshot } };
    // vcsim ignores the disk options of a linked clone, so only the request can be checked.
    expect(cloneSpec(options)).toMatchObject({
      location: { diskMoveType: 'createNewChildDiskBacking' },
      snapshot,
    });
    expect(await powerOf(await clone({ linked: { snapshot } }))).toBe('poweredOff');
  });

  test('clone fails when the name is already used', async () => {
    await clone({ name: 'twin' });
    await expect(clone({ name: 'twin' })).rejects.toMatchObject({
      code: 'DUPLICATE_NAME',
      message: expect.stringMatching(
        /^task task-\d+: the name 'twin' is already used by VirtualMachine vm-\d+/,
      ),
    });
  });
});

test('reconfigure changes size and annotation', async () => {
  const vm = await clone();
  const change = { cpus: 2, memoryMb: 256, annotation: 'mine', extraConfig: { a: 'b' } };
  await vcenter.tasks.follow(await vcenter.machines.reconfigure(vm, change));
  const read = await vcenter.read(vm, [
    'config.hardware.numCPU',
    'config.hardware.memoryMB',
    'config.annotation',
  ]);
  expect(read).toEqual({
    'config.hardware.numCPU': 2,
    'config.hardware.memoryMB': 256,
    'config.annotation': 'mine',
  });
});

test('powerOn and powerOff change the power state, and fail when the machine is already in that state', async () => {
  const vm = await clone();
  await vcenter.tasks.follow(await vcenter.machines.powerOn(vm));
  expect(await powerOf(vm)).toBe('poweredOn');
  await expect(vcenter.tasks.follow(await vcenter.machines.powerOn(vm))).rejects.toMatchObject({
    code: 'INVALID_POWER_STATE',
  });
  await vcenter.tasks.follow(await vcenter.machines.powerOff(vm));
  expect(await powerOf(vm)).toBe('poweredOff');
});

describe('shutDown', () => {
  const gracePeriodMs = 3_600_000;

  test('shutDown shuts the guest down and starts no power-off', async () => {
    const vm = await clone({ powerOn: true });
    expect(await vcenter.machines.shutDown(vm, { gracePeriodMs })).toBe(undefined);
    expect(await powerOf(vm)).toBe('poweredOff');
    expect(await vcenter.machines.shutDown(vm, { gracePeriodMs })).toBe(undefined);
  });

  test('shutDown powers the machine off when VMware Tools is not available in the guest', async () => {
    const vm = await clone({ powerOn: true });
    await vcsim.control.fault({ method: 'ShutdownGuest', fault: 'ToolsUnavailable', max: 1 });
    const task = await vcenter.machines.shutDown(vm, { gracePeriodMs });
    if (task === undefined) throw new Error('expected a power-off task');
    await vcenter.tasks.follow(task);
    expect(await powerOf(vm)).toBe('poweredOff');
  });

  test('shutDown powers the machine off when the grace period is over', async () => {
    const vm = await clone({ powerOn: true });
    await vcsim.control.delay({ tasks: { ShutdownGuest: gracePeriodMs } });
    const task = await vcenter.machines.shutDown(vm, { gracePeriodMs: 50 });
    if (task === undefined) throw new Error('expected a power-off task');
    await vcenter.tasks.follow(task);
    expect(await powerOf(vm)).toBe('poweredOff');
  });

  test('shutDown fails and leaves the machine on when the user lacks the permission', async () => {
    const vm = await clone({ powerOn: true });
    await vcsim.control.fault({ method: 'ShutdownGuest', fault: 'NoPermission', max: 1 });
    await expect(vcenter.machines.shutDown(vm, { gracePeriodMs })).rejects.toMatchObject({
      code: 'NO_PERMISSION',
    });
    expect(await powerOf(vm)).toBe('poweredOn');
  });
});

test('unregisterFolder unregisters machines without destroying them, and fails while one is powered on', async () => {
  const folder = await vcenter.machines.createFolder(datacenter.vmFolder, 'left');
  const vm = await clone({ folder, powerOn: true });
  const remove = async () => vcenter.tasks.follow(await vcenter.machines.unregisterFolder(folder));
  await expect(remove()).rejects.toMatchObject({ code: 'INVALID_POWER_STATE' });
  await vcenter.tasks.follow(await vcenter.machines.powerOff(vm));
  await vcsim.control.resetCalls();
  await remove();
  await expect(vcenter.read(folder, ['name'])).rejects.toMatchObject({ code: 'OBJECT_NOT_FOUND' });
  await expect(vcenter.read(vm, ['name'])).rejects.toMatchObject({ code: 'OBJECT_NOT_FOUND' });
  expect(await vcsim.control.calls()).not.toHaveProperty('Destroy_Task');
});

test('renameFolder renames a folder, and fails if the name is taken', async () => {
  const folder = await vcenter.machines.createFolder(datacenter.vmFolder, 'before');
  await vcenter.machines.createFolder(datacenter.vmFolder, 'taken');
  const rename = async (name: string) =>
    vcenter.tasks.follow(await vcenter.machines.renameFolder(folder, name));
  await expect(rename('taken')).rejects.toThrow(FaultError);
  await rename('after');
  expect(await vcenter.read(folder, ['name'])).toEqual({ name: 'after' });
});

test('a change with resend: false fails when its session has ended', async () => {
  const folder = await vcenter.machines.createFolder(datacenter.vmFolder, 'kept');
  await vcsim.control.expireSessions();
  const remove = vcenter.machines.unregisterFolder(folder, { resend: false });
  await expect(remove).rejects.toMatchObject({ code: 'NOT_AUTHENTICATED' });
  expect(await vcenter.read(folder, ['name'])).toEqual({ name: 'kept' });
});

test('destroy removes a machine, and later calls fail with OBJECT_NOT_FOUND', async () => {
  const vm = await clone();
  await vcenter.tasks.follow(await vcenter.machines.destroy(vm));
  await expect(vcenter.read(vm, ['name'])).rejects.toMatchObject({ code: 'OBJECT_NOT_FOUND' });
  await expect(vcenter.machines.powerOn(vm)).rejects.toMatchObject({
    code: 'OBJECT_NOT_FOUND',
    message: expect.stringContaining(
      `powering on VirtualMachine ${vm.value}: VirtualMachine ${vm.value} does not exist any more`,
    ),
  });
});

test('createFolder fails if the folder exists, with the reference of the folder in the fault', async () => {
  const folder = await vcenter.machines.createFolder(datacenter.vmFolder, 'once');
  const second = await vcenter.machines.createFolder(datacenter.vmFolder, 'once').catch((error) => error);
  expect(second).toMatchObject({ code: 'DUPLICATE_NAME' });
  expect(faultOf(second, 'DuplicateName')?.object).toEqual(folder);
  await vcenter.tasks.follow(await vcenter.machines.destroy(folder));
  await expect(vcenter.lookup.folder(datacenter, 'once')).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('a custom attribute is defined once and set on a folder', async () => {
  const { attributes, machines } = vcenter;
  const [key, again] = [
    await attributes.ensureKey('vmwright.dev/owner'),
    await attributes.ensureKey('vmwright.dev/owner'),
  ];
  expect(again).toBe(key);
  const folder = await machines.createFolder(datacenter.vmFolder, 'marked');
  await attributes.set(folder, key, 'uid-1');
  const { customValue } = await vcenter.read(folder, ['customValue']);
  expect(customValueOf(customValue, key)).toBe('uid-1');
  expect(customValueOf(customValue, key + 1)).toBe(undefined);
});

test('the error of a rejected change contains the operation and the reason', async () => {
  await vcsim.control.fault({
    method: 'CloneVM_Task',
    fault: 'NoPermission',
    message: 'Permission to perform this operation was denied.',
    max: 1,
  });
  await expect(clone({ name: 'denied' })).rejects.toThrow(
    `cloning 'denied' from VirtualMachine ${template.value}: the user lacks a privilege (Permission to perform this operation was denied)`,
  );
});

test('shutDown destroys its property collector', async () => {
  const vm = await clone({ powerOn: true });
  await vcsim.control.resetCalls();
  await vcenter.machines.shutDown(vm, { gracePeriodMs: 3_600_000 });
  expect(await vcsim.control.calls()).toMatchObject({
    CreatePropertyCollector: 1,
    DestroyPropertyCollector: 1,
  });
});
