import { field, type KubeObject } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { GROUPS, install, type Spec, type WithVcenter } from './with-vcenter.ts';

const CLUSTER = 'production';
const ARGS = ['--vmgroup-sweep=1s', `--cluster-id=${CLUSTER}`];

test('garbage collection deletes a machine that was created after its group was deleted', async () => {
  await using env = await install({ args: ARGS });
  await lateCreate(env, 'web');
  await expect.poll(() => env.machines(), { timeout: 60_000 }).toEqual([]);
  await orphanCount(env, 0);
}, 180_000);

test('garbage collection deletes a late machine in a folder that was kept because of foreign machines, even without any group', async () => {
  await using env = await install({ args: ARGS });
  const folder = 'teams/blue/default-web';
  const group = await running(env, 'web', { replicas: 1, placement: { folder: 'teams/blue' } });
  const foreign = await env.clone(folder, { name: 'foreign' });
  await env.kubectl('delete', 'vmgroup', 'web');
  const late = await lateClone(env, group, folder);
  const ids = async () => (await env.machines('default-web')).map(({ id }) => id);
  expect(await ids()).toContain(late);
  await expect.poll(ids, { timeout: 60_000 }).toEqual([foreign]);
}, 180_000);

test('after a restart, machines without a group are kept and reported', async () => {
  await using env = await install({ args: ARGS });
  await running(env, 'usual', { replicas: 1 });
  await running(env, 'unusual', { replicas: 1, placement: { folder: 'teams/blue' } });
  const before = await env.machines();
  expect(before).toHaveLength(2);
  await env.operator.stop();
  for (const name of ['usual', 'unusual']) await deleteUnseen(env, name);
  await env.operator.start();
  await orphanCount(env, 4); // two machines and their folders
  await lateCreate(env, 'marker');
  await orphanCount(env, 5);
  await orphanCount(env, 4); // the late machine is deleted, so garbage collection has seen all others
  expect(await env.machines()).toEqual(before);
  const events = await env.kubectl('get', 'events', '--field-selector=reason=Orphaned', '-o', 'name');
  expect(events.trim().split('\n')).toHaveLength(4);
  const table = await env.orphans();
  for (const { id, name } of before)
    expect(table).toMatch(new RegExp(`default/${id} +machine '${name}' +default/`));
}, 180_000);

test('garbage collection keeps and reports the machines of a group that is missing after etcd was restored', async () => {
  await using env = await install({ args: ARGS });
  await running(env, 'old', { replicas: 1 });
  const restore = await env.controlPlane.backup();
  await running(env, 'new', { replicas: 2 });
  const before = await env.machines();
  expect(before).toHaveLength(3);
  await restore();
  expect(await env.kubectl('get', 'vmgroups', '-o', 'name')).toBe('vmgroup.vm.codeconnect.vmworld.com/old\n');
  await env.operator.restart();
  await orphanCount(env, 3);
  await lateCreate(env, 'marker');
  await orphanCount(env, 4);
  await orphanCount(env, 3);
  expect(await env.machines()).toEqual(before);
}, 240_000);

/** Waits until the operator's metrics report this number of machines and folders without a group. */
async function orphanCount(env: WithVcenter, orphans: number): Promise<void> {
  const read = async () => /^vmwright_vmgroup_orphans (\d+)$/m.exec(await env.metrics(env.operator))?.[1];
  await expect.poll(read, { timeout: 60_000 }).toBe(String(orphans));
}

async function running(env: WithVcenter, name: string, spec: Spec & { readonly replicas: number }) {
  await env.group(name, spec);
  return env.running(name, spec.replicas);
}

/** Deletes a group without its finalizer, so that the operator does not witness the deletion. */
async function deleteUnseen(env: WithVcenter, name: string): Promise<void> {
  const { api } = env.controlPlane.cluster;
  await api.merge(`${GROUPS}/${name}`, { metadata: { finalizers: [] } });
  await api.delete(`${GROUPS}/${name}`);
}

/** Creates a machine for a deleted group, like a clone request that was delayed in the network. */
async function lateCreate(env: WithVcenter, name: string): Promise<void> {
  const group = await running(env, name, { replicas: 1 });
  await env.kubectl('delete', 'vmgroup', name);
  const { lookup, machines } = env.vcenter;
  const root = await lookup.folder(await lookup.datacenter(), 'vm-operator');
  await machines.createFolder(root, `default-${name}`); // without an owner, so it stays
  await lateClone(env, group, `vm-operator/default-${name}`);
}

/** Clones a machine with the identity of the group's first replica. @returns its id */
function lateClone(env: WithVcenter, { metadata, ...group }: KubeObject, folder: string): Promise<string> {
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
