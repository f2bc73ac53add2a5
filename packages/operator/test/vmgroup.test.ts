import { condition, field, type KubeObject } from '@vmwright/testbed';
import { isRef, type Ref } from '@vmwright/vsphere';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Person } from './person.ts';
import { GROUPS, install, isRunning, ready, TEMPLATE, type WithVcenter } from './with-vcenter.ts';

let it: WithVcenter;

beforeAll(async () => {
  it = await install({ vcsim: { templates: [TEMPLATE, 'other-template'] } });
});
afterAll(() => it[Symbol.asyncDispose]());
beforeEach(async () => {
  await Promise.all([it.vcsim.control.clearFaults(), it.vcsim.control.clearDelays()]);
});

const lastMessage = (group: KubeObject) => field(group, 'status', 'lastMessage');
const replicas = (group: KubeObject): readonly unknown[] => [field(group, 'status', 'replicas') ?? []].flat();
const reason = (group: KubeObject) => field(ready(group), 'reason');
const isObserved = (group: KubeObject) =>
  field(ready(group), 'observedGeneration') === field(group, 'metadata', 'generation');
const names = (group: KubeObject) => replicas(group).map((replica) => field(replica, 'name'));

test('a group becomes machines in a folder of its own, with cpu, memory and fixed identities', async () => {
  await it.group('web', { replicas: 3 });
  const group = await it.running('web', 3);
  const machines = await it.machines('default-web');
  expect(machines).toHaveLength(3);
  for (const { name, power, cpus, memoryMb, instanceUuid } of machines) {
    expect(name).toMatch(/^web-replica-[a-z]{8}$/);
    expect({ power, cpus, memoryMb }).toEqual({ power: 'poweredOn', cpus: 2, memoryMb: 1024 });
    expect(replicas(group)).toContainEqual(expect.objectContaining({ name, instanceUuid, power }));
  }
  expect(field(group, 'status')).toMatchObject({
    ...{ phase: 'RUNNING', currentReplicas: 3, desiredReplicas: 3, readyReplicas: 3, updatedReplicas: 3 },
    ...{ lastMessage: 'successfully reconciled VmGroup', vcenter: 'default', datacenter: 'DC0' },
    folder: 'vm-operator',
  });
  expect(ready(group)).toMatchObject({ status: 'True', reason: 'Running' });
  expect(replicas(group)[0]).toMatchObject({ host: expect.stringMatching(/^DC0_C0_H\d$/) });
});

test('it is scaled out, in, and to nothing; scale tells the true count', async () => {
  await it.group('scaled', { replicas: 1 });
  const [first] = names(await it.running('scaled', 1));
  await it.kubectl('scale', 'vmgroup', 'scaled', '--replicas=4');
  const four = names(await it.running('scaled', 4));
  expect(four).toContain(first);
  const scale = JSON.parse(await it.kubectl('get', '--raw', `${GROUPS}/scaled/scale`));
  expect(scale).toMatchObject({
    spec: { replicas: 4 },
    status: { replicas: 4, selector: 'vmwright.dev/vmgroup=scaled' },
  });
  await it.kubectl('scale', 'vmgroup', 'scaled', '--replicas=2');
  const two = names(await it.running('scaled', 2));
  expect(four).toEqual(expect.arrayContaining(two));
  expect(two).toContain(first); // the newest went
  expect(await it.machines('default-scaled')).toHaveLength(2);
  await it.kubectl('scale', 'vmgroup', 'scaled', '--replicas=0');
  await it.running('scaled', 0);
  expect(await it.machines('default-scaled')).toEqual([]);
});

test('an autoscaler finds out how many there are, and sets how many there shall be', async () => {
  await it.group('autoscaled', { replicas: 1 });
  await it.running('autoscaled', 1);
  const { cluster } = it.controlPlane;
  const scalers = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers';
  await it.kubectl('autoscale', 'vmgroup', 'autoscaled', '--min=2', '--max=4', '--cpu=80%');
  const scaler = await cluster.waitFor(
    `${scalers}/autoscaled`,
    (found) => field(found, 'status', 'desiredReplicas') === 2,
  );
  expect(condition(scaler, 'AbleToScale')).toBe('True');
  await it.running('autoscaled', 2);
  await cluster.waitFor(`${scalers}/autoscaled`, (found) => field(found, 'status', 'currentReplicas') === 2);
  await cluster.api.delete(`${scalers}/autoscaled`);
});

test('deleted: machines, then the folder, then the object', async () => {
  await it.group('leaving', { replicas: 2 });
  await it.running('leaving', 2);
  await it.kubectl('delete', 'vmgroup', 'leaving');
  expect(await it.machines('default-leaving')).toEqual([]);
  expect(await it.folders()).not.toContain('default-leaving');
});

describe('drift', () => {
  test('what is switched off is switched on, what is deleted is made again under its name', async () => {
    await it.group('drift', { replicas: 2 });
    await it.running('drift', 2);
    const [one, two] = await it.machines('default-drift');
    if (one === undefined || two === undefined) throw new Error('the machines are missing');
    const { machines, tasks } = it.vcenter;
    await tasks.follow(await machines.powerOff(ref(one.id)));
    await it.until('drift', (group) => field(group, 'status', 'readyReplicas') === 1);
    await it.running('drift', 2);
    await tasks.follow(await machines.powerOff(ref(two.id)));
    await tasks.follow(await machines.destroy(ref(two.id)));
    await expect
      .poll(async () => (await it.machines('default-drift')).map(({ name, power }) => [name, power]).sort(), {
        timeout: 30_000,
      })
      .toEqual([one, two].map(({ name }) => [name, 'poweredOn']).sort());
    await it.running('drift', 2);
  });
});

describe('updates', () => {
  test('cpu and memory reach the machines that there are, which stay the same', async () => {
    await it.group('sized', { replicas: 2 });
    await it.running('sized', 2);
    const before = await it.machines('default-sized');
    await it.change('sized', { cpu: 4, memory: 2 });
    await it.running('sized', 2);
    const after = await it.machines('default-sized');
    expect(after.map(({ id }) => id).sort()).toEqual(before.map(({ id }) => id).sort());
    for (const machine of after)
      expect(machine).toMatchObject({ cpus: 4, memoryMb: 2048, power: 'poweredOn' });
  });

  test('another template replaces them, and never more are away than may be', async () => {
    await it.group('rolled', { replicas: 3 });
    await it.running('rolled', 3);
    const before = await it.machines('default-rolled');
    await it.change('rolled', { template: 'other-template' });
    const seen: unknown[] = [];
    await it.until('rolled', (group) => {
      seen.push(field(group, 'status', 'readyReplicas'));
      return isRunning(group, 3);
    });
    expect(Math.min(...seen.map(Number))).toBe(2);
    const after = await it.machines('default-rolled');
    expect(after).toHaveLength(3);
    const ids = new Set(before.map(({ id }) => id));
    expect(after.filter(({ id }) => ids.has(id))).toEqual([]);
  });
});

test('a template that is not there, and another name of the same one, cost no machine', async () => {
  await it.group('renamed', { replicas: 2 });
  await it.running('renamed', 2);
  const before = await it.machines('default-renamed');
  await it.change('renamed', { template: 'vm-oprator-template' });
  const missing = await it.until('renamed', (group) => reason(group) === 'NotFound');
  expect(lastMessage(missing)).toBe(
    "template 'vm-oprator-template' not found in datacenter 'DC0'; machines that are not templates are ignored",
  );
  await it.change('renamed', { template: `/DC0/vm/${TEMPLATE}` });
  await it.running('renamed', 2);
  expect(await it.machines('default-renamed')).toEqual(before);
  // Where none is replaced, it is still told which are as wanted.
  await it.change('renamed', { update: { strategy: 'OnDelete' } });
  const leftAlone = await it.until('renamed', isObserved);
  expect(leftAlone).toMatchObject({ status: { phase: 'RUNNING', updatedReplicas: 2 } });
  await it.kubectl('delete', 'vmgroup', 'renamed');
});

describe('what is not ours', () => {
  test('a machine in the folder is neither counted nor deleted, and keeps the folder', async () => {
    await it.group('shared', { replicas: 1 });
    await it.running('shared', 1);
    const foreign = await makeForeign('default-shared');
    await it.change('shared', { replicas: 0 });
    await it.running('shared', 0);
    await it.kubectl('delete', 'vmgroup', 'shared');
    expect((await it.machines('default-shared')).map(({ id }) => id)).toEqual([foreign]);
    // The next of that name has the folder again.
    await it.group('shared', { replicas: 1 });
    await it.running('shared', 1);
    expect(await it.machines('default-shared')).toHaveLength(2);
  });

  test('two groups whose names run together do not share a folder: the second is told', async () => {
    const { cluster } = it.controlPlane;
    for (const namespace of ['a-b', 'a']) await it.kubectl('create', 'namespace', namespace);
    await create('a-b', 'c');
    await it.kubectl('wait', '-n', 'a-b', 'vmgroup/c', '--for=condition=Ready', '--timeout=60s');
    await create('a', 'b-c');
    const path = '/apis/vm.codeconnect.vmworld.com/v1beta1/namespaces/a/vmgroups/b-c';
    const second = await cluster.waitFor(path, (group) => reason(group) === 'FolderTaken');
    expect(lastMessage(second)).toBe(
      "the folder 'a-b-c' belongs to the VmGroup 'c' in the namespace 'a-b'; give this group another name, or another folder in spec.placement.folder",
    );
    expect(await it.machines('a-b-c')).toHaveLength(1);
    await it.kubectl('delete', 'vmgroup', '-n', 'a-b', 'c');
    await it.kubectl('wait', '-n', 'a', 'vmgroup/b-c', '--for=condition=Ready', '--timeout=90s');
    expect(await it.machines('a-b-c')).toHaveLength(1);

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

describe('what stands in the way', () => {
  test('a template that is missing is told, and waited for', async () => {
    await it.group('early', { replicas: 1, template: 'not-yet' });
    const waiting = await it.until('early', (group) => field(group, 'status', 'phase') === 'ERROR');
    expect(lastMessage(waiting)).toBe(
      "template 'not-yet' not found in datacenter 'DC0'; machines that are not templates are ignored",
    );
    const { lookup, machines, tasks } = it.vcenter;
    const datacenter = await lookup.datacenter();
    const made = await tasks.follow(
      await machines.clone({
        ...{ name: 'not-yet', template: await lookup.template(datacenter, TEMPLATE) },
        ...{ folder: datacenter.vmFolder, resourcePool: await lookup.resourcePool(datacenter) },
      }),
    );
    if (!isRef(made, 'VirtualMachine')) throw new Error('no machine was made');
    await new Person(it.vcsim).markAsTemplate(made.value);
    await it.running('early', 1);
  });

  test('more machines than there are turns for wait for a template without a rush, and the others go on', async () => {
    await it.group('waiting', { replicas: 5, template: 'never' });
    await it.until('waiting', (group) => field(group, 'status', 'phase') === 'ERROR');
    const before = await reconciles();
    await it.group('going-on', { replicas: 2 });
    await it.running('going-on', 2);
    await it.until('waiting', (group) => field(group, 'status', 'desiredReplicas') === 5);
    expect((await reconciles()) - before).toBeLessThan(60);
    await it.change('waiting', { replicas: 0 });
    await it.running('waiting', 0);
  });

  test('a permission that is missing is told, once, and healed when it is given', async () => {
    await it.vcsim.control.fault({ method: 'CloneVM_Task', fault: 'NoPermission' });
    await it.group('denied', { replicas: 2 });
    const denied = await it.until('denied', (group) => reason(group) === 'NoPermission');
    expect(lastMessage(denied)).toMatch(
      `cloning machines from template '${TEMPLATE}': the user lacks a privilege`,
    );
    await it.vcsim.control.clearFaults();
    await it.running('denied', 2);
  });

  test('tasks that fail are told and tried again', async () => {
    await it.vcsim.control.fault({ task: 'CloneVm', fault: 'NoDiskSpace', max: 2 });
    await it.group('unlucky', { replicas: 2 });
    await it.until('unlucky', (group) => field(group, 'status', 'phase') === 'ERROR');
    await it.running('unlucky', 2);
    expect(await it.machines('default-unlucky')).toHaveLength(2);
  });
});

test('paused: nothing is done until it goes on; Orphan: the machines stay, and are nobody’s', async () => {
  await it.group('held', { replicas: 1 }, { 'vmwright.dev/paused': 'true' });
  await it.group('beside', { replicas: 1 });
  await it.running('beside', 1);
  expect(await it.machines('default-held')).toEqual([]);
  await it.kubectl('annotate', 'vmgroup', 'held', 'vmwright.dev/paused-');
  await it.running('held', 1);
  await it.kubectl('annotate', 'vmgroup', 'held', 'vmwright.dev/deletion-policy=Orphan');
  await it.kubectl('delete', 'vmgroup', 'held');
  const [kept, ...more] = await it.machines('default-held');
  expect(more).toEqual([]);
  expect(kept).toMatchObject({ power: 'poweredOn' });
});

describe('what people do to machines', () => {
  test('one whose marks are gone is taken back', async () => {
    await it.group('stripped', { replicas: 1 });
    await it.running('stripped', 1);
    const [before] = await it.machines('default-stripped');
    const { machines, tasks } = it.vcenter;
    const marks = { 'vmwright.uid': '', 'vmwright.slot': '' };
    await tasks.follow(await machines.reconfigure(ref(before?.id ?? ''), { extraConfig: marks }));
    await it.until('stripped', (group) => field(group, 'status', 'currentReplicas') === 0);
    await it.running('stripped', 1);
    expect(await it.machines('default-stripped')).toEqual([before]);
  });

  /** A paused group whose machine was moved out of its folder, with all that it carries. */
  async function moving(name: string) {
    await it.group(name, { replicas: 1 });
    const group = await it.running(name, 1);
    await it.kubectl('annotate', 'vmgroup', name, 'vmwright.dev/paused=true');
    const [machine] = await it.machines(`default-${name}`);
    await destroy(machine?.id ?? '');
    const elsewhere = await it.clone('', {
      name: machine?.name ?? '',
      instanceUuid: String(field(replicas(group)[0], 'instanceUuid')),
      extraConfig: { 'vmwright.uid': String(group.metadata.uid), 'vmwright.slot': '0' },
    });
    return {
      machine,
      elsewhere,
      goOn: () => it.kubectl('annotate', 'vmgroup', name, 'vmwright.dev/paused-'),
    };
  }

  test('one that was moved away is told, and not made twice', async () => {
    const { machine, elsewhere, goOn } = await moving('moved');
    await goOn();
    const told = await it.until('moved', (found) => reason(found) === 'Moved');
    expect(lastMessage(told)).toBe(
      `machine '${machine?.name}' is no longer in the group's folder; move it back, or delete it`,
    );
    expect(await it.machines('default-moved')).toEqual([]);
    await destroy(elsewhere);
    await it.running('moved', 1);
  });

  test('one that was moved away is let go of with the others', async () => {
    const { elsewhere, goOn } = await moving('freed');
    const uidOf = async () => {
      const { 'config.extraConfig': options = [] } = await it.vcenter.read(ref(elsewhere), [
        'config.extraConfig',
      ]);
      return options.find(({ key }) => key === 'vmwright.uid')?.value;
    };
    expect(await uidOf()).toEqual(expect.any(String));
    await it.kubectl('annotate', 'vmgroup', 'freed', 'vmwright.dev/deletion-policy=Orphan');
    await it.kubectl('delete', '--wait=false', 'vmgroup', 'freed');
    await goOn();
    await it.gone('freed');
    expect(await uidOf()).toBe(undefined);
    await destroy(elsewhere);
  });
});

describe('guests that are given time', () => {
  test('shut themselves down', async () => {
    await it.group('soft', { replicas: 2, shutdownSeconds: 3600 });
    await it.running('soft', 2);
    await it.vcsim.control.resetCalls();
    await it.change('soft', { replicas: 1 });
    await it.running('soft', 1);
    const calls = await it.vcsim.control.calls();
    expect([calls.ShutdownGuest, calls.PowerOffVM_Task]).toEqual([1, undefined]);
  });

  test('are switched off where nobody is there to ask', async () => {
    await it.vcsim.control.fault({ method: 'ShutdownGuest', fault: 'ToolsUnavailable' });
    await it.kubectl('delete', 'vmgroup', 'soft');
    expect(await it.machines('default-soft')).toEqual([]);
  });
});

test('a deletion that fails is told, and finishes when it can', async () => {
  await it.group('stuck', { replicas: 2 });
  await it.running('stuck', 2);
  await it.vcsim.control.fault({ method: 'PowerOffVM_Task', fault: 'NoPermission' });
  await it.kubectl('delete', 'vmgroup', 'stuck', '--wait=false');
  const stuck = await it.until('stuck', (group) => /lacks a privilege/.test(String(lastMessage(group))));
  expect(stuck).toMatchObject({ status: { phase: 'PENDING', currentReplicas: 2 } });
  await it.vcsim.control.clearFaults();
  await it.gone('stuck');
  expect(await it.machines('default-stuck')).toEqual([]);
});

test('names that vCenter would not take are shortened', async () => {
  const name = 'long-'.repeat(30).slice(0, -1);
  await it.group(name, { replicas: 2 });
  await it.running(name, 2);
  const machines = (await it.machines()).filter((each) => each.name.startsWith('long-'));
  expect(machines).toHaveLength(2);
  for (const machine of machines) {
    expect(machine.name).toMatch(/^(long-)+\w*-[a-z]{8}-replica-[a-z]{8}$/);
    expect(machine.name).toHaveLength(80);
    expect(machine.folder).toHaveLength(80);
  }
  await it.kubectl('delete', 'vmgroup', name);
});

test('both versions are served, and say the same', async () => {
  await it.group('both', {
    replicas: 0,
    placement: { cluster: 'DC0_C0' },
    update: { maxUnavailable: '50%' },
  });
  const old = await it.kubectl('get', 'vmgroups.v1alpha1.vm.codeconnect.vmworld.com', 'both', '-o', 'json');
  expect(JSON.parse(old)).toMatchObject({
    apiVersion: 'vm.codeconnect.vmworld.com/v1alpha1',
    spec: { replicas: 0, cpu: 2, memory: 1, template: TEMPLATE, cluster: 'DC0_C0', maxUnavailable: '50%' },
  });
  await it.controlPlane.cluster.apply(old.replace('"DC0_C0"', '"/DC0/host/DC0_C0"'));
  expect(JSON.parse(await it.kubectl('get', 'vg', 'both', '-o', 'json'))).toMatchObject({
    apiVersion: 'vm.codeconnect.vmworld.com/v1beta1',
    spec: { placement: { cluster: '/DC0/host/DC0_C0' }, update: { maxUnavailable: '50%' } },
  });
});

test('sessions that end while nothing happens wake nobody, and the next change works', async () => {
  await it.group('idle', { replicas: 1 });
  await it.running('idle', 1);
  const before = await reconciles();
  expect(before).toBeGreaterThan(0);
  const { control } = it.vcsim;
  for (let round = 0; round < 5; round++) {
    await control.resetCalls();
    await control.expireSessions();
    const waits = async () => (await control.calls()).WaitForUpdatesEx ?? 0;
    await expect.poll(waits, { timeout: 30_000 }).toBeGreaterThan(1);
  }
  const agents = (await control.sessions()).map(({ agent }) => agent);
  expect(new Set(agents).size).toBe(agents.length);
  expect((await reconciles()) - before).toBeLessThan(5);
  await it.change('idle', { replicas: 2 });
  await it.running('idle', 2);
});

describe('kubectl refuses with a sentence', () => {
  test.each([
    ['replicas: -1', /spec\.replicas.*should be greater than or equal to 0/],
    ['cpu: 0', /spec\.cpu.*should be greater than or equal to 1/],
    ['cpu: 769', /spec\.cpu.*should be less than or equal to 768/],
    ['memory: 24577', /spec\.memory.*should be less than or equal to 24576/],
    ['memory: 0', /spec\.memory.*should be greater than or equal to 1/],
    ['template: ""', /spec\.template.*should be at least 1 chars long/],
    ['maxUnavailable: 0%', /maxUnavailable must be a number of at least 1, or a percentage from 1% to 100%/],
  ])('%s', async (line, sentence) => {
    const [key = ''] = line.split(':');
    const spec = { cpu: '2', memory: '1', replicas: '3', template: 'x' };
    const lines = Object.entries(spec).flatMap(([name, value]) =>
      name === key ? [] : `  ${name}: ${value}`,
    );
    const refusal = await it.refused(
      `apiVersion: vm.codeconnect.vmworld.com/v1alpha1\nkind: VmGroup\nmetadata: {name: wrong, namespace: default}\nspec:\n${lines.join('\n')}\n  ${line}\n`,
    );
    expect(refusal).toMatch(sentence);
  });
});

test('where machines are cannot be changed, in either version; where new ones go can', async () => {
  await it.group('fixed', { replicas: 0, placement: { datacenter: 'DC0' } });
  const { cluster } = it.controlPlane;
  const change = (path: string, spec: object) =>
    cluster.api.merge(path, { spec }).then(
      () => 'it was accepted',
      (error: unknown) => String(error),
    );
  const path = `${GROUPS}/fixed`;
  const old = path.replace('v1beta1', 'v1alpha1');
  const sentence = (field: string) =>
    `${field} is immutable, because machines do not move; delete the group and create another`;
  expect(await change(path, { placement: { datacenter: 'DC1' } })).toContain(
    sentence('placement.datacenter'),
  );
  expect(await change(path, { placement: { folder: 'elsewhere' } })).toContain(sentence('placement.folder'));
  expect(await change(path, { placement: null })).toContain(sentence('placement.datacenter'));
  expect(await change(old, { vcenter: 'west' })).toContain(sentence('vcenter'));
  expect(await change(old, { cluster: 'DC0_C0' })).toBe('it was accepted');
  await it.kubectl('delete', 'vmgroup', 'fixed');
});

function ref(value: string): Ref<'VirtualMachine'> {
  return { type: 'VirtualMachine', value };
}

/** How often groups were looked at. */
async function reconciles(): Promise<number> {
  const counts = /^controller_runtime_reconcile_total\{.*"vmgroup".*\} (\d+)$/gm;
  return [...(await it.metrics(it.operator)).matchAll(counts)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
}

async function destroy(id: string): Promise<void> {
  const { machines, tasks } = it.vcenter;
  await tasks.follow(await machines.powerOff(ref(id))).catch(() => undefined); // it may be off
  await tasks.follow(await machines.destroy(ref(id)));
}

function makeForeign(folderName: string): Promise<string> {
  return it.clone(`vm-operator/${folderName}`, { name: 'foreign' });
}
