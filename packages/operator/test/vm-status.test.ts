import { readFile } from 'node:fs/promises';
import { condition, field, type KubeObject } from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { kstatusLife, recordLife } from './kstatus.ts';
import { install, VMS, type WithCloud } from './with-cloud.ts';

let env: WithCloud;
beforeAll(async () => {
  env = await install({
    // With one worker, the controller reconciles no other VM while the worker waits for a cloud that hangs.
    args: [
      ...['--vm-refresh=1s', '--cloud-timeout=2s', '--vm-unknown-after=8s', '--vm-concurrency=1'],
      '--vm-sweep=1s',
    ],
    cloud: {
      config: {
        observeEveryMs: 20,
        simulated: { bootMs: { min: 20, max: 60 }, stopMs: { min: 20, max: 60 } },
      },
      faults: true,
    },
  });
}, 120_000);
afterAll(() => env?.[Symbol.asyncDispose]());

const KIND = 'vms.samplecontroller.k8s.io';
const status = (vm: KubeObject, name: string) => field(vm, 'status', name);
const isRunning = (vm: KubeObject) => status(vm, 'opStatus') === 'Running';
const conditionOf = (vm: KubeObject, type: string): unknown =>
  [status(vm, 'conditions') ?? []].flat().find((each) => field(each, 'type') === type);
const reasonOf = (vm: KubeObject) => field(conditionOf(vm, 'Ready'), 'reason');
const patchStatus = (name: string, patch: object) =>
  env.kubectl(
    'patch',
    KIND,
    name,
    '--subresource=status',
    '--type=merge',
    '-p',
    JSON.stringify({ status: patch }),
  );

async function running(...names: readonly string[]): Promise<void> {
  await Promise.all(names.map((name) => env.vm(name, `vm${name}`)));
  await Promise.all(names.map((name) => env.until(name, isRunning)));
}

/** Returns the number of events of each reason about an object, including the counts of event series. */
async function eventsOf(name: string): Promise<Readonly<Record<string, number>>> {
  const list: unknown = JSON.parse(await env.kubectl('get', 'events.events.k8s.io', '-o', 'json'));
  const counts: Record<string, number> = {};
  for (const event of [field(list, 'items')].flat()) {
    if (field(event, 'regarding', 'name') !== name) continue;
    const reason = String(field(event, 'reason'));
    counts[reason] = (counts[reason] ?? 0) + Number(field(event, 'series', 'count') ?? 1);
  }
  return counts;
}

/** Returns the messages of the operator's log lines. */
async function logged(): Promise<readonly string[]> {
  const text = await readFile(env.operator.log, 'utf8');
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => String(field(JSON.parse(line), 'msg')));
}

describe('outages of the cloud', () => {
  const outages: readonly [string, string, () => Promise<AsyncDisposable>][] = [
    ['that hangs', 'CloudUnreachable', hangs],
    ['that answers 500', 'CloudFailing', fails],
    ['that refuses connections', 'CloudUnreachable', isDown],
  ];

  test.each(outages)(
    'a cloud %s sets Ready of every VM to Unknown, without repeated events or log lines',
    async (how, reason, begin) => {
      const names = ['a', 'b', 'c'].map((name) => `${name}-${how.replaceAll(' ', '-')}`);
      await running(...names);
      const before = await logged();
      {
        await using _ = await begin();
        for (const name of names) {
          const vm = await env.until(name, (each) => condition(each, 'Ready') === 'Unknown');
          expect([reasonOf(vm), status(vm, 'opStatus')]).toEqual([reason, 'Unknown']);
          expect(conditionOf(vm, 'CloudAvailable')).toMatchObject({ status: 'False', reason });
        }
        // Polled: Ready may be Unknown because of a failed request for this VM, before the operator has detected and
        // logged the outage.
        await expect.poll(async () => countIn(await linesAfter(before), UNAVAILABLE)).toBe(1);
      }
      for (const name of names) {
        const vm = await env.until(name, isRunning);
        expect(conditionOf(vm, 'CloudAvailable')).toMatchObject({ status: 'True', reason: 'Answering' });
        await expect
          .poll(() => eventsOf(name), { timeout: 30_000 })
          .toEqual({ Created: 1, [reason]: 1, CloudAvailable: 1 });
      }
      const lines = await linesAfter(before);
      expect(countIn(lines, UNAVAILABLE)).toBe(1);
      expect(countIn(lines, 'Backend available again')).toBe(1);
      expect(countIn(lines, 'Reconcile failed')).toBe(0);
      expect(countIn(lines, 'Job failed, retrying at the next interval')).toBe(0);
    },
    120_000,
  );

  const UNAVAILABLE = 'Backend unavailable; objects that depend on it are retried when it answers';
  const linesAfter = async (before: readonly string[]) => (await logged()).slice(before.length);
  const countIn = (lines: readonly string[], text: string) => lines.filter((line) => line === text).length;

  async function hangs(): Promise<AsyncDisposable> {
    env.cloud.part.pause();
    return { [Symbol.asyncDispose]: async () => env.cloud.part.resume() };
  }

  async function fails(): Promise<AsyncDisposable> {
    await env.cloud.fetch('/faults', { method: 'PUT', body: JSON.stringify({ errorRate: 1, seed: 1 }) });
    return {
      [Symbol.asyncDispose]: async () => void (await env.cloud.fetch('/faults', { method: 'DELETE' })),
    };
  }

  async function isDown(): Promise<AsyncDisposable> {
    await env.cloud.part.kill();
    return { [Symbol.asyncDispose]: () => env.cloud.part.start() };
  }

  test('a VM reports its deletion without delay even if every worker waits for the cloud', async () => {
    const names = ['leaves-1', 'leaves-2', 'leaves-3'];
    await running(...names);
    const vms = await Promise.all(names.map((name) => env.until(name, isRunning)));
    // At first, only requests for single servers hang. The operator still gets responses to its lists, so it detects no
    // outage. The report of an outage would replace the message "Deleting the machine".
    const faults = { latencyMs: { min: 60_000, max: 60_000 }, routes: ['getServer'], seed: 1 };
    await env.cloud.fetch('/faults', { method: 'PUT', body: JSON.stringify(faults) });
    await using stack = new AsyncDisposableStack();
    stack.defer(async () => void (await env.cloud.fetch('/faults', { method: 'DELETE' })));
    await env.kubectl('delete', '--wait=false', KIND, ...names);
    const announced = vms.map((vm) =>
      env.untilAfter(vm, (each) => status(each, 'msg') === 'Deleting the machine'),
    );
    for (const vm of await Promise.all(announced))
      expect([reasonOf(vm), status(vm, 'opStatus'), condition(vm, 'Ready')]).toEqual([
        'Deleting',
        'Deleting',
        'False',
      ]);
    stack.use(await hangs());
    for (const name of names) {
      const vm = await env.until(name, (each) => reasonOf(each) === 'CloudUnreachable');
      expect([status(vm, 'opStatus'), status(vm, 'msg')]).toEqual([
        'Deleting',
        'Waiting to delete the machine. The cloud does not answer; retrying automatically',
      ]);
    }
  }, 120_000);
});

describe('vmId', () => {
  test('vmId cannot be changed or removed by other clients', async () => {
    await running('fixed');
    const message = 'the vmId of a machine cannot be changed or removed';
    await expect(patchStatus('fixed', { vmId: 'another' })).rejects.toThrow(message);
    await expect(patchStatus('fixed', { vmId: null })).rejects.toThrow(message);
    const whole = JSON.stringify([{ op: 'remove', path: '/status' }]);
    await expect(
      env.kubectl('patch', KIND, 'fixed', '--subresource=status', '--type=json', '-p', whole),
    ).rejects.toThrow(message);
  });

  test('a wrong vmId is corrected to the machine that has the UID label of the VM', async () => {
    await running('mine', 'theirs');
    const own = status(await env.until('mine', isRunning), 'vmId');
    const other = status(await env.until('theirs', isRunning), 'vmId');
    for (const [round, wrong] of [other, 'no-such-machine'].entries()) {
      // Sets a wrong vmId, as in an object that is older than the CEL rule. The rule permits this change because the
      // counter of repairs increases.
      await patchStatus('mine', { vmId: wrong, repairs: 10 * (round + 1) });
      const vm = await env.until('mine', (each) => status(each, 'vmId') === own);
      expect(status(vm, 'repairs')).toBe(10 * (round + 1) + 1);
      expect([reasonOf(vm), condition(vm, 'VmLost')]).toEqual(['Running', undefined]);
    }
    await expect.poll(() => eventsOf('mine')).toMatchObject({ VmIdRepaired: 2 });
    expect(status(await env.until('theirs', isRunning), 'vmId')).toBe(other);
  });
});

test('a status that another client empties or edits is restored immediately', async () => {
  await running('edited');
  const restored = (vm: KubeObject) => isRunning(vm) && condition(vm, 'Ready') === 'True';
  await patchStatus('edited', { opStatus: null, msg: null, conditions: null, observedGeneration: null });
  await env.until('edited', restored);
  await patchStatus('edited', { opStatus: 'Failed', msg: 'all is lost' });
  const vm = await env.until('edited', restored);
  expect(status(vm, 'msg')).toBe('The machine is running');
});

test('a deleted VM reports that its machine is gone while a finalizer of another controller keeps the object', async () => {
  await running('held');
  const finalizers = JSON.stringify([
    { op: 'add', path: '/metadata/finalizers/-', value: 'example.org/theirs' },
  ]);
  await env.kubectl('patch', KIND, 'held', '--type=json', '-p', finalizers);
  await env.kubectl('delete', '--wait=false', KIND, 'held');
  const vm = await env.until('held', (each) => status(each, 'opStatus') === 'Deleted');
  expect([reasonOf(vm), condition(vm, 'Ready')]).toEqual(['Deleted', 'False']);
  expect((await env.servers()).filter(({ name }) => name === 'vmheld')).toEqual([]);
  const [, row = ''] = (await env.kubectl('get', KIND, 'held')).split('\n');
  expect(row.split(/\s+/).slice(0, 3)).toEqual(['held', 'vmheld', 'Deleted']);
  await env.kubectl('patch', KIND, 'held', '--type=merge', '-p', '{"metadata":{"finalizers":null}}');
  await env.gone('held');
});

test('a paused VM has the condition Paused, is observed, and is deleted only after it is resumed', async () => {
  await running('rests');
  await env.kubectl('annotate', KIND, 'rests', 'vmwright.dev/paused=true');
  await env.until('rests', (vm) => condition(vm, 'Paused') === 'True');
  const [server] = (await env.servers()).filter(({ name }) => name === 'vmrests');
  await env.client.delete(server?.id ?? '');
  const lost = await env.until('rests', (vm) => reasonOf(vm) === 'VmLost');
  expect(condition(lost, 'Paused')).toBe('True');
  await env.kubectl('delete', '--wait=false', KIND, 'rests');
  await env.until('rests', (vm) =>
    /^The machine is not deleted: .*remove the annotation/.test(String(status(vm, 'msg'))),
  );
  await env.kubectl('annotate', KIND, 'rests', 'vmwright.dev/paused-');
  await env.gone('rests');
});

describe('kstatus, as Flux and Argo CD read it', () => {
  test('the kstatus of a VM is Current only while the machine runs', async () => {
    using life = await recordLife(env.controlPlane.cluster, `${VMS}/lives`);
    await running('lives');
    await env.kubectl('delete', KIND, 'lives');
    await life.gone;
    expect(kstatusLife(life.versions)).toEqual(['InProgress', 'Current', 'Terminating']);
    expect(field(life.versions[0], 'status')).toEqual({ observedGeneration: -1 });
  });

  test('the kstatus of a VM is Failed after its machine is lost, and InProgress while the machine is replaced', async () => {
    using life = await recordLife(env.controlPlane.cluster, `${VMS}/dies`);
    await running('dies');
    const vmId = status(await env.until('dies', isRunning), 'vmId');
    await env.client.delete(String(vmId));
    await env.until('dies', (vm) => condition(vm, 'Stalled') === 'True' && reasonOf(vm) === 'VmLost');
    await env.kubectl('annotate', KIND, 'dies', 'vmwright.dev/recreate=true');
    await env.until('dies', (vm) => isRunning(vm) && status(vm, 'vmId') !== vmId);
    await env.kubectl('delete', KIND, 'dies');
    await life.gone;
    const shown = kstatusLife(life.versions).join(' ');
    expect(shown).toMatch(/^InProgress Current (InProgress )?Failed InProgress Current Terminating$/);
  });
});

test('kubectl explain describes spec, status and conditions', async () => {
  const explained = async (path: string) =>
    (await env.kubectl('explain', `${KIND}.${path}`)).replaceAll(/\s+/g, ' ');
  expect(await explained('spec')).toContain('Desired machine in the private cloud.');
  expect(await explained('status')).toContain('Observed state of the machine, written by the operator.');
  expect(await explained('status.conditions')).toContain('CloudAvailable: the cloud answers the operator');
  expect(await explained('status.conditions.type')).toContain('Type of the condition in CamelCase');
});
