import type { CloudError } from '@vmwright/cloud';
import { condition, field, type KubeObject } from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { VM } from '../src/vm/resource.ts';
import { expectExactPermissions, permissionsFor } from './permissions.ts';
import { createSample, deleteSample } from './vm-exercise.ts';
import { install, type WithCloud } from './with-cloud.ts';

/** Configuration of the cloud. @param stopMs time from the deletion of a machine until it is gone */
const config = (stopMs: { readonly min: number; readonly max: number }) => ({
  observeEveryMs: 20,
  simulated: {
    bootMs: { min: 20, max: 60 },
    stopMs,
    cpu: { min: 10, max: 90, periodMs: 4_000, noise: 0 },
  },
});
const HOUR_MS = 3_600_000;

let env: WithCloud;
beforeAll(async () => {
  env = await install({
    audit: true,
    args: ['--vm-refresh=1s', '--vm-sweep=2s', '--cloud-timeout=2s', '--vm-unknown-after=4s'],
    cloud: {
      prohibited: ['vmforbidden it is the name of a river', 'bad-*'],
      config: config({ min: HOUR_MS, max: HOUR_MS }), // the first test shortens `stopMs`
      faults: true,
    },
  });
}, 120_000);
afterAll(() => env?.[Symbol.asyncDispose]());

const status = (vm: KubeObject, name: string) => field(vm, 'status', name);
const reasonOf = (vm: KubeObject) => {
  const conditions = field(vm, 'status', 'conditions');
  return Array.isArray(conditions)
    ? field(
        conditions.find((each) => field(each, 'type') === 'Ready'),
        'reason',
      )
    : undefined;
};
const isRunning = (vm: KubeObject) => status(vm, 'opStatus') === 'Running';

test('applying the sample manifest creates a machine, and deleting the VM removes the machine before the VM', async () => {
  const { cluster } = env.controlPlane;
  const vmId = await createSample(cluster, env.client);
  const table = await env.kubectl('get', 'vms.samplecontroller.k8s.io');
  const [header = '', row = ''] = table.split('\n');
  expect(header.split(/\s+/)).toEqual(['NAME', 'VMNAME', 'STATUS', 'VMID', 'CPU', 'AGE']);
  expect(row.split(/\s+/).slice(0, 4)).toEqual(['sample', 'vmsample', 'Running', vmId]);
  expect(await env.kubectl('explain', 'vms.samplecontroller.k8s.io.spec.vmname')).toContain(
    'Name of the machine in the private cloud.',
  );
  await expect
    .poll(() => env.kubectl('describe', 'vms.samplecontroller.k8s.io', 'sample'))
    .toMatch(new RegExp(`Normal +Created .*Created machine ${vmId}`));

  // The cloud takes an hour to delete a machine. Once the status reports the deletion, the test shortens that time.
  const reported = async () => {
    const isDeleting = 'The cloud is deleting the machine';
    const vm = await env.until('sample', (each) => status(each, 'msg') === isDeleting);
    await env.cloud.reconfigure(config({ min: 300, max: 400 }));
    return vm;
  };
  const [deleting] = await Promise.all([reported(), deleteSample(cluster, env.cloud, vmId)]);
  expect([reasonOf(deleting), status(deleting, 'opStatus')]).toEqual(['Deleting', 'Deleting']);
});

describe('kubectl apply of a VM', () => {
  const manifest = (name: string, spec: string) =>
    `apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: VM\nmetadata: {name: ${name}, namespace: default}\nspec: ${spec}\n`;
  const DENIED = 'admission webhook "validate.v1alpha1.vms.samplecontroller.k8s.io" denied the request: ';

  test.each([
    [
      'a prohibited name',
      '{vmname: vmforbidden}',
      `${DENIED}The name "vmforbidden" is prohibited: it is the name of a river. Choose another name.`,
    ],
    [
      'a name that matches a prohibited pattern',
      '{vmname: bad-one}',
      `${DENIED}The name "bad-one" is prohibited. Choose another name.`,
    ],
    [
      'an empty name',
      '{vmname: ""}',
      'spec.vmname: Invalid value: "": a vmname is 1 to 63 characters: letters, digits, "-", "_" and "."',
    ],
    [
      'a name that is too long',
      `{vmname: ${'x'.repeat(64)}}`,
      'a vmname is 1 to 63 characters: letters, digits, "-", "_" and "."',
    ],
    [
      'a name with other characters',
      '{vmname: "vm sample"}',
      'spec.vmname: Invalid value: "vm sample": a vmname is 1 to 63 characters',
    ],
    ['a name of one dot', '{vmname: "."}', 'vmname must not be "." or ".."'],
    ['a name of two dots', '{vmname: ".."}', 'vmname must not be "." or ".."'],
    ['a missing name', '{}', 'spec.vmname: Required value'],
  ])('kubectl apply of a VM with %s is rejected', async (_, spec, message) => {
    expect(await env.refused(manifest('refused', spec))).toContain(message);
  });

  test('kubectl apply of a VM is rejected if another VM has the same vmname', async () => {
    await env.vm('first', 'vmtaken');
    await env.until('first', isRunning);
    expect(await env.refused(manifest('second', '{vmname: vmtaken}'))).toContain(
      `${DENIED}The name "vmtaken" is already used by the VM "first" in this namespace. Choose another vmname, or delete that VM`,
    );
  });

  test('kubectl apply of a VM is rejected if it changes vmname', async () => {
    await env.vm('unchanged', 'vmunchanged');
    expect(await env.refused(manifest('unchanged', '{vmname: vmother}'))).toContain(
      'spec.vmname: Invalid value: "vmother": the vmname of a machine cannot be changed; create another VM',
    );
  });

  test('kubectl apply of a VM is rejected while the cloud does not answer', async () => {
    env.cloud.part.pause();
    try {
      expect(await env.refused(manifest('unasked', '{vmname: vmunasked}'))).toContain(
        `${DENIED}The vmname "vmunasked" could not be checked. The cloud does not answer. Try again later`,
      );
    } finally {
      env.cloud.part.resume();
    }
  });
});

test('a VM reports a name that becomes prohibited after admission, and gets a machine once the name is allowed again', async () => {
  {
    await using _ = await failingCreates();
    await env.vm('late', 'vmlate');
    await env.until(
      'late',
      (vm) => status(vm, 'opStatus') === 'Unknown' && condition(vm, 'NameAccepted') === 'True',
    );
    await env.cloud.prohibit('vmforbidden it is the name of a river', 'bad-*', 'vmlate');
    await expect.poll(() => answerAbout('vmlate')).toBe('PROHIBITED_NAME'); // the cloud has reloaded its prohibited names
  }
  const rejected = await env.until('late', (vm) => condition(vm, 'NameAccepted') === 'False');
  expect(status(rejected, 'msg')).toBe('The name "vmlate" is prohibited. Choose another name.');
  expect((await env.servers()).map(({ name }) => name)).not.toContain('vmlate');
  await env.cloud.prohibit('vmforbidden it is the name of a river', 'bad-*');
  await expect.poll(() => answerAbout('vmlate')).toBe('free');
  // The operator checks the name again after five minutes, or when the object changes, so the test changes the object.
  await env.kubectl('annotate', 'vms.samplecontroller.k8s.io', 'late', 'touched=yes');
  await env.until('late', isRunning);
});

const answerAbout = (name: string) =>
  env.client.check(name).then(
    () => 'free',
    (error: CloudError) => error.code,
  );

/** Makes the cloud fail all create requests until the result is disposed of. */
async function failingCreates(): Promise<AsyncDisposable> {
  const faults = { errorRate: 1, routes: ['createServer'], seed: 1 };
  const answer = await env.cloud.fetch('/faults', { method: 'PUT', body: JSON.stringify(faults) });
  expect(answer.status).toBeLessThan(300);
  return { [Symbol.asyncDispose]: async () => void (await env.cloud.fetch('/faults', { method: 'DELETE' })) };
}

test('a VM that is deleted during an outage reports the outage, and is gone once the cloud is back', async () => {
  await env.vm('stays', 'vmstays');
  const { metadata } = await env.until('stays', isRunning);
  await env.cloud.part.kill();
  await env.kubectl('delete', '--wait=false', 'vms.samplecontroller.k8s.io', 'stays');
  const waiting = await env.until(
    'stays',
    (vm) => condition(vm, 'Ready') === 'Unknown' && status(vm, 'opStatus') === 'Deleting',
  );
  expect(status(waiting, 'msg')).toBe(
    'Waiting to delete the machine. The cloud does not answer; retrying automatically',
  );
  expect(metadata.uid).toBe(waiting.metadata.uid);
  await env.cloud.part.start();
  await env.gone('stays');
  expect((await env.servers()).filter(({ name }) => name === 'vmstays')).toEqual([]);
});

test('a vanished machine is reported as lost, and replaced only if the VM is annotated with vmwright.dev/recreate', async () => {
  await env.vm('vanishes', 'vmvanishes');
  const before = status(await env.until('vanishes', isRunning), 'vmId');
  await env.client.delete(String(before));
  const lost = await env.until('vanishes', (vm) => condition(vm, 'VmLost') === 'True');
  expect(status(lost, 'vmId')).toBe(before);
  expect(status(lost, 'opStatus')).toBe('Unknown');
  expect((await env.servers()).filter(({ name }) => name === 'vmvanishes')).toEqual([]);
  await env.kubectl('annotate', 'vms.samplecontroller.k8s.io', 'vanishes', 'vmwright.dev/recreate=true');
  const again = await env.until('vanishes', isRunning);
  expect(status(again, 'vmId')).not.toBe(before);
  expect(condition(again, 'VmLost')).toBeUndefined();
});

test('a paused VM gets no machine until it is resumed', async () => {
  await env.vm('paused', 'vmpaused', { 'vmwright.dev/paused': 'true' });
  await env.until('paused', (vm) => reasonOf(vm) === 'Paused');
  await env.vm('control', 'vmcontrol');
  await env.until('control', isRunning);
  expect((await env.servers()).map(({ name }) => name)).not.toContain('vmpaused');
  await env.kubectl('annotate', 'vms.samplecontroller.k8s.io', 'paused', 'vmwright.dev/paused-');
  await env.until('paused', isRunning);
});

test('an unknown deletion policy is rejected on create, and blocks the deletion of an existing VM', async () => {
  const unknown = { 'vmwright.dev/deletion-policy': 'Retain' };
  const problem = 'the annotation vmwright.dev/deletion-policy is "Retain"; it must be Delete or Orphan';
  await expect(env.vm('retained', 'vmretained', unknown)).rejects.toThrow(problem);
  await env.vm('retained', 'vmretained');
  await env.until('retained', isRunning);
  await env.kubectl(
    'annotate',
    'vms.samplecontroller.k8s.io',
    'retained',
    'vmwright.dev/deletion-policy=Retain',
  );
  await env.kubectl('delete', '--wait=false', 'vms.samplecontroller.k8s.io', 'retained');
  await env.until('retained', (vm) => status(vm, 'msg') === `The machine is not deleted: ${problem}`);
  expect((await env.servers()).map(({ name }) => name)).toContain('vmretained');
  await env.kubectl('annotate', 'vms.samplecontroller.k8s.io', 'retained', 'vmwright.dev/deletion-policy-');
  await env.gone('retained');
});

test('an ownership label that was removed from a machine is restored', async () => {
  await env.vm('unlabelled', 'vmunlabelled');
  const { id = '', labels = {} } = (await untilServer('vmunlabelled')) ?? {};
  await env.until('unlabelled', isRunning);
  await env.client.relabel(id, { 'vmwright.dev/cluster': null });
  await expect.poll(async () => (await env.client.get(id)).labels, { timeout: 30_000 }).toEqual(labels);
});

test('a machine without ownership labels is not relabelled, but the other labels return once it has the UID label again', async () => {
  await env.vm('migrated', 'vmmigrated');
  const { id = '', labels = {} } = (await untilServer('vmmigrated')) ?? {};
  const { 'vmwright.dev/uid': uid = '' } = labels;
  await env.client.relabel(id, Object.fromEntries(Object.keys(labels).map((label) => [label, null])));
  await env.kubectl('annotate', 'vms.samplecontroller.k8s.io', 'migrated', 'example.com/touched=1');
  expect(status(await env.until('migrated', isRunning), 'vmId')).toBe(id);
  expect((await env.client.get(id)).labels).toEqual({});
  await env.client.relabel(id, { 'vmwright.dev/uid': uid });
  await expect.poll(async () => (await env.client.get(id)).labels, { timeout: 30_000 }).toEqual(labels);
  await env.kubectl('delete', 'vms.samplecontroller.k8s.io', 'migrated');
  expect((await env.servers()).map((server) => server.id)).not.toContain(id);
});

const untilServer = async (name: string) => {
  await env.until(name.replace(/^vm/, ''), isRunning);
  return (await env.servers()).find((server) => server.name === name);
};

test('a VM is Unknown while the cloud is down, and Running when the cloud is back', async () => {
  await env.vm('outage', 'vmoutage');
  await env.until('outage', isRunning);
  await env.cloud.part.kill();
  const unknown = await env.until('outage', (vm) => status(vm, 'opStatus') === 'Unknown');
  expect([condition(unknown, 'Ready'), reasonOf(unknown)]).toEqual(['Unknown', 'CloudUnreachable']);
  expect(condition(unknown, 'CloudAvailable')).toBe('False');
  await env.cloud.part.start();
  expect(condition(await env.until('outage', isRunning), 'CloudAvailable')).toBe('True');
});

test('deletion with the policy Orphan keeps the machine and removes its ownership labels', async () => {
  await env.vm('orphan', 'vmorphan', { 'vmwright.dev/deletion-policy': 'Orphan' });
  const vmId = status(await env.until('orphan', isRunning), 'vmId');
  await env.kubectl('delete', 'vms.samplecontroller.k8s.io', 'orphan');
  const [server] = (await env.servers()).filter(({ id }) => id === vmId);
  expect(server).toMatchObject({ state: 'running', labels: {} });
});

// Must be the last test of the file, because it checks the requests of all other tests.
test('the operator uses exactly the permissions that it ships', async () => {
  await expectExactPermissions(env.controlPlane, permissionsFor(VM));
});
