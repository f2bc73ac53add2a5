import { field } from '@vmwright/testbed';
import type { Ref } from '@vmwright/vsphere';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { install, ready, TEMPLATE, type WithVcenter } from './with-vcenter.ts';

const CLUSTER = { cluster: 'DC0_C0' };

let env: WithVcenter;

beforeAll(async () => {
  const inventory = { standaloneHosts: 0, clusters: 2, pools: 1, datastores: 2 };
  env = await install({ vcsim: { inventory } });
});
afterAll(() => env[Symbol.asyncDispose]());
beforeEach(() => env.vcsim.control.clearFaults());

/** Waits until the condition Ready has this reason. @returns `status.lastMessage` */
async function messageFor(name: string, reason: string): Promise<unknown> {
  const group = await env.until(name, (found) => field(ready(found), 'reason') === reason);
  return field(group, 'status', 'lastMessage');
}

/** Returns the pools and datastores of the group's machines in vCenter. */
async function machinesOf(name: string) {
  const ids = new Set((await env.machines(`default-${name}`)).map(({ id }) => id));
  const all = await env.vcenter.list('VirtualMachine', ['resourcePool', 'datastore']);
  return all.filter(({ ref }) => ids.has(ref.value));
}

async function templateNamed(name: string): Promise<Ref<'VirtualMachine'>> {
  const { lookup } = env.vcenter;
  return lookup.template(await lookup.datacenter(), name);
}

test('if vCenter has several clusters, a placement without a cluster is reported as ambiguous', async () => {
  await env.group('anywhere', { replicas: 1 });
  expect(await messageFor('anywhere', 'Ambiguous')).toMatch(
    /specify one by its path \(available: .*DC0_C0.*DC0_C1/,
  );
  await env.change('anywhere', { placement: { cluster: 'DC0_C1' } });
  await env.running('anywhere', 1);
});

test('machines are placed in the resource pool and on the datastore of the placement', async () => {
  const placement = { cluster: 'DC0_C1', resourcePool: 'DC0_C1_RP1', datastore: 'LocalDS_1' };
  await env.group('placed', { replicas: 2, placement });
  await env.running('placed', 2);
  const { lookup } = env.vcenter;
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
])('a missing %s is reported until the placement is corrected', async (what, name, message) => {
  const group = `no-${what}`;
  await env.group(group, { replicas: 1, placement: { ...CLUSTER, [what]: name } });
  expect(await messageFor(group, 'NotFound')).toBe(message);
  await env.change(group, { placement: { ...CLUSTER, [what]: what === 'cluster' ? 'DC0_C0' : 'LocalDS_0' } });
  await env.running(group, 1);
});

test('linked clones need a snapshot of the template, and are created once it exists', async () => {
  await env.group('linked', { replicas: 1, linked: true, placement: CLUSTER });
  expect(await messageFor('linked', 'NoSnapshot')).toBe(
    `template '${TEMPLATE}' has no snapshot for linked clones; take one, or set linked: false`,
  );
  const { machines, tasks } = env.vcenter;
  await tasks.follow(await machines.snapshot(await templateNamed(TEMPLATE), 'base'));
  await env.running('linked', 1);
});

test('cpu and memory are hot-added without a restart, and reduced with a restart', async () => {
  await env.group('growing', { replicas: 2, placement: CLUSTER });
  await env.running('growing', 2);
  const { machines, tasks } = env.vcenter;
  // Enabled on each machine and not on the template, because vcsim cannot reconfigure templates.
  const config = { cpuHotAddEnabled: true, memoryHotAddEnabled: true };
  for (const { ref } of await machinesOf('growing'))
    await tasks.follow(await machines.reconfigure(ref, { config }));
  const [last] = (await env.machines('default-growing')).slice(-1);
  await env.vcsim.control.vm(last?.name ?? '', { ip: '10.0.0.7' });
  // Once the status has this address, the operator has also observed the earlier changes.
  await env.until('growing', (group) =>
    JSON.stringify(field(group, 'status', 'replicas')).includes('10.0.0.7'),
  );
  await env.vcsim.control.resetCalls();
  await env.change('growing', { cpu: 4, memory: 2 });
  await env.running('growing', 2);
  for (const machine of await env.machines('default-growing'))
    expect(machine).toMatchObject({ cpus: 4, memoryMb: 2048, power: 'poweredOn' });
  const calls = await env.vcsim.control.calls();
  expect([calls.ReconfigVM_Task, calls.PowerOffVM_Task]).toEqual([2, undefined]);
  // CPUs can be removed only while the machine is off.
  await env.change('growing', { cpu: 2 });
  await env.running('growing', 2);
  expect((await env.vcsim.control.calls()).PowerOffVM_Task).toBe(2);
});

test.each([
  ['CreateFolder', {}],
  ['Rename_Task', {}],
  ['SetField', {}],
  ['CloneVM_Task', {}],
  ['ReconfigVM_Task', { cpu: 4 }],
  ['PowerOffVM_Task', { cpu: 4 }],
  ['PowerOnVM_Task', { cpu: 4 }],
  ['Destroy_Task', { replicas: 0 }],
])(
  'a missing privilege for %s is reported, and the operation continues once the privilege is granted',
  async (method, change) => {
    const name = `denied-${method.replace('_Task', '').toLowerCase()}`;
    const isLater = Object.keys(change).length > 0;
    if (isLater) {
      await env.group(name, { replicas: 1, placement: CLUSTER });
      await env.running(name, 1);
    }
    await env.vcsim.control.fault({ method, fault: 'NoPermission' });
    if (isLater) await env.change(name, change);
    else await env.group(name, { replicas: 1, placement: CLUSTER });
    expect(await messageFor(name, 'NoPermission')).toMatch(/: the user lacks a privilege/);
    await env.vcsim.control.clearFaults();
    // A rejected size is retried only after ten minutes, or when the spec changes, so the test changes the size.
    if (method === 'ReconfigVM_Task') await env.change(name, { cpu: 2 });
    await env.running(name, 'replicas' in change ? 0 : 1);
  },
);

test('if vCenter rejects a new size, the machine runs with its old size until the spec changes again', async () => {
  const folder = 'default-rejected';
  const machines = async () => (await env.machines(folder)).map(({ power, cpus }) => ({ power, cpus }));
  await env.group('rejected', { replicas: 1, placement: CLUSTER });
  await env.running('rejected', 1);
  await env.vcsim.control.fault({ method: 'ReconfigVM_Task', fault: 'NoPermission' });
  await env.change('rejected', { cpu: 4 });
  await messageFor('rejected', 'NoPermission');
  await expect.poll(machines, { timeout: 30_000 }).toEqual([{ power: 'poweredOn', cpus: 2 }]);
  const [machine] = await machinesOf('rejected');
  if (machine === undefined) throw new Error('the group has no machine');
  await env.vcenter.tasks.follow(await env.vcenter.machines.powerOff(machine.ref));
  await expect.poll(machines, { timeout: 30_000 }).toEqual([{ power: 'poweredOn', cpus: 2 }]);
  await env.vcsim.control.clearFaults();
  await env.change('rejected', { cpu: 8 });
  await env.running('rejected', 1);
  expect(await machines()).toEqual([{ power: 'poweredOn', cpus: 8 }]);
});
