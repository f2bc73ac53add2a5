import { startVcsim, type Vcsim } from '@vmwright/testbed';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { clientOf } from '../../test/vcenter.ts';
import {
  type CloneOptions,
  customValueOf,
  type Datacenter,
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
  const made = await vcenter.tasks.follow(
    await vcenter.machines.clone({ name, template, folder, resourcePool, ...options }),
  );
  if (isRef(made, 'VirtualMachine')) return made;
  throw new Error('the clone is no machine');
}

async function powerOf(vm: Ref<'VirtualMachine'>): Promise<unknown> {
  return (await vcenter.read(vm, ['runtime.powerState']))['runtime.powerState'];
}

describe('a clone', () => {
  test('is what was asked for, where it was asked for', async () => {
    const folder = await vcenter.machines.createFolder(datacenter.vmFolder, 'clones');
    const instanceUuid = '5f0c2c1e-7f4e-4a8e-9d0e-0c6f0a5d1b11';
    const datastore = await vcenter.lookup.datastore(datacenter, 'LocalDS_0');
    const extraConfig = { 'vmwright.owner': 'ns/<group> & "uid"' };
    const vm = await clone({
      ...{ name: 'wanted', folder, datastore, instanceUuid, extraConfig },
      ...{ cpus: 6, memoryMb: 12_288, powerOn: true },
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

  test('is off and a full copy unless said otherwise', async () => {
    expect(await powerOf(await clone())).toBe('poweredOff');
    const { location, snapshot } = cloneSpec({
      name: 'x',
      template,
      folder: datacenter.vmFolder,
      resourcePool,
    });
    expect([location, snapshot]).toEqual([{ pool: resourcePool }, undefined]);
  });

  test('that is linked builds on a snapshot', async () => {
    const taken = await vcenter.tasks.follow(await vcenter.machines.snapshot(template, 'base'));
    if (!isRef(taken, 'VirtualMachineSnapshot')) throw new Error('no snapshot was taken');
    expect(await vcenter.read(template, ['snapshot.currentSnapshot'])).toEqual({
      'snapshot.currentSnapshot': taken,
    });
    const options = { name: 'x', template, folder: datacenter.vmFolder, linked: { snapshot: taken } };
    // The simulator passes over it, so what is asked for is all that can be seen.
    expect(cloneSpec(options)).toMatchObject({
      location: { diskMoveType: 'createNewChildDiskBacking' },
      snapshot: taken,
    });
    expect(await powerOf(await clone({ linked: { snapshot: taken } }))).toBe('poweredOff');
  });

  test('of a name that is taken fails in words', async () => {
    await clone({ name: 'twin' });
    await expect(clone({ name: 'twin' })).rejects.toMatchObject({
      code: 'DUPLICATE_NAME',
      message: expect.stringMatching(/^the task task-\d+: the name 'twin' is taken by VirtualMachine vm-\d+/),
    });
  });
});

test('a machine is reconfigured', async () => {
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

test('a machine is powered on and off, and refused what it is already', async () => {
  const vm = await clone();
  await vcenter.tasks.follow(await vcenter.machines.powerOn(vm));
  expect(await powerOf(vm)).toBe('poweredOn');
  await expect(vcenter.tasks.follow(await vcenter.machines.powerOn(vm))).rejects.toMatchObject({
    code: 'INVALID_POWER_STATE',
  });
  await vcenter.tasks.follow(await vcenter.machines.powerOff(vm));
  expect(await powerOf(vm)).toBe('poweredOff');
});

describe('a guest is shut down', () => {
  const gracePeriodMs = 3_600_000;

  test('softly, where it obeys', async () => {
    const vm = await clone({ powerOn: true });
    expect(await vcenter.machines.shutDown(vm, { gracePeriodMs })).toBe(undefined);
    expect(await powerOf(vm)).toBe('poweredOff');
    expect(await vcenter.machines.shutDown(vm, { gracePeriodMs })).toBe(undefined);
  });

  test('hard, where it has no tools', async () => {
    const vm = await clone({ powerOn: true });
    await vcsim.control.fault({ method: 'ShutdownGuest', fault: 'ToolsUnavailable', max: 1 });
    const task = await vcenter.machines.shutDown(vm, { gracePeriodMs });
    if (task === undefined) throw new Error('it went softly');
    await vcenter.tasks.follow(task);
    expect(await powerOf(vm)).toBe('poweredOff');
  });

  test('hard, where it does not obey in time', async () => {
    const vm = await clone({ powerOn: true });
    await vcsim.control.delay({ tasks: { ShutdownGuest: gracePeriodMs } });
    const task = await vcenter.machines.shutDown(vm, { gracePeriodMs: 50 });
    if (task === undefined) throw new Error('it went softly');
    await vcenter.tasks.follow(task);
    expect(await powerOf(vm)).toBe('poweredOff');
  });

  test('not at all, where that is forbidden', async () => {
    const vm = await clone({ powerOn: true });
    await vcsim.control.fault({ method: 'ShutdownGuest', fault: 'NoPermission', max: 1 });
    await expect(vcenter.machines.shutDown(vm, { gracePeriodMs })).rejects.toMatchObject({
      code: 'NO_PERMISSION',
    });
    expect(await powerOf(vm)).toBe('poweredOn');
  });
});

test('a folder is removed without its machines: they leave the inventory, and one that is on keeps it there', async () => {
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

test('a change that is not to be sent again is refused when its session has ended', async () => {
  const folder = await vcenter.machines.createFolder(datacenter.vmFolder, 'kept');
  await vcsim.control.expireSessions();
  const remove = vcenter.machines.unregisterFolder(folder, { resend: false });
  await expect(remove).rejects.toMatchObject({ code: 'NOT_AUTHENTICATED' });
  expect(await vcenter.read(folder, ['name'])).toEqual({ name: 'kept' });
});

test('a machine is destroyed, and what is asked of it afterwards says that it is gone', async () => {
  const vm = await clone();
  await vcenter.tasks.follow(await vcenter.machines.destroy(vm));
  await expect(vcenter.read(vm, ['name'])).rejects.toMatchObject({ code: 'OBJECT_NOT_FOUND' });
  await expect(vcenter.machines.powerOn(vm)).rejects.toMatchObject({
    code: 'OBJECT_NOT_FOUND',
    message: expect.stringContaining(
      `powering on VirtualMachine ${vm.value}: VirtualMachine ${vm.value} is gone`,
    ),
  });
});

test('a folder is created once, and who comes second is told which it is', async () => {
  const folder = await vcenter.machines.createFolder(datacenter.vmFolder, 'once');
  const second = await vcenter.machines.createFolder(datacenter.vmFolder, 'once').catch((error) => error);
  expect(second).toMatchObject({ code: 'DUPLICATE_NAME' });
  expect(faultOf(second, 'DuplicateName')?.object).toEqual(folder);
  await vcenter.tasks.follow(await vcenter.machines.destroy(folder));
  await expect(vcenter.lookup.folder(datacenter, 'once')).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('folders and machines are marked by a custom attribute', async () => {
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

test('a fault of a change is told in words', async () => {
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

test('a wait for a shutdown leaves no collector behind', async () => {
  const vm = await clone({ powerOn: true });
  await vcsim.control.resetCalls();
  await vcenter.machines.shutDown(vm, { gracePeriodMs: 3_600_000 });
  expect(await vcsim.control.calls()).toMatchObject({
    CreatePropertyCollector: 1,
    DestroyPropertyCollector: 1,
  });
});
