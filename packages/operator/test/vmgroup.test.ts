import { condition, field, type KubeObject } from '@vmwright/testbed';
import { isRef, type Ref } from '@vmwright/vsphere';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { VmGroup } from '../src/vmgroup/resource.ts';
import { expectExactPermissions, permissionsFor } from './permissions.ts';
import { VcenterUser } from './vcenter-user.ts';
import { GROUPS, install, isRunning, ready, TEMPLATE, type WithVcenter } from './with-vcenter.ts';

let env: WithVcenter;

beforeAll(async () => {
  env = await install({ audit: true, vcsim: { templates: [TEMPLATE, 'other-template'] } });
});
afterAll(() => env[Symbol.asyncDispose]());
beforeEach(async () => {
  await Promise.all([env.vcsim.control.clearFaults(), env.vcsim.control.clearDelays()]);
});

const lastMessage = (group: KubeObject) => field(group, 'status', 'lastMessage');
const replicas = (group: KubeObject): readonly unknown[] => [field(group, 'status', 'replicas') ?? []].flat();
const reason = (group: KubeObject) => field(ready(group), 'reason');
const isObserved = (group: KubeObject) =>
  field(ready(group), 'observedGeneration') === field(group, 'metadata', 'generation');
const names = (group: KubeObject) => replicas(group).map((replica) => field(replica, 'name'));

test('a group creates machines in its own folder, with cpu, memory and stable identities', async () => {
  await env.group('web', { replicas: 3 });
  const group = await env.running('web', 3);
  const machines = await env.machines('default-web');
  expect(machines).toHaveLength(3);
  for (const { name, power, cpus, memoryMb, instanceUuid } of machines) {
    expect(name).toMatch(/^web-replica-[a-z]{8}$/);
    expect({ power, cpus, memoryMb }).toEqual({ power: 'poweredOn', cpus: 2, memoryMb: 1024 });
    expect(replicas(group)).toContainEqual(expect.objectContaining({ name, instanceUuid, power }));
  }
  expect(field(group, 'status')).toMatchObject({
    phase: 'RUNNING',
    currentReplicas: 3,
    desiredReplicas: 3,
    readyReplicas: 3,
    updatedReplicas: 3,
    lastMessage: 'successfully reconciled VmGroup',
    vcenter: 'default',
    datacenter: 'DC0',
    folder: 'vm-operator',
  });
  expect(ready(group)).toMatchObject({ status: 'True', reason: 'Running' });
  expect(replicas(group)[0]).toMatchObject({ host: expect.stringMatching(/^DC0_C0_H\d$/) });
});

test('an idle operator logs in again after its session expires, without a reconcile', async () => {
  await env.group('idle', { replicas: 1 });
  await env.running('idle', 1);
  expect(await reconciles()).toBeGreaterThan(0);
  const { control } = env.vcsim;
  const foreign = await makeForeign('default-idle');
  let changes = 0;
  const waits = async () => (await control.calls()).WaitForUpdatesEx ?? 0;
  const expire = async () => {
    await control.resetCalls();
    await control.expireSessions();
    await expect.poll(waits).toBeGreaterThan(1);
    // Each lost session lengthens the back-off of the operator, and a change in vCenter resets it. The test changes a
    // foreign machine, because that change causes no reconcile.
    await control.vm(foreign, { ip: `10.0.0.${(++changes % 250) + 1}` });
    await expect.poll(waits).toBeGreaterThan(2);
  };
  const reconcilesDuringExpiry = async () => {
    const before = await reconciles();
    for (let round = 0; round < 5; round++) await expire();
    return (await reconciles()) - before;
  };
  // Polled, because the last change may still cause reconciles, and every group is reconciled every five minutes.
  await expect.poll(reconcilesDuringExpiry).toBe(0);
  const agents = (await control.sessions()).map(({ agent }) => agent);
  expect(new Set(agents).size).toBe(agents.length);
  await env.change('idle', { replicas: 2 });
  await env.running('idle', 2);
});

test('a group scales out, in and to 0, and the scale subresource reports the machines that exist', async () => {
  await env.group('scaled', { replicas: 1 });
  const [first] = names(await env.running('scaled', 1));
  await env.kubectl('scale', 'vmgroup', 'scaled', '--replicas=4');
  const four = names(await env.running('scaled', 4));
  expect(four).toContain(first);
  const scale = JSON.parse(await env.kubectl('get', '--raw', `${GROUPS}/scaled/scale`));
  expect(scale).toMatchObject({
    spec: { replicas: 4 },
    status: { replicas: 4, selector: 'vmwright.dev/vmgroup=scaled' },
  });
  await env.kubectl('scale', 'vmgroup', 'scaled', '--replicas=2');
  const two = names(await env.running('scaled', 2));
  expect(four).toEqual(expect.arrayContaining(two));
  expect(two).toContain(first); // scale-in removed the newest machines
  expect(await env.machines('default-scaled')).toHaveLength(2);
  await env.kubectl('scale', 'vmgroup', 'scaled', '--replicas=0');
  await env.running('scaled', 0);
  expect(await env.machines('default-scaled')).toEqual([]);
});

test('a HorizontalPodAutoscaler reads and sets the number of machines', async () => {
  await env.group('autoscaled', { replicas: 1 });
  await env.running('autoscaled', 1);
  const { cluster } = env.controlPlane;
  const scalers = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers';
  await env.kubectl('autoscale', 'vmgroup', 'autoscaled', '--min=2', '--max=4', '--cpu=80%');
  const scaler = await cluster.waitFor(
    `${scalers}/autoscaled`,
    (found) => field(found, 'status', 'desiredReplicas') === 2,
  );
  expect(condition(scaler, 'AbleToScale')).toBe('True');
  await env.running('autoscaled', 2);
  await cluster.waitFor(`${scalers}/autoscaled`, (found) => field(found, 'status', 'currentReplicas') === 2);
  await cluster.api.delete(`${scalers}/autoscaled`);
});

test('deleting a group removes its machines and its folder', async () => {
  await env.group('deleted', { replicas: 2 });
  await env.running('deleted', 2);
  await env.kubectl('delete', 'vmgroup', 'deleted');
  expect(await env.machines('default-deleted')).toEqual([]);
  expect(await env.folders()).not.toContain('default-deleted');
});

describe('drift is corrected', () => {
  test('the operator powers on a machine that was powered off, and clones a deleted machine under its old name', async () => {
    await env.group('drift', { replicas: 2 });
    const running = await env.running('drift', 2);
    const [one, two] = await env.machines('default-drift');
    if (one === undefined || two === undefined) throw new Error('the group has fewer than two machines');
    const { machines, tasks } = env.vcenter;
    await tasks.follow(await machines.powerOff(ref(one.id)));
    await env.untilAfter(running, (group) => field(group, 'status', 'readyReplicas') === 1);
    await env.running('drift', 2);
    // The group is paused. Otherwise, the operator could power the machine on again before the test destroys it.
    await env.kubectl('annotate', 'vmgroup', 'drift', 'vmwright.dev/paused=true');
    await env.until('drift', (group) => condition(group, 'Paused') === 'True');
    await tasks.follow(await machines.powerOff(ref(two.id)));
    await tasks.follow(await machines.destroy(ref(two.id)));
    await env.kubectl('annotate', 'vmgroup', 'drift', 'vmwright.dev/paused-');
    await expect
      .poll(
        async () => (await env.machines('default-drift')).map(({ name, power }) => [name, power]).sort(),
        {
          timeout: 30_000,
        },
      )
      .toEqual([one, two].map(({ name }) => [name, 'poweredOn']).sort());
    await env.running('drift', 2);
  });
});

describe('updates', () => {
  test('a change of cpu and memory resizes the existing machines', async () => {
    await env.group('sized', { replicas: 2 });
    await env.running('sized', 2);
    const before = await env.machines('default-sized');
    await env.change('sized', { cpu: 4, memory: 2 });
    await env.running('sized', 2);
    const after = await env.machines('default-sized');
    expect(after.map(({ id }) => id).sort()).toEqual(before.map(({ id }) => id).sort());
    for (const machine of after)
      expect(machine).toMatchObject({ cpus: 4, memoryMb: 2048, power: 'poweredOn' });
  });

  test('a changed template replaces the machines within maxUnavailable', async () => {
    await env.group('rolled', { replicas: 3 });
    await env.running('rolled', 3);
    const before = await env.machines('default-rolled');
    const changed = await env.change('rolled', { template: 'other-template' });
    const seen: unknown[] = [];
    await env.untilAfter(changed, (group) => {
      seen.push(field(group, 'status', 'readyReplicas'));
      return isRunning(group, 3);
    });
    expect(Math.min(...seen.map(Number))).toBe(2);
    const after = await env.machines('default-rolled');
    expect(after).toHaveLength(3);
    const ids = new Set(before.map(({ id }) => id));
    expect(after.filter(({ id }) => ids.has(id))).toEqual([]);
  });
});

test('machines are not replaced if the template is missing, or if the spec names the same template by another path', async () => {
  await env.group('renamed', { replicas: 2 });
  await env.running('renamed', 2);
  const before = await env.machines('default-renamed');
  await env.change('renamed', { template: 'vm-oprator-template' });
  const missing = await env.until('renamed', (group) => reason(group) === 'NotFound');
  expect(lastMessage(missing)).toBe(
    "template 'vm-oprator-template' not found in datacenter 'DC0'; machines that are not templates are ignored",
  );
  await env.change('renamed', { template: `/DC0/vm/${TEMPLATE}` });
  await env.running('renamed', 2);
  expect(await env.machines('default-renamed')).toEqual(before);
  // With OnDelete, the operator replaces no machine and still reports updatedReplicas.
  await env.change('renamed', { update: { strategy: 'OnDelete' } });
  const unchanged = await env.until('renamed', isObserved);
  expect(unchanged).toMatchObject({ status: { phase: 'RUNNING', updatedReplicas: 2 } });
  await env.kubectl('delete', 'vmgroup', 'renamed');
});

describe('foreign machines and folders', () => {
  test('a foreign machine in the folder of a group is neither counted nor deleted, and the deletion of the group keeps the folder', async () => {
    await env.group('shared', { replicas: 1 });
    await env.running('shared', 1);
    const foreign = await makeForeign('default-shared');
    await env.change('shared', { replicas: 0 });
    await env.running('shared', 0);
    await env.kubectl('delete', 'vmgroup', 'shared');
    expect((await env.machines('default-shared')).map(({ id }) => id)).toEqual([foreign]);
    // A new group of the same name uses the folder again.
    await env.group('shared', { replicas: 1 });
    await env.running('shared', 1);
    expect(await env.machines('default-shared')).toHaveLength(2);
  });

  test('if two groups have the same folder name, the second reports FolderTaken', async () => {
    const { cluster } = env.controlPlane;
    for (const namespace of ['a-b', 'a']) await env.kubectl('create', 'namespace', namespace);
    await create('a-b', 'c');
    await env.kubectl('wait', '-n', 'a-b', 'vmgroup/c', '--for=condition=Ready', '--timeout=60s');
    await create('a', 'b-c');
    const path = '/apis/vm.codeconnect.vmworld.com/v1beta1/namespaces/a/vmgroups/b-c';
    const second = await cluster.waitFor(path, (group) => reason(group) === 'FolderTaken');
    expect(lastMessage(second)).toBe(
      "the folder 'a-b-c' belongs to the VmGroup 'c' in the namespace 'a-b'; delete this group and create it under another name or with another spec.placement.folder",
    );
    expect(await env.machines('a-b-c')).toHaveLength(1);
    await env.kubectl('delete', 'vmgroup', '-n', 'a-b', 'c');
    await env.kubectl('wait', '-n', 'a', 'vmgroup/b-c', '--for=condition=Ready', '--timeout=90s');
    expect(await env.machines('a-b-c')).toHaveLength(1);

    function create(namespace: string, name: string) {
      return cluster.api.create(GROUPS.replace('/default/', `/${namespace}/`), {
        apiVersion: 'vm.codeconnect.vmworld.com/v1beta1',
        kind: 'VmGroup',
        metadata: { name },
        spec: { replicas: 1, cpu: 1, memory: 1, template: TEMPLATE },
      });
    }
  });
});

describe('errors', () => {
  test('a missing template is reported, and machines are cloned once it exists', async () => {
    await env.group('early', { replicas: 1, template: 'not-yet' });
    const waiting = await env.until('early', (group) => field(group, 'status', 'phase') === 'ERROR');
    expect(lastMessage(waiting)).toBe(
      "template 'not-yet' not found in datacenter 'DC0'; machines that are not templates are ignored",
    );
    const { lookup, machines, tasks } = env.vcenter;
    const datacenter = await lookup.datacenter();
    const cloned = await tasks.follow(
      await machines.clone({
        name: 'not-yet',
        template: await lookup.template(datacenter, TEMPLATE),
        folder: datacenter.vmFolder,
        resourcePool: await lookup.resourcePool(datacenter),
      }),
    );
    if (!isRef(cloned, 'VirtualMachine')) throw new Error('the clone task returned no machine');
    await new VcenterUser(env.vcsim, env.vcenter).markAsTemplate(cloned.value);
    await env.running('early', 1);
  });

  test('a group with several replicas and a missing template backs off, and does not delay other groups', async () => {
    await env.group('waiting', { replicas: 5, template: 'never' });
    await env.until('waiting', (group) => field(group, 'status', 'phase') === 'ERROR');
    const before = await reconciles();
    await env.group('other', { replicas: 2 });
    await env.running('other', 2);
    await env.until('waiting', (group) => field(group, 'status', 'desiredReplicas') === 5);
    expect((await reconciles()) - before).toBeLessThan(60);
    await env.change('waiting', { replicas: 0 });
    await env.running('waiting', 0);
  });

  test('a missing privilege is reported, and machines are cloned once it is granted', async () => {
    await env.vcsim.control.fault({ method: 'CloneVM_Task', fault: 'NoPermission' });
    await env.group('denied', { replicas: 2 });
    const denied = await env.until('denied', (group) => reason(group) === 'NoPermission');
    expect(lastMessage(denied)).toMatch(
      `cloning machines from template '${TEMPLATE}': the user lacks a privilege`,
    );
    await env.vcsim.control.clearFaults();
    await env.running('denied', 2);
  });

  test('failed clone tasks are reported and retried', async () => {
    await env.vcsim.control.fault({ task: 'CloneVm', fault: 'NoDiskSpace', max: 2 });
    const created = await env.group('unlucky', { replicas: 2 });
    await env.untilAfter(created, (group) => field(group, 'status', 'phase') === 'ERROR');
    await env.running('unlucky', 2);
    expect(await env.machines('default-unlucky')).toHaveLength(2);
  });
});

test('a paused group gets no machine until it is resumed, and the deletion policy Orphan keeps its machines', async () => {
  await env.group('held', { replicas: 1 }, { 'vmwright.dev/paused': 'true' });
  await env.until('held', (group) => condition(group, 'Paused') === 'True');
  await env.group('unpaused', { replicas: 1 });
  await env.running('unpaused', 1);
  expect(await env.machines('default-held')).toEqual([]);
  await env.kubectl('annotate', 'vmgroup', 'held', 'vmwright.dev/paused-');
  await env.running('held', 1);
  await env.kubectl('annotate', 'vmgroup', 'held', 'vmwright.dev/deletion-policy=Orphan');
  await env.kubectl('delete', 'vmgroup', 'held');
  const [kept, ...more] = await env.machines('default-held');
  expect(more).toEqual([]);
  expect(kept).toMatchObject({ power: 'poweredOn' });
});

describe('changes by people in vCenter', () => {
  test('a machine that lost its ownership labels is adopted again', async () => {
    await env.group('stripped', { replicas: 1 });
    const running = await env.running('stripped', 1);
    const [before] = await env.machines('default-stripped');
    const { machines, tasks } = env.vcenter;
    const labels = { 'vmwright.uid': '', 'vmwright.slot': '' };
    await tasks.follow(await machines.reconfigure(ref(before?.id ?? ''), { extraConfig: labels }));
    await env.untilAfter(running, (group) => field(group, 'status', 'currentReplicas') === 0);
    await env.running('stripped', 1);
    expect(await env.machines('default-stripped')).toEqual([before]);
  });

  /** Creates a paused group and replaces its only machine with an identical machine outside the group's folder. */
  async function movedMachine(name: string) {
    await env.group(name, { replicas: 1 });
    const group = await env.running(name, 1);
    await env.kubectl('annotate', 'vmgroup', name, 'vmwright.dev/paused=true');
    // Otherwise, the operator could clone the machine again before it observes the annotation.
    await env.until(name, (found) => condition(found, 'Paused') === 'True');
    const [machine] = await env.machines(`default-${name}`);
    await destroy(machine?.id ?? '');
    const elsewhere = await env.clone('', {
      name: machine?.name ?? '',
      instanceUuid: String(field(replicas(group)[0], 'instanceUuid')),
      extraConfig: { 'vmwright.uid': String(group.metadata.uid), 'vmwright.slot': '0' },
    });
    return {
      machine,
      elsewhere,
      resume: () => env.kubectl('annotate', 'vmgroup', name, 'vmwright.dev/paused-'),
    };
  }

  test('a machine that was moved out of the folder of its group is reported, and not cloned again', async () => {
    const { machine, elsewhere, resume } = await movedMachine('moved');
    await resume();
    const reported = await env.until('moved', (found) => reason(found) === 'Moved');
    expect(lastMessage(reported)).toBe(
      `machine '${machine?.name}' is no longer in the group's folder; move it back, or delete it`,
    );
    expect(await env.machines('default-moved')).toEqual([]);
    await destroy(elsewhere);
    await env.running('moved', 1);
  });

  test('the deletion policy Orphan also applies to a machine that was moved out of the folder of its group', async () => {
    const { elsewhere, resume } = await movedMachine('orphaned');
    const uidOf = async () => {
      const { 'config.extraConfig': options = [] } = await env.vcenter.read(ref(elsewhere), [
        'config.extraConfig',
      ]);
      return options.find(({ key }) => key === 'vmwright.uid')?.value;
    };
    expect(await uidOf()).toEqual(expect.any(String));
    await env.kubectl('annotate', 'vmgroup', 'orphaned', 'vmwright.dev/deletion-policy=Orphan');
    await env.kubectl('delete', '--wait=false', 'vmgroup', 'orphaned');
    await resume();
    await env.gone('orphaned');
    expect(await uidOf()).toBe(undefined);
    await destroy(elsewhere);
  });
});

describe('with shutdownSeconds', () => {
  test('a scale-in shuts down the guest, and does not power off the machine', async () => {
    await env.group('soft', { replicas: 2, shutdownSeconds: 3600 });
    await env.running('soft', 2);
    await env.vcsim.control.resetCalls();
    await env.change('soft', { replicas: 1 });
    await env.running('soft', 1);
    const calls = await env.vcsim.control.calls();
    expect([calls.ShutdownGuest, calls.PowerOffVM_Task]).toEqual([1, undefined]);
  });

  test('a guest without VMware Tools is powered off', async () => {
    await env.vcsim.control.fault({ method: 'ShutdownGuest', fault: 'ToolsUnavailable' });
    await env.kubectl('delete', 'vmgroup', 'soft');
    expect(await env.machines('default-soft')).toEqual([]);
  });
});

test('a deletion that vCenter rejects is reported, and completes once vCenter accepts it', async () => {
  await env.group('stuck', { replicas: 2 });
  await env.running('stuck', 2);
  await env.vcsim.control.fault({ method: 'PowerOffVM_Task', fault: 'NoPermission' });
  await env.kubectl('delete', 'vmgroup', 'stuck', '--wait=false');
  const stuck = await env.until('stuck', (group) => /lacks a privilege/.test(String(lastMessage(group))));
  expect(stuck).toMatchObject({ status: { phase: 'PENDING', currentReplicas: 2 } });
  await env.vcsim.control.clearFaults();
  await env.gone('stuck');
  expect(await env.machines('default-stuck')).toEqual([]);
});

test('names of machines and folders are shortened to 80 characters', async () => {
  const name = 'long-'.repeat(30).slice(0, -1);
  await env.group(name, { replicas: 2 });
  await env.running(name, 2);
  const machines = (await env.machines()).filter((each) => each.name.startsWith('long-'));
  expect(machines).toHaveLength(2);
  for (const machine of machines) {
    expect(machine.name).toMatch(/^(long-)+\w*-[a-z]{8}-replica-[a-z]{8}$/);
    expect(machine.name).toHaveLength(80);
    expect(machine.folder).toHaveLength(80);
  }
  await env.kubectl('delete', 'vmgroup', name);
});

test('both API versions are served with the same content', async () => {
  await env.group('both', {
    replicas: 0,
    placement: { cluster: 'DC0_C0' },
    update: { maxUnavailable: '50%' },
  });
  const old = await env.kubectl('get', 'vmgroups.v1alpha1.vm.codeconnect.vmworld.com', 'both', '-o', 'json');
  expect(JSON.parse(old)).toMatchObject({
    apiVersion: 'vm.codeconnect.vmworld.com/v1alpha1',
    spec: { replicas: 0, cpu: 2, memory: 1, template: TEMPLATE, cluster: 'DC0_C0', maxUnavailable: '50%' },
  });
  await env.controlPlane.cluster.apply(old.replace('"DC0_C0"', '"/DC0/host/DC0_C0"'));
  expect(JSON.parse(await env.kubectl('get', 'vg', 'both', '-o', 'json'))).toMatchObject({
    apiVersion: 'vm.codeconnect.vmworld.com/v1beta1',
    spec: { placement: { cluster: '/DC0/host/DC0_C0' }, update: { maxUnavailable: '50%' } },
  });
});

describe('the API server rejects an invalid spec with a message', () => {
  test.each([
    ['replicas: -1', /spec\.replicas.*should be greater than or equal to 0/],
    ['cpu: 0', /spec\.cpu.*should be greater than or equal to 1/],
    ['cpu: 769', /spec\.cpu.*should be less than or equal to 768/],
    ['memory: 24577', /spec\.memory.*should be less than or equal to 24576/],
    ['memory: 0', /spec\.memory.*should be greater than or equal to 1/],
    ['template: ""', /spec\.template.*should be at least 1 chars long/],
    ['maxUnavailable: 0%', /maxUnavailable must be a number of at least 1, or a percentage from 1% to 100%/],
  ])('%s is rejected', async (line, message) => {
    const [key = ''] = line.split(':');
    const spec = { cpu: '2', memory: '1', replicas: '3', template: 'x' };
    const lines = Object.entries(spec).flatMap(([name, value]) =>
      name === key ? [] : `  ${name}: ${value}`,
    );
    const rejection = await env.refused(
      `apiVersion: vm.codeconnect.vmworld.com/v1alpha1\nkind: VmGroup\nmetadata: {name: wrong, namespace: default}\nspec:\n${lines.join('\n')}\n  ${line}\n`,
    );
    expect(rejection).toMatch(message);
  });
});

test('vcenter, datacenter and folder are immutable in both API versions, but cluster is not', async () => {
  await env.group('fixed', { replicas: 0, placement: { datacenter: 'DC0' } });
  const { cluster } = env.controlPlane;
  const change = (path: string, spec: object) =>
    cluster.api.merge(path, { spec }).then(
      () => 'accepted',
      (error: unknown) => String(error),
    );
  const path = `${GROUPS}/fixed`;
  const old = path.replace('v1beta1', 'v1alpha1');
  const immutable = (field: string) =>
    `${field} is immutable, because machines do not move; delete the group and create another`;
  expect(await change(path, { placement: { datacenter: 'DC1' } })).toContain(
    immutable('placement.datacenter'),
  );
  expect(await change(path, { placement: { folder: 'elsewhere' } })).toContain(immutable('placement.folder'));
  expect(await change(path, { placement: null })).toContain(immutable('placement.datacenter'));
  expect(await change(old, { vcenter: 'west' })).toContain(immutable('vcenter'));
  expect(await change(old, { cluster: 'DC0_C0' })).toBe('accepted');
  await env.kubectl('delete', 'vmgroup', 'fixed');
});

function ref(value: string): Ref<'VirtualMachine'> {
  return { type: 'VirtualMachine', value };
}

/** Returns how often groups were reconciled. */
async function reconciles(): Promise<number> {
  const counts = /^controller_runtime_reconcile_total\{.*"vmgroup".*\} (\d+)$/gm;
  return [...(await env.metrics(env.operator)).matchAll(counts)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
}

async function destroy(id: string): Promise<void> {
  const { machines, tasks } = env.vcenter;
  await tasks.follow(await machines.powerOff(ref(id))).catch(() => undefined); // the machine may be off already
  await tasks.follow(await machines.destroy(ref(id)));
}

function makeForeign(folderName: string): Promise<string> {
  return env.clone(`vm-operator/${folderName}`, { name: 'foreign' });
}

// Must be the last test of the file, because it checks the requests of all other tests.
test('the operator uses exactly the permissions that it ships', async () => {
  await expectExactPermissions(env.controlPlane, permissionsFor(VmGroup));
});
