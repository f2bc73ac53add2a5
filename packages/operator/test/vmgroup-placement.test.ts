import { field } from '@vmwright/testbed';
import type { Ref } from '@vmwright/vsphere';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { install, ready, TEMPLATE, type WithVcenter } from './with-vcenter.ts';

const WHERE = { cluster: 'DC0_C0' };

let it: WithVcenter;

beforeAll(async () => {
  const inventory = { standaloneHosts: 0, clusters: 2, pools: 1, datastores: 2 };
  it = await install({ vcsim: { inventory } });
});
afterAll(() => it[Symbol.asyncDispose]());
beforeEach(() => it.vcsim.control.clearFaults());

/** Waits until the group has trouble of this kind, and gives its words. */
async function told(name: string, reason: string): Promise<unknown> {
  const group = await it.until(name, (found) => field(ready(found), 'reason') === reason);
  return field(group, 'status', 'lastMessage');
}

/** Where vCenter has the group's machines. */
async function machinesOf(name: string) {
  const ids = new Set((await it.machines(`default-${name}`)).map(({ id }) => id));
  const all = await it.vcenter.list('VirtualMachine', ['resourcePool', 'datastore']);
  return all.filter(({ ref }) => ids.has(ref.value));
}

async function templateNamed(name: string): Promise<Ref<'VirtualMachine'>> {
  const { lookup } = it.vcenter;
  return lookup.template(await lookup.datacenter(), name);
}

test('of several clusters one has to be said, and which there are is told', async () => {
  await it.group('anywhere', { replicas: 1 });
  expect(await told('anywhere', 'Ambiguous')).toMatch(
    /specify one by its path \(available: .*DC0_C0.*DC0_C1/,
  );
  await it.change('anywhere', { placement: { cluster: 'DC0_C1' } });
  await it.running('anywhere', 1);
});

test('machines go to the pool of the cluster, and to the datastore, that are said', async () => {
  const placement = { cluster: 'DC0_C1', resourcePool: 'DC0_C1_RP1', datastore: 'LocalDS_1' };
  await it.group('placed', { replicas: 2, placement });
  await it.running('placed', 2);
  const { lookup } = it.vcenter;
  const datacenter = await lookup.datacenter();
  const pool = await lookup.resourcePool(datacenter, 'DC0_C1/Resources/DC0_C1_RP1');
  const datastore = await lookup.datastore(datacenter, 'LocalDS_1');
  const machines = await machinesOf('placed');
  expect(machines).toHaveLength(2);
  for (const { properties } of machines) {
    expect(properties.resourcePool).toEqual(pool);
    expect(properties.datastore).toEqual([datastore]);
  }
});

test.each([
  ['cluster', 'DC0_C9', "resource pool 'DC0_C9' not found in datacenter 'DC0'"],
  ['datastore', 'LocalDS_9', "datastore 'LocalDS_9' not found in datacenter 'DC0'"],
])('a %s that is not there is told, and waited for', async (what, name, message) => {
  const group = `no-${what}`;
  await it.group(group, { replicas: 1, placement: { ...WHERE, [what]: name } });
  expect(await told(group, 'NotFound')).toBe(message);
  await it.change(group, { placement: { ...WHERE, [what]: what === 'cluster' ? 'DC0_C0' : 'LocalDS_0' } });
  await it.running(group, 1);
});

test('linked clones build on a snapshot: without one it is told, and with one they do', async () => {
  await it.group('linked', { replicas: 1, linked: true, placement: WHERE });
  expect(await told('linked', 'NoSnapshot')).toBe(
    `template '${TEMPLATE}' has no snapshot for linked clones; take one, or set linked: false`,
  );
  const { machines, tasks } = it.vcenter;
  await tasks.follow(await machines.snapshot(await templateNamed(TEMPLATE), 'base'));
  await it.running('linked', 1);
});

test('what can be added to a running machine is added while it runs', async () => {
  await it.group('growing', { replicas: 2, placement: WHERE });
  await it.running('growing', 2);
  const { machines, tasks } = it.vcenter;
  const config = { cpuHotAddEnabled: true, memoryHotAddEnabled: true }; // a template's would do, which vcsim keeps as they are
  for (const { ref } of await machinesOf('growing'))
    await tasks.follow(await machines.reconfigure(ref, { config }));
  const [last] = (await it.machines('default-growing')).slice(-1);
  await it.vcsim.control.vm(last?.name ?? '', { ip: '10.0.0.7' });
  // Who has seen this has seen what was before it.
  await it.until('growing', (group) =>
    JSON.stringify(field(group, 'status', 'replicas')).includes('10.0.0.7'),
  );
  await it.vcsim.control.resetCalls();
  await it.change('growing', { cpu: 4, memory: 2 });
  await it.running('growing', 2);
  for (const machine of await it.machines('default-growing'))
    expect(machine).toMatchObject({ cpus: 4, memoryMb: 2048, power: 'poweredOn' });
  const calls = await it.vcsim.control.calls();
  expect([calls.ReconfigVM_Task, calls.PowerOffVM_Task]).toEqual([2, undefined]);
  // What is to be taken away needs it off.
  await it.change('growing', { cpu: 2 });
  await it.running('growing', 2);
  expect((await it.vcsim.control.calls()).PowerOffVM_Task).toBe(2);
});

test.each([
  ['CreateFolder', {}],
  ['SetField', {}],
  ['CloneVM_Task', {}],
  ['ReconfigVM_Task', { cpu: 4 }],
  ['PowerOffVM_Task', { cpu: 4 }],
  ['PowerOnVM_Task', { cpu: 4 }],
  ['Destroy_Task', { replicas: 0 }],
])('a user who may not %s is told so, and with the privilege it goes on', async (method, change) => {
  const name = `may-not-${method.replace('_Task', '').toLowerCase()}`;
  const isLater = Object.keys(change).length > 0;
  if (isLater) {
    await it.group(name, { replicas: 1, placement: WHERE });
    await it.running(name, 1);
  }
  await it.vcsim.control.fault({ method, fault: 'NoPermission' });
  if (isLater) await it.change(name, change);
  else await it.group(name, { replicas: 1, placement: WHERE });
  expect(await told(name, 'NoPermission')).toMatch(/: the user lacks a privilege/);
  await it.vcsim.control.clearFaults();
  // What a machine was taken down for in vain is not tried soon again.
  if (method === 'ReconfigVM_Task') await it.change(name, { cpu: 2 });
  await it.running(name, 'replicas' in change ? 0 : 1);
});

test('one that vCenter does not let be what is wanted runs on as it was, until something else is wanted', async () => {
  const folder = 'default-refused';
  const machines = async () => (await it.machines(folder)).map(({ power, cpus }) => ({ power, cpus }));
  await it.group('refused', { replicas: 1, placement: WHERE });
  await it.running('refused', 1);
  await it.vcsim.control.fault({ method: 'ReconfigVM_Task', fault: 'NoPermission' });
  await it.change('refused', { cpu: 4 });
  await told('refused', 'NoPermission');
  await expect.poll(machines, { timeout: 30_000 }).toEqual([{ power: 'poweredOn', cpus: 2 }]);
  const [machine] = await machinesOf('refused');
  if (machine === undefined) throw new Error('the machine is missing');
  await it.vcenter.tasks.follow(await it.vcenter.machines.powerOff(machine.ref));
  await expect.poll(machines, { timeout: 30_000 }).toEqual([{ power: 'poweredOn', cpus: 2 }]);
  await it.vcsim.control.clearFaults();
  await it.change('refused', { cpu: 8 });
  await it.running('refused', 1);
  expect(await machines()).toEqual([{ power: 'poweredOn', cpus: 8 }]);
});
