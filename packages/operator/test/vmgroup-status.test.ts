import { condition, field, type KubeObject } from '@vmwright/testbed';
import type { Ref } from '@vmwright/vsphere';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { kstatusLife, kstatusOf, recordLife } from './kstatus.ts';
import { auditLines, logLines } from './log-lines.ts';
import { GROUPS, install, ready, TEMPLATE, type WithVcenter } from './with-vcenter.ts';

/* Tests the conditions, events and log lines of a group. */

let env: WithVcenter;

beforeAll(async () => {
  env = await install({ vcsim: { templates: [TEMPLATE] } });
});
afterAll(() => env[Symbol.asyncDispose]());
beforeEach(async () => {
  await Promise.all([env.vcsim.control.clearFaults(), env.vcsim.control.clearDelays()]);
});

const lastMessage = (group: KubeObject) => field(group, 'status', 'lastMessage');
const reason = (group: KubeObject) => field(ready(group), 'reason');
const ref = (value: string): Ref<'VirtualMachine'> => ({ type: 'VirtualMachine', value });

async function destroy(id: string): Promise<void> {
  const { machines, tasks } = env.vcenter;
  await tasks.follow(await machines.powerOff(ref(id)));
  await tasks.follow(await machines.destroy(ref(id)));
}

/** Returns the Warning events about a group as `reason: note`. */
async function warnings(name: string): Promise<readonly string[]> {
  const list: unknown = JSON.parse(
    await env.kubectl(
      'get',
      'events.events.k8s.io',
      '-o',
      'json',
      '--field-selector',
      `regarding.name=${name}`,
    ),
  );
  return [field(list, 'items') ?? []]
    .flat()
    .filter((event) => field(event, 'type') === 'Warning')
    .map((event) => `${field(event, 'reason')}: ${field(event, 'note')}`);
}

/** Returns how often groups were reconciled. */
async function reconciles(): Promise<number> {
  const counts = /^controller_runtime_reconcile_total\{.*"vmgroup".*\} (\d+)$/gm;
  const metrics = await env.metrics(env.operator);
  return [...metrics.matchAll(counts)].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Returns a matcher for the Warning event with the reason and message of Ready. */
function warningOf(group: KubeObject): unknown {
  const text = `${reason(group)}: ${lastMessage(group)}; next retry at `;
  return expect.stringMatching(new RegExp(`^${RegExp.escape(text)}[0-9TZ:-]+$`));
}

/** Returns the lines of the operator's log about a group. */
async function logged(name: string): Promise<readonly unknown[]> {
  return (await logLines(env.operator)).filter((line) =>
    Object.values(Object(line)).includes(`default/${name}`),
  );
}

const messages = async (name: string) => (await logged(name)).map((line) => field(line, 'msg'));

test('kstatus reports a group as current only when all machines run, and as terminating until it is gone', async () => {
  using life = await recordLife(env.controlPlane.cluster, `${GROUPS}/flux`);
  await env.vcsim.control.delay({ tasks: { CloneVm: 300 } });
  await env.group('flux', { replicas: 2 });
  await env.running('flux', 2);
  await env.change('flux', { replicas: 3 });
  await env.running('flux', 3);
  await env.change('flux', { replicas: 4, template: 'missing' });
  await env.until('flux', (group) => kstatusOf(group) === 'Failed');
  await env.change('flux', { replicas: 3, template: TEMPLATE });
  await env.running('flux', 3);
  await env.kubectl('delete', 'vmgroup', 'flux');
  await life.gone;
  expect(kstatusLife(life.versions)).toEqual([
    ...['InProgress', 'Current', 'InProgress', 'Current', 'InProgress'],
    ...['Failed', 'InProgress', 'Current', 'Terminating'],
  ]);
  for (const version of life.versions)
    if (kstatusOf(version) === 'Current')
      expect(field(version, 'status', 'readyReplicas')).toBe(field(version, 'spec', 'replicas'));
});

test('a status that another client empties or edits is restored immediately', async () => {
  await env.group('edited', { replicas: 1 });
  const before = await env.running('edited', 1);
  const { api } = env.controlPlane.cluster;
  await api.merge(`${GROUPS}/edited/status`, { status: null });
  const { status } = await env.running('edited', 1);
  expect(status).toMatchObject({ vcenter: 'default', replicas: [{ slot: 0 }], observedGeneration: 1 });
  await api.merge(`${GROUPS}/edited/status`, { status: { readyReplicas: 7, lastMessage: 'wrong' } });
  const restored = await env.until('edited', (group) => lastMessage(group) !== 'wrong');
  expect(field(restored, 'status', 'readyReplicas')).toBe(1);
  expect(restored.metadata.uid).toBe(before.metadata.uid);
  // The machines are removed although the status is emptied during the deletion.
  await api.merge(`${GROUPS}/edited`, {
    metadata: { finalizers: ['vmwright.dev/vmgroup', 'example.com/block'] },
  });
  await env.kubectl('delete', 'vmgroup', 'edited', '--wait=false');
  await api.merge(`${GROUPS}/edited/status`, { status: null });
  await env.until(
    'edited',
    (group) => ![field(group, 'metadata', 'finalizers')].flat().includes('vmwright.dev/vmgroup'),
  );
  expect(await env.machines('default-edited')).toEqual([]);
  await api.merge(`${GROUPS}/edited`, { metadata: { finalizers: null } });
});

describe('paused groups', () => {
  test('for a paused group, the operator reports observed changes and changes no machine itself', async () => {
    await env.group('paused', { replicas: 2 });
    await env.running('paused', 2);
    await env.kubectl('annotate', 'vmgroup', 'paused', 'vmwright.dev/paused=true');
    const paused = await env.until('paused', (group) => condition(group, 'Paused') === 'True');
    expect(condition(paused, 'Ready')).toBe('True');
    const [machine] = await env.machines('default-paused');
    await destroy(machine?.id ?? '');
    const lost = await env.until('paused', (group) => field(group, 'status', 'currentReplicas') === 1);
    expect(lost).toMatchObject({
      status: { phase: 'PENDING', readyReplicas: 1, lastMessage: 'paused; 1 of 2 machines exist' },
    });
    expect(condition(lost, 'Ready')).toBe('False');
    await env.change('paused', { replicas: 3 });
    await env.until('paused', (group) => lastMessage(group) === 'paused; 1 of 3 machines exist');
    expect(await env.machines('default-paused')).toHaveLength(1);
    await env.kubectl('annotate', 'vmgroup', 'paused', 'vmwright.dev/paused-');
    const resumed = await env.running('paused', 3);
    expect(condition(resumed, 'Paused')).toBe(undefined);
  });

  test('a paused group reports that its deletion is paused', async () => {
    await env.kubectl('annotate', 'vmgroup', 'paused', 'vmwright.dev/paused=true');
    await env.kubectl('delete', 'vmgroup', 'paused', '--wait=false');
    const held = await env.until('paused', (group) => reason(group) === 'Deleting');
    expect(lastMessage(held)).toBe('the deletion is paused; 3 machines exist');
    expect(condition(held, 'Paused')).toBe('True');
    expect(await env.machines('default-paused')).toHaveLength(3);
    await env.kubectl('annotate', 'vmgroup', 'paused', 'vmwright.dev/paused-');
    await env.gone('paused');
  });
});

test('each operation on a machine writes exactly one audit line with its vCenter task', async () => {
  const { metadata } = await env.group('audited', { replicas: 1 });
  await env.running('audited', 1);
  const [machine] = await env.machines('default-audited');
  await env.kubectl('delete', 'vmgroup', 'audited');
  const instanceUuid = expect.stringMatching(/^[0-9a-f-]{36}$/);
  const line = {
    level: 'info',
    kind: 'VmGroup',
    object: 'default/audited',
    uid: metadata.uid,
    resource: 'VirtualMachine',
    machine: instanceUuid,
    machineName: machine?.name,
    generation: expect.any(Number),
    task: expect.stringMatching(/^task-/),
  };
  const reason = 'the VmGroup is being deleted';
  const lines = await auditLines(env.operator, 'default/audited');
  expect(lines).toMatchObject([
    { ...line, audit: 'create', reason: 'a replica has no machine' },
    { ...line, audit: 'powerOff', reason },
    { ...line, audit: 'delete', reason },
  ]);
  expect(new Set(lines.map((each) => field(each, 'machine'))).size).toBe(1);
});

describe('failures', () => {
  test('every failed clone is logged with its task, but all failures cause only one event', async () => {
    await env.vcsim.control.fault({ task: 'CloneVm', fault: 'NoDiskSpace' });
    await env.group('full', { replicas: 1 });
    const failed = await env.until('full', (group) => reason(group) === 'VcenterRefused');
    expect(condition(failed, 'Reconciling')).toBe('True');
    const failures = async () =>
      (await logged('full')).filter((line) => field(line, 'msg') === 'Cloning a machine failed');
    await expect.poll(async () => (await failures()).length, { timeout: 30_000 }).toBeGreaterThan(2);
    expect((await failures())[0]).toMatchObject({
      level: 'warn',
      object: 'default/full',
      task: expect.stringMatching(/^task-/),
      machineName: expect.stringMatching(/^full-replica-/),
      retryInMs: expect.any(Number),
    });
    await expect.poll(() => warnings('full')).toEqual([warningOf(failed)]);
    await env.vcsim.control.clearFaults();
    await env.running('full', 1);
    await env.kubectl('delete', 'vmgroup', 'full');
  });

  test.each([
    ['template', { template: 'missing' }, 'NotFound'],
    ['datacenter', { placement: { datacenter: 'DC9' } }, 'NotFound'],
    ['vcenter', { placement: { vcenter: 'west' } }, 'UnknownVcenter'],
    ['pool', { placement: { resourcePool: 'nowhere' } }, 'NotFound'],
    ['snapshot', { linked: true }, 'NoSnapshot'],
  ] as const)(
    'an error that a user has to correct (%s) causes a condition and one event, but no failed reconcile',
    async (name, spec, expected) => {
      await env.group(name, { replicas: 1, ...spec });
      const failed = await env.until(name, (group) => reason(group) === expected);
      expect(condition(failed, 'Stalled')).toBe('True');
      // Retries add no events.
      const before = await reconciles();
      await expect.poll(reconciles, { timeout: 30_000 }).toBeGreaterThan(before + 2);
      await expect.poll(() => warnings(name)).toEqual([warningOf(failed)]);
      const lines = await messages(name);
      expect(lines.filter((line) => line === 'Reconcile failed')).toEqual([]);
      expect(lines.filter((line) => line === 'Reconciling VmGroup failed').length).toBeLessThan(2);
      await env.kubectl('delete', 'vmgroup', name);
    },
  );
});
