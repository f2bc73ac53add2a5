import { startVcsim, type Vcsim } from '@vmwright/testbed';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { clientOf, resetFaults } from '../../test/vcenter.ts';
import { type Datacenter, isRef, type Ref, type TaskRef, type VcenterClient } from '../index.ts';
import { ensureDestroyed, ensurePoweredOff, ensurePoweredOn } from './ensure.ts';

let vcsim: Vcsim;
let client: VcenterClient;
let datacenter: Datacenter;
let template: Ref<'VirtualMachine'>;
let tasks: TaskRef[];
let clones = 0;
const onTask = (task: TaskRef) => void tasks.push(task);

beforeAll(async () => {
  vcsim = await startVcsim({ inventory: { hosts: 1, standaloneHosts: 0, vms: 1 } });
  client = clientOf(vcsim);
  datacenter = await client.lookup.datacenter();
  template = await client.lookup.template(datacenter, 'DC0_C0_RP0_VM0');
});
afterAll(async () => {
  await client.stop();
  await vcsim[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await resetFaults(vcsim);
  tasks = [];
});

async function clone(powerOn: boolean): Promise<Ref<'VirtualMachine'>> {
  const name = `clone-${++clones}`;
  const { vmFolder: folder } = datacenter;
  const task = await client.machines.clone({ name, template, folder, powerOn });
  const vm = await client.tasks.follow(task);
  if (!isRef(vm, 'VirtualMachine')) throw new Error('the result of the clone task is not a machine');
  await vcsim.control.resetCalls();
  return vm;
}

async function powerState(vm: Ref<'VirtualMachine'>): Promise<unknown> {
  return (await client.read(vm, ['runtime.powerState']))['runtime.powerState'];
}

describe('ensurePoweredOn', () => {
  test('ensurePoweredOn powers a machine on and reports the task', async () => {
    const vm = await clone(false);
    await ensurePoweredOn(client, vm, { onTask });
    expect(await powerState(vm)).toBe('poweredOn');
    expect(tasks).toEqual([{ type: 'Task', value: expect.stringMatching(/^task-/) }]);
  });

  test('ensurePoweredOn accepts a machine that is already on', async () => {
    const vm = await clone(true);
    await ensurePoweredOn(client, vm);
    expect(await powerState(vm)).toBe('poweredOn');
  });

  test('ensurePoweredOn fails when the machine does not exist', async () => {
    const vm = await clone(false);
    await client.tasks.follow(await client.machines.destroy(vm));
    await expect(ensurePoweredOn(client, vm)).rejects.toMatchObject({ code: 'OBJECT_NOT_FOUND' });
  });
});

describe('ensurePoweredOff', () => {
  test('ensurePoweredOff powers a machine off and reports the task', async () => {
    const vm = await clone(true);
    await ensurePoweredOff(client, vm, { onTask });
    expect(await powerState(vm)).toBe('poweredOff');
    expect(tasks).toHaveLength(1);
  });

  test('ensurePoweredOff accepts a machine that is already off', async () => {
    const vm = await clone(false);
    await ensurePoweredOff(client, vm);
    expect(await powerState(vm)).toBe('poweredOff');
  });

  test('ensurePoweredOff fails with the fault of the power-off call', async () => {
    const vm = await clone(true);
    await vcsim.control.fault({ method: 'PowerOffVM_Task', fault: 'NoPermission', max: 1 });
    await expect(ensurePoweredOff(client, vm)).rejects.toMatchObject({ code: 'NO_PERMISSION' });
    expect(await powerState(vm)).toBe('poweredOn');
  });
});

describe('ensureDestroyed', () => {
  test('ensureDestroyed powers off and destroys a running machine and reports both tasks', async () => {
    const vm = await clone(true);
    expect(await ensureDestroyed(client, vm, { onTask })).toBe(true);
    await expect(client.read(vm, ['name'])).rejects.toMatchObject({ code: 'OBJECT_NOT_FOUND' });
    expect(tasks).toHaveLength(2);
  });

  test('ensureDestroyed destroys a machine that is off', async () => {
    expect(await ensureDestroyed(client, await clone(false))).toBe(true);
  });

  test('ensureDestroyed sends no power-off when powerOff is false', async () => {
    expect(await ensureDestroyed(client, await clone(false), { powerOff: false, onTask })).toBe(true);
    expect(await vcsim.control.calls()).not.toHaveProperty('PowerOffVM_Task');
    expect(tasks).toHaveLength(1);
  });

  test('ensureDestroyed returns false when vCenter does not know the reference', async () => {
    const vm = await clone(false);
    await ensureDestroyed(client, vm);
    expect(await ensureDestroyed(client, vm, { onTask })).toBe(false);
    expect(await ensureDestroyed(client, vm, { powerOff: false })).toBe(false);
  });

  test('ensureDestroyed fails with the fault of the destroy call', async () => {
    const vm = await clone(false);
    await vcsim.control.fault({ method: 'Destroy_Task', fault: 'NoPermission', max: 1 });
    await expect(ensureDestroyed(client, vm)).rejects.toMatchObject({ code: 'NO_PERMISSION' });
  });

  test('ensureDestroyed changes nothing when assertLeader throws', async () => {
    const vm = await clone(true);
    const assertLeader = () => {
      throw new Error('not the leader');
    };
    await expect(ensureDestroyed(client, vm, { assertLeader })).rejects.toThrow('not the leader');
    expect(await powerState(vm)).toBe('poweredOn');
  });
});
