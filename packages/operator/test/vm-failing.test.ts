import { condition, field, type KubeObject } from '@vmwright/testbed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { install, type WithCloud } from './with-cloud.ts';

/** Configuration of the cloud. @param failureProbability probability that a machine fails to start, from 0 to 1 */
const config = (failureProbability: number, bootMs = 50) => ({
  observeEveryMs: 20,
  simulated: { bootMs: { min: bootMs, max: bootMs }, stopMs: { min: 20, max: 60 }, failureProbability },
});

let env: WithCloud;
beforeAll(async () => {
  env = await install({
    args: ['--vm-refresh=1s', '--vm-sweep=5s', '--vm-unknown-after=4s'],
    cloud: { config: config(1), faults: true },
  });
}, 120_000);
afterAll(() => env?.[Symbol.asyncDispose]());

const status = (vm: KubeObject, name: string) => field(vm, 'status', name);
const reasonOf = (vm: KubeObject) =>
  field(
    [status(vm, 'conditions') ?? []].flat().find((each) => field(each, 'type') === 'Ready'),
    'reason',
  );
const isRefused = (vm: KubeObject) => reasonOf(vm) === 'CloudFailing';
const isRunning = (vm: KubeObject) => status(vm, 'opStatus') === 'Running';
const recreatedAt = (vm: KubeObject) => Date.parse(String(status(vm, 'recreatedAt')));
const NO_DELETES = { errorRate: 1, routes: ['deleteServer'], seed: 1 };
const WHY = 'The machine has failed (simulated boot failure).';

test('if a failed machine cannot be deleted, the error of the cloud is reported once', async () => {
  await env.cloud.fetch('/faults', { method: 'PUT', body: JSON.stringify(NO_DELETES) });
  await env.vm('stuck', 'vmstuck', { 'vmwright.dev/recreate': 'true' });
  const stuck = await env.until('stuck', isRefused);
  expect(condition(stuck, 'Ready')).toBe('Unknown');
  expect(stuck.status).toMatchObject({
    opStatus: 'Unknown',
    msg: 'The cloud answers with a server error (HTTP 5xx); retrying automatically',
  });
  // Retries change only the number of attempts.
  const attempts = Number(status(stuck, 'attempts'));
  const tried = await env.until(
    'stuck',
    (vm) => Number(status(vm, 'attempts')) > attempts + 1 && isRefused(vm),
  );
  expect(tried.status).toMatchObject({ opStatus: 'Unknown', conditions: status(stuck, 'conditions') });
  await env.cloud.fetch('/faults', { method: 'DELETE' });
  await env.until('stuck', (vm) => Number(status(vm, 'recreations')) > 0);
  await env.kubectl('delete', 'vms.samplecontroller.k8s.io', 'stuck');
});

test('a failed machine without its ownership label is kept until a user deletes it in the cloud', async () => {
  await env.cloud.fetch('/faults', { method: 'PUT', body: JSON.stringify(NO_DELETES) });
  await env.vm('taken', 'vmtaken', { 'vmwright.dev/recreate': 'true' });
  const failed = await env.until('taken', isRefused);
  const id = String(status(failed, 'vmId'));
  await env.client.relabel(id, { 'vmwright.dev/uid': null });
  const unlabelled = await env.until('taken', (vm) => status(vm, 'opStatus') === 'Failed');
  expect(status(unlabelled, 'msg')).toBe(
    `${WHY} The operator does not remove it, because its label vmwright.dev/uid is gone: delete it in the cloud to get a new machine`,
  );
  await env.cloud.fetch('/faults', { method: 'DELETE' });
  await env.client.delete(id);
  const replaced = await env.until(
    'taken',
    (vm) => Number(status(vm, 'recreations')) >= 1 && status(vm, 'vmId') !== undefined,
  );
  expect(status(replaced, 'vmId')).not.toBe(id);
  await env.kubectl('delete', 'vms.samplecontroller.k8s.io', 'taken');
});

test('a failed machine is replaced, with exponential back-off, only if the VM is annotated with vmwright.dev/recreate', async () => {
  await env.vm('kept', 'vmkept');
  const created = await env.vm('replaced', 'vmreplaced', { 'vmwright.dev/recreate': 'true' });
  const kept = await env.until('kept', (vm) => status(vm, 'opStatus') === 'Failed');
  expect(status(kept, 'msg')).toBe(
    `${WHY} Delete the VM, or annotate it with vmwright.dev/recreate=true to get a new machine`,
  );
  expect(condition(kept, 'Ready')).toBe('False');

  const waits = `${WHY} The operator creates a new machine, at the earliest 10 s after the previous replacement`;
  const waiting = await env.untilAfter(created, (vm) => status(vm, 'msg') === waits);
  expect(waiting.status).toMatchObject({ opStatus: 'Failed', recreations: 1 });
  const third = await env.untilAfter(waiting, (vm) => status(vm, 'recreations') === 2);
  expect(recreatedAt(third) - recreatedAt(waiting)).toBeGreaterThanOrEqual(10_000);

  await env.cloud.reconfigure(config(0));
  const repaired = await env.until('replaced', isRunning);
  expect(status(repaired, 'recreations')).toBeLessThanOrEqual(3);
  const names = (await env.servers()).map(({ name }) => name).sort();
  expect(names).toEqual(['vmkept', 'vmreplaced']);
  expect((await env.servers()).map(({ id }) => id)).toContain(status(kept, 'vmId'));
  await env.kubectl('annotate', 'vms.samplecontroller.k8s.io', 'kept', 'vmwright.dev/recreate=true');
  await env.until('kept', isRunning);
});

test('a VM is Unknown if the cloud is down while its machine is being created', async () => {
  await env.cloud.reconfigure(config(0, 3_600_000));
  const admitted = await env.vm('made', 'vmmade');
  const made = await env.untilAfter(admitted, (vm) => status(vm, 'vmId') !== undefined);
  expect(status(made, 'opStatus')).toBe('New');
  await env.cloud.part.kill();
  const unknown = await env.until('made', (vm) => status(vm, 'opStatus') === 'Unknown');
  expect(status(unknown, 'msg')).toBe('The cloud does not answer; retrying automatically');
  await env.cloud.part.start();
  await env.until('made', (vm) => status(vm, 'opStatus') === 'New');
});
