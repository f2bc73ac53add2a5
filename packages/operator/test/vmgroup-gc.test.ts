import { field, type KubeObject } from '@vmwright/testbed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { QUICK_ELECTION } from './installed.ts';
import { auditLines } from './log-lines.ts';
import { GROUPS, install, type Spec, type WithVcenter } from './with-vcenter.ts';

const CLUSTER = 'production';
const HOUR_MS = 3_600_000;
const ARGS = ['--vmgroup-sweep=1s', `--cluster-id=${CLUSTER}`, ...QUICK_ELECTION];

let env: WithVcenter;
beforeAll(async () => {
  env = await install({ args: ARGS });
  const { lookup, machines } = env.vcenter;
  const { vmFolder } = await lookup.datacenter();
  await machines.createFolder(vmFolder, 'vm-operator'); // otherwise, the first group would create this folder
});
afterAll(() => env[Symbol.asyncDispose]());

test('garbage collection deletes a machine that was created after its group was deleted, and writes an audit line before the machine is gone', async () => {
  const { control } = env.vcsim;
  const group = await deletedGroup('web');
  await control.delay({ tasks: { Destroy: HOUR_MS } });
  await lateClone(group, 'vm-operator/default-web');
  const collected = async () =>
    (await auditLines(env.operator, 'default/web')).filter((line) => field(line, 'audit') === 'collect');
  await expect.poll(collected, { timeout: 60_000 }).toMatchObject([
    {
      kind: 'VmGroup',
      uid: group.metadata.uid,
      resource: 'VirtualMachine',
      machine: field(group, 'status', 'replicas', '0', 'instanceUuid'),
      task: expect.stringMatching(/^task-/),
    },
  ]);
  expect(await env.machines()).toHaveLength(1);
  await control.clearDelays();
  await expect.poll(() => env.machines(), { timeout: 60_000 }).toEqual([]);
  await orphanCount(0);
}, 180_000);

test('garbage collection deletes a machine of a deleted group in a folder that was kept because of a foreign machine', async () => {
  const folder = 'teams/blue/default-kept';
  const group = await running('kept', { replicas: 1, placement: { folder: 'teams/blue' } });
  const foreign = await env.clone(folder, { name: 'foreign' });
  await env.kubectl('delete', 'vmgroup', 'kept');
  const { control } = env.vcsim;
  await control.delay({ tasks: { Destroy: HOUR_MS } });
  const late = await lateClone(group, folder);
  const ids = async () => (await env.machines('default-kept')).map(({ id }) => id);
  expect(await ids()).toContain(late);
  await control.clearDelays();
  await expect.poll(ids, { timeout: 60_000 }).toEqual([foreign]);
}, 180_000);

test('garbage collection deletes a folder that vCenter creates only after its group is gone', async () => {
  const { control } = env.vcsim;
  const before = await env.folders();
  await control.resetCalls();
  await control.delay({ methods: { CreateFolder: HOUR_MS } });
  await env.group('late', { replicas: 1 });
  await expect.poll(() => control.calls(), { timeout: 60_000 }).toMatchObject({ CreateFolder: 1 });
  await env.operator.kill(); // vCenter still executes the request
  await env.operator.start();
  await env.kubectl('delete', 'vmgroup', 'late');
  expect(await env.folders()).toEqual(before);
  // Ends the delay of CreateFolder. Delays the removal of folders instead, so that the test sees the folder before
  // garbage collection deletes it.
  await control.delay({ methods: { UnregisterAndDestroy_Task: HOUR_MS } });
  await expect.poll(() => env.folders()).toHaveLength(before.length + 1);
  await control.clearDelays();
  await expect.poll(() => env.folders(), { timeout: 60_000 }).toEqual(before);
  await orphanCount(0);
}, 180_000);

test('a folder is removed with its group even if the operator was killed before it recorded the group as the owner of the folder', async () => {
  const { control } = env.vcsim;
  const before = await env.folders();
  await control.fault({ method: 'SetField', fault: 'NoPermission' });
  await env.group('unowned', { replicas: 1 });
  await expect.poll(() => env.folders(), { timeout: 60_000 }).toHaveLength(before.length + 1);
  await env.operator.kill();
  await control.clearFaults();
  await env.operator.start();
  await env.running('unowned', 1);
  expect(await env.folders()).toEqual([...before, 'default-unowned']);
  await env.kubectl('delete', 'vmgroup', 'unowned');
  expect(await env.folders()).toEqual(before);
}, 180_000);

test('machines are kept and reported if their group was deleted while the operator was down', async () => {
  await running('usual', { replicas: 1 });
  await running('unusual', { replicas: 1, placement: { folder: 'teams/blue' } });
  const before = await env.machines();
  expect(before).toHaveLength(2);
  await env.operator.stop();
  for (const name of ['usual', 'unusual']) await deleteUnseen(name);
  await env.operator.start();
  await orphanCount(4); // two machines and their two folders
  await untilCollected('marker');
  await orphanCount(4);
  expect(await env.machines()).toEqual(before);
  const events = async () =>
    (await env.kubectl('get', 'events', '--field-selector=reason=Orphaned', '-o', 'name')).trim().split('\n');
  await expect.poll(events).toHaveLength(4);
  const table = await env.orphans();
  for (const { id, name } of before)
    expect(table).toMatch(new RegExp(`default/${id} +machine '${name}' +default/`));
}, 180_000);

// Must be the last test, because it resets the cluster. The orphans of the previous test still exist.
test('garbage collection keeps and reports the machines of a group that is missing after etcd was restored', async () => {
  await running('old', { replicas: 1 });
  const restore = await env.controlPlane.backup();
  await running('new', { replicas: 2 });
  const before = await env.machines();
  expect(before).toHaveLength(5);
  await restore();
  expect(await env.kubectl('get', 'vmgroups', '-o', 'name')).toBe('vmgroup.vm.codeconnect.vmworld.com/old\n');
  await env.operator.restart();
  await orphanCount(7);
  await untilCollected('second-marker');
  await orphanCount(7);
  expect(await env.machines()).toEqual(before);
}, 240_000);

/** Waits until the operator's metrics report this number of machines and folders without a group. */
async function orphanCount(orphans: number): Promise<void> {
  await expect.poll(() => env.metric('vmwright_vmgroup_orphans'), { timeout: 60_000 }).toBe(orphans);
}

/**
 * Creates a machine for a deleted group, and waits until garbage collection has deleted it. The same run also processes
 * all older orphans. The metric `orphans` includes the machine until the next run.
 */
async function untilCollected(name: string): Promise<void> {
  const total = () => env.metric('vmwright_vmgroup_swept_total');
  const before = await total();
  await lateCreate(name);
  await expect.poll(total, { timeout: 60_000 }).toBe(before + 1);
}

async function running(name: string, spec: Spec & { readonly replicas: number }) {
  await env.group(name, spec);
  return env.running(name, spec.replicas);
}

/** Deletes a group without its finalizer, so that the operator does not witness the deletion. */
async function deleteUnseen(name: string): Promise<void> {
  const { api } = env.controlPlane.cluster;
  await api.merge(`${GROUPS}/${name}`, { metadata: { finalizers: [] } });
  await api.delete(`${GROUPS}/${name}`);
}

/** Creates a machine for a deleted group, like a clone request that was delayed in the network. */
async function lateCreate(name: string): Promise<void> {
  await lateClone(await deletedGroup(name), `vm-operator/default-${name}`);
}

/**
 * Creates and deletes a group. Then creates a folder with the same name as the group's folder, so that a machine can be
 * cloned into it.
 */
async function deletedGroup(name: string): Promise<KubeObject> {
  const group = await running(name, { replicas: 1 });
  await env.kubectl('delete', 'vmgroup', name);
  const { lookup, machines } = env.vcenter;
  const root = await lookup.folder(await lookup.datacenter(), 'vm-operator');
  await machines.createFolder(root, `default-${name}`); // has no owner, so the operator keeps it
  return group;
}

/** Clones a machine with the identity of the group's first replica. @returns its id */
function lateClone({ metadata, ...group }: KubeObject, folder: string): Promise<string> {
  const [replica] = [field(group, 'status', 'replicas') ?? []].flat();
  return env.clone(folder, {
    name: String(field(replica, 'name')),
    instanceUuid: String(field(replica, 'instanceUuid')),
    extraConfig: {
      'vmwright.cluster': CLUSTER,
      'vmwright.uid': String(metadata.uid),
      'vmwright.namespace': 'default',
      'vmwright.name': metadata.name,
      'vmwright.slot': '0',
    },
  });
}
