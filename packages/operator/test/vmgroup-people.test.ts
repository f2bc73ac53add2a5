import { condition, field, type KubeObject } from '@vmwright/testbed';
import { isRef, type Ref } from '@vmwright/vsphere';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { VcenterUser } from './vcenter-user.ts';
import { install, ready, TEMPLATE, type WithVcenter } from './with-vcenter.ts';

/* Tests changes that people make to the machines of a group with vCenter's own tools while the operator runs. */

let env: WithVcenter;
let user: VcenterUser;
let elsewhere: string;

beforeAll(async () => {
  env = await install({ vcsim: { templates: [TEMPLATE] }, args: ['--vmgroup-sweep=1s'] });
  user = new VcenterUser(env.vcsim, env.vcenter);
  const { lookup, machines } = env.vcenter;
  const { vmFolder } = await lookup.datacenter();
  elsewhere = (await machines.createFolder(vmFolder, 'elsewhere')).value;
});
afterAll(() => env[Symbol.asyncDispose]());

const lastMessage = (group: KubeObject) => field(group, 'status', 'lastMessage');
const reason = (group: KubeObject) => field(ready(group), 'reason');
const replicas = (group: KubeObject): readonly unknown[] => [field(group, 'status', 'replicas') ?? []].flat();
const isTerminating = (replica: unknown) => field(replica, 'terminating') === true;
const ref = (value: string): Ref<'VirtualMachine'> => ({ type: 'VirtualMachine', value });

/**
 * Ends the operator's session, so that the operator creates new views. Unlike in vCenter, an existing view of vcsim
 * still contains machines that were moved away, and does not report machines that became templates.
 */
async function refreshViews(): Promise<void> {
  await env.vcsim.control.expireSessions();
}

/** Returns the machines of a group in any folder, sorted by name. */
async function machinesOf(name: string) {
  const all = await env.machines();
  return all.filter((each) => each.name.startsWith(`${name}-replica-`)).sort(byName);
}

const byName = (a: { readonly name: string }, b: { readonly name: string }) => a.name.localeCompare(b.name);

async function powerOff(id: string): Promise<void> {
  await env.vcenter.tasks.follow(await env.vcenter.machines.powerOff(ref(id)));
}

describe('machines that people moved out of the watched folder', () => {
  test('a machine that people moved away is selected first by a scale-in, and blocks the deletion of its group', async () => {
    await env.group('moved', { replicas: 3 });
    await env.running('moved', 3);
    const [away] = await machinesOf('moved');
    if (away === undefined) throw new Error('the group has no machine');
    await user.move(away.id, elsewhere);
    await refreshViews();
    await env.until('moved', (group) => field(group, 'status', 'currentReplicas') === 2);
    const reported = await env.until('moved', (group) => reason(group) === 'Moved');
    const message = `machine '${away.name}' is no longer in the group's folder; move it back, or delete it`;
    expect(lastMessage(reported)).toBe(message);
    await env.change('moved', { replicas: 2 });
    const scaled = await env.until(
      'moved',
      (group) => field(group, 'status', 'currentReplicas') === 2 && replicas(group).some(isTerminating),
    );
    expect(replicas(scaled).filter(isTerminating)).toMatchObject([{ name: away.name }]);
    const blocked = await env.until(
      'moved',
      (group) => reason(group) === 'Moved' && field(group, 'status', 'desiredReplicas') === 2,
    );
    expect(blocked).toMatchObject({ status: { phase: 'ERROR', currentReplicas: 2, lastMessage: message } });
    await env.kubectl('delete', 'vmgroup', 'moved', '--wait=false');
    // The operator removes the machines in the folder. The group stays because of the moved machine.
    await env.until('moved', (group) => replicas(group).length === 1 && lastMessage(group) === message);
    expect(await machinesOf('moved')).toMatchObject([{ id: away.id, power: 'poweredOn' }]);
    await powerOff(away.id);
    await env.vcenter.tasks.follow(await env.vcenter.machines.destroy(ref(away.id)));
    await env.gone('moved');
  });

  test('a machine that people moved away is removed when it is moved back after a scale-in', async () => {
    await env.group('back', { replicas: 2 });
    await env.running('back', 2);
    const [away] = await machinesOf('back');
    const folder = (await env.vcenter.read(ref(away?.id ?? ''), ['parent'])).parent?.value ?? '';
    await user.move(away?.id ?? '', elsewhere);
    await refreshViews();
    await env.until(
      'back',
      (group) => reason(group) === 'Moved' && field(group, 'status', 'currentReplicas') === 1,
    );
    await env.change('back', { replicas: 1 });
    await env.until('back', (group) => replicas(group).some(isTerminating));
    await user.move(away?.id ?? '', folder);
    await env.running('back', 1);
    expect(await machinesOf('back')).toHaveLength(1);
  });

  test('several machines that people moved away are listed in one message, which stays the same on every retry', async () => {
    await env.group('many', { replicas: 3 });
    const group = await env.running('many', 3);
    const [one, two] = replicas(group);
    const all = await machinesOf('many');
    const idOf = (replica: unknown) => all.find(({ name }) => name === field(replica, 'name'))?.id ?? '';
    await user.move(idOf(two), elsewhere);
    await user.move(idOf(one), elsewhere);
    await refreshViews();
    const message = `machines '${field(one, 'name')}', '${field(two, 'name')}' are no longer in the group's folder; move them back, or delete them`;
    await env.until(
      'many',
      (found) => lastMessage(found) === message && field(found, 'status', 'currentReplicas') === 1,
    );
    const attempts = (found: KubeObject) => replicas(found).map((each) => Number(field(each, 'attempts')));
    // The operator looks up both machines again, and the message stays the same.
    const seen = new Set<unknown>();
    await env.until('many', (found) => {
      seen.add(lastMessage(found));
      return attempts(found).filter((count) => count >= 4).length === 2;
    });
    expect([...seen]).toEqual([message]);
    for (const each of [one, two]) {
      await powerOff(idOf(each));
      await env.vcenter.tasks.follow(await env.vcenter.machines.destroy(ref(idOf(each))));
    }
    await env.running('many', 3);
  });
});

test('a machine that people moved to another folder below the watched one is reported, and keeps running', async () => {
  await env.group('below', { replicas: 1 });
  await env.running('below', 1);
  const [machine] = await machinesOf('below');
  const folder = (await env.vcenter.read(ref(machine?.id ?? ''), ['parent'])).parent;
  if (folder?.type !== 'Folder') throw new Error('the folder is missing');
  const inner = await env.vcenter.machines.createFolder({ type: 'Folder', value: folder.value }, 'inner');
  await user.move(machine?.id ?? '', inner.value);
  const moved = await env.until('below', (group) => reason(group) === 'Moved');
  expect(moved).toMatchObject({ status: { currentReplicas: 1, readyReplicas: 1 } });
  await env.change('below', { replicas: 0 });
  await env.until('below', (group) => replicas(group).some(isTerminating) && reason(group) === 'Moved');
  expect(await machinesOf('below')).toMatchObject([{ id: machine?.id, power: 'poweredOn' }]);
  await user.move(machine?.id ?? '', folder.value);
  await env.running('below', 0);
  expect(await machinesOf('below')).toEqual([]);
});

test('a renamed machine is shown with its current name, and stays the same machine', async () => {
  await env.group('named', { replicas: 2 });
  await env.running('named', 2);
  const [machine] = await machinesOf('named');
  await user.rename('VirtualMachine', machine?.id ?? '', 'named-replica-database');
  const renamed = await env.until('named', (group) =>
    replicas(group).some((each) => field(each, 'name') === 'named-replica-database'),
  );
  expect(renamed).toMatchObject({ status: { phase: 'RUNNING', readyReplicas: 2 } });
  await env.kubectl('delete', 'vmgroup', 'named');
  expect(await machinesOf('named')).toEqual([]);
});

test('a machine that people turned into a template is reported, and not destroyed at scale-in', async () => {
  await env.group('golden', { replicas: 1 });
  await env.running('golden', 1);
  const [machine] = await machinesOf('golden');
  const id = machine?.id ?? '';
  await env.kubectl('annotate', 'vmgroup', 'golden', 'vmwright.dev/paused=true');
  // Waits until the operator has observed the annotation. Until then, it could power a stopped machine on again.
  await env.until('golden', (group) => condition(group, 'Paused') === 'True');
  await powerOff(id);
  await user.markAsTemplate(id);
  await refreshViews();
  await env.kubectl('annotate', 'vmgroup', 'golden', 'vmwright.dev/paused-');
  const reported = await env.until('golden', (group) => reason(group) === 'IsTemplate');
  const message = `machine '${machine?.name}' was turned into a template; convert it back to a virtual machine, or delete it`;
  expect(lastMessage(reported)).toBe(message);
  await env.change('golden', { replicas: 0 });
  await env.until('golden', (group) => replicas(group).some(isTerminating) && reason(group) === 'IsTemplate');
  expect(await machinesOf('golden')).toHaveLength(1);
  const { lookup } = env.vcenter;
  const pool = await lookup.resourcePool(await lookup.datacenter());
  await user.markAsMachine(id, pool.value);
  await refreshViews();
  await env.running('golden', 0);
  expect(await machinesOf('golden')).toEqual([]);
});

test('the annotation vmwright.dev/replace replaces a machine only once, even if the annotation stays', async () => {
  await env.group('swapped', { replicas: 2 });
  const running = await env.running('swapped', 2);
  const [machine, other] = await machinesOf('swapped');
  const idsOf = async () => (await machinesOf('swapped')).map(({ id }) => id);
  await env.kubectl('annotate', 'vmgroup', 'swapped', `vmwright.dev/replace=${machine?.name}`);
  await env.untilAfter(running, (group) => replicas(group).some(isTerminating));
  const after = await env.running('swapped', 2);
  const ids = await idsOf();
  expect(ids).not.toContain(machine?.id);
  expect(ids).toContain(other?.id);
  expect(field(after, 'status', 'replacing')).toEqual({ request: machine?.name, slots: [] });
  // The operator does not execute the same request again.
  await env.change('swapped', { cpu: 3 });
  await env.running('swapped', 2);
  expect(await idsOf()).toEqual(ids);
});

test('with OnDelete, a machine that an administrator powers off and deletes is cloned again', async () => {
  await env.group('ondelete', { replicas: 2, update: { strategy: 'OnDelete' } });
  await env.running('ondelete', 2);
  const [machine] = await machinesOf('ondelete');
  await powerOff(machine?.id ?? '');
  const off = await env.until('ondelete', (group) => field(group, 'status', 'readyReplicas') === 1);
  expect(replicas(off).filter((each) => field(each, 'offSince') !== undefined)).toHaveLength(1);
  await env.vcenter.tasks.follow(await env.vcenter.machines.destroy(ref(machine?.id ?? '')));
  await env.running('ondelete', 2);
});

test('a folder that stays because of a foreign machine is reported in an event, and removed once it is empty', async () => {
  await env.group('shared', { replicas: 1 });
  await env.running('shared', 1);
  const { lookup, machines, tasks } = env.vcenter;
  const datacenter = await lookup.datacenter();
  const foreign = await tasks.follow(
    await machines.clone({
      name: 'foreign',
      template: await lookup.template(datacenter, TEMPLATE),
      folder: await lookup.folder(datacenter, 'vm-operator/default-shared'),
      resourcePool: await lookup.resourcePool(datacenter),
    }),
  );
  await env.kubectl('delete', 'vmgroup', 'shared');
  const events = () =>
    env.kubectl('get', 'events.events.k8s.io', '-o', 'jsonpath={.items[?(@.reason=="FolderKept")].note}');
  await expect.poll(events).toContain("the folder 'default-shared' stays");
  expect(await env.folders()).toContain('default-shared');
  if (!isRef(foreign, 'VirtualMachine')) throw new Error('the clone task returned no machine');
  await tasks.follow(await machines.destroy(foreign));
  await expect.poll(() => env.folders(), { timeout: 30_000 }).not.toContain('default-shared');
});

test('after people rename a watched folder and the operator restarts, the group still uses that folder', async () => {
  await env.group('kept', { replicas: 1, placement: { folder: 'before' } });
  const group = await env.running('kept', 1);
  const { lookup } = env.vcenter;
  const folderId = String(field(group, 'status', 'folderId'));
  await user.rename('Folder', folderId, 'after');
  await env.operator.restart();
  await env.change('kept', { replicas: 2 });
  await env.running('kept', 2);
  expect(await machinesOf('kept')).toHaveLength(2);
  const { vmFolder } = await lookup.datacenter();
  expect(await lookup.child(vmFolder, 'before')).toBe(undefined);
  await env.kubectl('delete', 'vmgroup', 'kept');
  expect(await machinesOf('kept')).toEqual([]);
});
