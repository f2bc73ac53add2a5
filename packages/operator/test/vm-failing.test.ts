import { condition, field, type KubeObject } from '@vmwright/testbed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { install, type WithCloud } from './with-cloud.ts';

/** Of the cloud: whether each machine that it starts fails, or none. */
const config = (failureProbability: number, bootMs = 50) => ({
  observeEveryMs: 20,
  simulated: { bootMs: { min: bootMs, max: bootMs }, stopMs: { min: 20, max: 60 }, failureProbability },
});

let it: WithCloud;
beforeAll(async () => {
  it = await install({
    args: ['--vm-refresh=1s', '--vm-sweep=5s', '--vm-unknown-after=4s'],
    cloud: { config: config(1), faults: true },
  });
}, 120_000);
afterAll(() => it?.[Symbol.asyncDispose]());

const status = (vm: KubeObject, name: string) => field(vm, 'status', name);
const isRunning = (vm: KubeObject) => status(vm, 'opStatus') === 'Running';
const madeAnewAt = (vm: KubeObject) => Date.parse(String(status(vm, 'recreatedAt')));
const NO_DELETES = { errorRate: 1, routes: ['deleteServer'], seed: 1 };
const WHY = 'The machine has failed (simulated boot failure).';

test('a machine that has failed and cannot be removed for another is told so', async () => {
  await it.cloud.fetch('/faults', { method: 'PUT', body: JSON.stringify(NO_DELETES) });
  await it.vm('stuck', 'vmstuck', { 'vmwright.dev/recreate': 'true' });
  const told = await it.until('stuck', (vm) => condition(vm, 'Ready') === 'Unknown');
  expect(told.status).toMatchObject({
    opStatus: 'Unknown',
    msg: 'The cloud answers with a server error (HTTP 5xx); retrying automatically',
  });
  // Told once, however often it is tried.
  const attempts = Number(status(told, 'attempts'));
  const tried = await it.until('stuck', (vm) => Number(status(vm, 'attempts')) > attempts + 1);
  expect(tried.status).toMatchObject({ opStatus: 'Unknown', conditions: status(told, 'conditions') });
  await it.cloud.fetch('/faults', { method: 'DELETE' });
  await it.until('stuck', (vm) => Number(status(vm, 'recreations')) > 0);
  await it.kubectl('delete', 'vms.samplecontroller.k8s.io', 'stuck');
});

test('one that is not ours any more stays, which is told; another is made when it is gone', async () => {
  await it.cloud.fetch('/faults', { method: 'PUT', body: JSON.stringify(NO_DELETES) });
  await it.vm('taken', 'vmtaken', { 'vmwright.dev/recreate': 'true' });
  const failed = await it.until('taken', (vm) => condition(vm, 'Ready') === 'Unknown');
  const id = String(status(failed, 'vmId'));
  await it.client.relabel(id, { 'vmwright.dev/uid': null });
  const told = await it.until('taken', (vm) => status(vm, 'opStatus') === 'Failed');
  expect(status(told, 'msg')).toBe(
    `${WHY} The operator does not remove it, because its label vmwright.dev/uid is gone: delete it in the cloud to get a new machine`,
  );
  await it.cloud.fetch('/faults', { method: 'DELETE' });
  await it.client.delete(id);
  const anew = await it.until('taken', (vm) => status(vm, 'recreations') === 1);
  expect(status(anew, 'vmId')).not.toBe(id);
  await it.kubectl('delete', 'vms.samplecontroller.k8s.io', 'taken');
});

test('a machine that fails stays for who wants to see why; another is made where that is asked for, ever later', async () => {
  await it.vm('kept', 'vmkept');
  await it.vm('replaced', 'vmreplaced', { 'vmwright.dev/recreate': 'true' });
  const kept = await it.until('kept', (vm) => status(vm, 'opStatus') === 'Failed');
  expect(status(kept, 'msg')).toBe(
    `${WHY} Delete the VM, or annotate it with vmwright.dev/recreate=true to get a new machine`,
  );
  expect(condition(kept, 'Ready')).toBe('False');

  const waits = `${WHY} A new machine is created, at least 10 s after the last one`;
  const waiting = await it.until('replaced', (vm) => status(vm, 'msg') === waits);
  expect(waiting.status).toMatchObject({ opStatus: 'Failed', recreations: 1 });
  const third = await it.until('replaced', (vm) => status(vm, 'recreations') === 2);
  expect(madeAnewAt(third) - madeAnewAt(waiting)).toBeGreaterThanOrEqual(10_000);

  await it.cloud.reconfigure(config(0));
  const mended = await it.until('replaced', isRunning);
  expect(status(mended, 'recreations')).toBeLessThanOrEqual(3);
  const names = (await it.servers()).map(({ name }) => name).sort();
  expect(names).toEqual(['vmkept', 'vmreplaced']);
  expect((await it.servers()).map(({ id }) => id)).toContain(status(kept, 'vmId'));
  await it.kubectl('annotate', 'vms.samplecontroller.k8s.io', 'kept', 'vmwright.dev/recreate=true');
  await it.until('kept', isRunning);
});

test('while the cloud is away, nobody says that it is making a machine', async () => {
  await it.cloud.reconfigure(config(0, 3_600_000));
  await it.vm('made', 'vmmade');
  const made = await it.until('made', (vm) => status(vm, 'vmId') !== undefined);
  expect(status(made, 'opStatus')).toBe('New');
  await it.cloud.part.kill();
  const told = await it.until('made', (vm) => status(vm, 'opStatus') === 'Unknown');
  expect(status(told, 'msg')).toBe('The cloud does not answer; retrying automatically');
  await it.cloud.part.start();
  await it.until('made', (vm) => status(vm, 'opStatus') === 'New');
});
