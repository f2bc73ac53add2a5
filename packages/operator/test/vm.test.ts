import type { CloudError } from '@vmwright/cloud';
import { condition, field, type KubeObject } from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { install, type WithCloud } from './with-cloud.ts';

/** The manifest that the project started from, verbatim, with the status that its author wrote. */
const SEED = `apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VM
metadata:
    name: sample
spec:
    vmname: vmsample # any name
status:
    vmId: XXXXXXXXX-XXXX-XXXX-XXXX-XXXXXXXXXXXXX #uuid
    cpuUtilization: 50 #0-100
`;

let it: WithCloud;
beforeAll(async () => {
  it = await install({
    args: ['--vm-refresh=1s', '--vm-sweep=2s', '--cloud-timeout=2s', '--vm-unknown-after=4s'],
    cloud: {
      prohibited: ['vmforbidden it is the name of a river', 'bad-*'],
      config: {
        observeEveryMs: 20,
        simulated: {
          bootMs: { min: 20, max: 60 },
          stopMs: { min: 300, max: 400 },
          cpu: { min: 10, max: 90, periodMs: 4_000, noise: 0 },
        },
      },
      faults: true,
    },
  });
}, 120_000);
afterAll(() => it?.[Symbol.asyncDispose]());

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

test('the manifest of the seed becomes a machine, whose utilization is told; deleted, the machine goes first', async () => {
  await it.controlPlane.cluster.kubectl(['apply', '-f', '-'], { input: SEED });
  const vm = await it.until('sample', (each) => isRunning(each) && condition(each, 'Ready') === 'True');
  const vmId = status(vm, 'vmId');
  const [server] = (await it.servers()).filter(({ name }) => name === 'vmsample');
  expect(server).toMatchObject({ id: vmId, state: 'running' });
  const seen = new Set<unknown>();
  await it.until('sample', (each) => seen.add(status(each, 'cpuUtilization')).size >= 4);
  for (const cpu of seen)
    expect(cpu).toSatisfy((value) => Number.isInteger(value) && value >= 0 && value <= 100);

  const table = await it.kubectl('get', 'vms.samplecontroller.k8s.io');
  const [header = '', row = ''] = table.split('\n');
  expect(header.split(/\s+/)).toEqual(['NAME', 'VMNAME', 'STATUS', 'VMID', 'CPU', 'AGE']);
  expect(row.split(/\s+/).slice(0, 4)).toEqual(['sample', 'vmsample', 'Running', vmId]);
  expect(await it.kubectl('explain', 'vms.samplecontroller.k8s.io.spec.vmname')).toContain(
    'Name of the machine in the private cloud.',
  );
  expect(await it.kubectl('describe', 'vms.samplecontroller.k8s.io', 'sample')).toMatch(
    new RegExp(`Normal +Created .*Created machine ${String(vmId)}`),
  );

  await it.kubectl('delete', '--wait=false', 'vms.samplecontroller.k8s.io', 'sample');
  const isDeleting = 'The cloud is deleting the machine';
  const leaving = await it.until('sample', (each) => status(each, 'msg') === isDeleting);
  expect([reasonOf(leaving), status(leaving, 'opStatus')]).toEqual(['Deleting', 'Deleting']);
  await it.gone('sample');
  const seen404 = Date.now();
  const deleted = (await it.cloud.audit()).find(({ event, id }) => event === 'deleted' && id === vmId);
  // By the cloud's own book: it was gone before the object was.
  expect(Date.parse(deleted?.time ?? '')).toBeLessThanOrEqual(seen404);
});

describe('what cannot be is refused with a sentence', () => {
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
      'one of a prohibited pattern',
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
      'other letters',
      '{vmname: "vm sample"}',
      'spec.vmname: Invalid value: "vm sample": a vmname is 1 to 63 characters',
    ],
    [
      'a name of one dot',
      '{vmname: "."}',
      'a vmname is not "." or "..": it needs at least one other character',
    ],
    ['a name of two dots', '{vmname: ".."}', 'a vmname is not "." or ".."'],
    ['no name', '{}', 'spec.vmname: Required value'],
  ])('%s', async (_, spec, sentence) => {
    expect(await it.refused(manifest('refused', spec))).toContain(sentence);
  });

  test('a name that another machine has', async () => {
    await it.vm('first', 'vmtaken');
    await it.until('first', isRunning);
    expect(await it.refused(manifest('second', '{vmname: vmtaken}'))).toContain(
      `${DENIED}The name "vmtaken" is already used by the VM "first" in this namespace. Choose another vmname, or delete that VM`,
    );
  });

  test('a name that is changed', async () => {
    await it.vm('unchanged', 'vmunchanged');
    expect(await it.refused(manifest('unchanged', '{vmname: vmother}'))).toContain(
      'spec.vmname: Invalid value: "vmother": the vmname of a machine cannot be changed; create another VM',
    );
  });

  test('any name while the cloud cannot be asked', async () => {
    it.cloud.part.pause();
    try {
      expect(await it.refused(manifest('unasked', '{vmname: vmunasked}'))).toContain(
        `${DENIED}The vmname "vmunasked" could not be checked. The cloud does not answer. Try again later`,
      );
    } finally {
      it.cloud.part.resume();
    }
  });
});

test('a name that is prohibited after the object was let in is told and not created, until the prohibition is lifted', async () => {
  {
    await using _ = await failingCreates();
    await it.vm('late', 'vmlate');
    await it.until(
      'late',
      (vm) => status(vm, 'opStatus') === 'Unknown' && condition(vm, 'NameAccepted') === 'True',
    );
    await it.cloud.prohibit('vmforbidden it is the name of a river', 'bad-*', 'vmlate');
    await expect.poll(() => answerAbout('vmlate')).toBe('PROHIBITED_NAME'); // the cloud has read it
  }
  const told = await it.until('late', (vm) => condition(vm, 'NameAccepted') === 'False');
  expect(status(told, 'msg')).toBe('The name "vmlate" is prohibited. Choose another name.');
  expect((await it.servers()).map(({ name }) => name)).not.toContain('vmlate');
  await it.cloud.prohibit('vmforbidden it is the name of a river', 'bad-*');
  await expect.poll(() => answerAbout('vmlate')).toBe('free');
  // Asked again after five minutes, or when somebody touches it.
  await it.kubectl('annotate', 'vms.samplecontroller.k8s.io', 'late', 'touched=yes');
  await it.until('late', isRunning);
});

const answerAbout = (name: string) =>
  it.client.check(name).then(
    () => 'free',
    (error: CloudError) => error.code,
  );

/** The cloud fails all creates until it is disposed of. */
async function failingCreates(): Promise<AsyncDisposable> {
  const faults = { errorRate: 1, routes: ['createServer'], seed: 1 };
  const answer = await it.cloud.fetch('/faults', { method: 'PUT', body: JSON.stringify(faults) });
  expect(answer.status).toBeLessThan(300);
  return { [Symbol.asyncDispose]: async () => void (await it.cloud.fetch('/faults', { method: 'DELETE' })) };
}

test('while the cloud is down an object that is deleted stays and says why; it goes when the cloud is back', async () => {
  await it.vm('stays', 'vmstays');
  const { metadata } = await it.until('stays', isRunning);
  await it.cloud.part.kill();
  await it.kubectl('delete', '--wait=false', 'vms.samplecontroller.k8s.io', 'stays');
  const told = await it.until('stays', (vm) => condition(vm, 'Ready') === 'Unknown');
  expect(status(told, 'msg')).toBe(
    'Waiting to delete the machine. The cloud does not answer; retrying automatically',
  );
  expect(status(told, 'opStatus')).toBe('Deleting');
  expect(metadata.uid).toBe(told.metadata.uid);
  await it.cloud.part.start();
  await it.gone('stays');
  expect((await it.servers()).filter(({ name }) => name === 'vmstays')).toEqual([]);
});

test('a machine that vanished is told as lost, and made anew only where that is asked for', async () => {
  await it.vm('vanishes', 'vmvanishes');
  const before = status(await it.until('vanishes', isRunning), 'vmId');
  await it.client.delete(String(before));
  const lost = await it.until('vanishes', (vm) => condition(vm, 'VmLost') === 'True');
  expect(status(lost, 'vmId')).toBe(before);
  expect(status(lost, 'opStatus')).toBe('Unknown');
  expect((await it.servers()).filter(({ name }) => name === 'vmvanishes')).toEqual([]);
  await it.kubectl('annotate', 'vms.samplecontroller.k8s.io', 'vanishes', 'vmwright.dev/recreate=true');
  const again = await it.until('vanishes', isRunning);
  expect(status(again, 'vmId')).not.toBe(before);
  expect(condition(again, 'VmLost')).toBeUndefined();
});

test('a VM that is paused is left alone, and goes on when it is not any more', async () => {
  await it.vm('paused', 'vmpaused', { 'vmwright.dev/paused': 'true' });
  await it.vm('fence', 'vmfence');
  await it.until('fence', isRunning);
  expect((await it.servers()).map(({ name }) => name)).not.toContain('vmpaused');
  await it.kubectl('annotate', 'vms.samplecontroller.k8s.io', 'paused', 'vmwright.dev/paused-');
  await it.until('paused', isRunning);
});

test('a deletion policy that nobody knows deletes nothing', async () => {
  const unknown = { 'vmwright.dev/deletion-policy': 'Retain' };
  const sentence = 'the annotation vmwright.dev/deletion-policy is "Retain"; it is Delete or Orphan';
  await expect(it.vm('retained', 'vmretained', unknown)).rejects.toThrow(sentence);
  await it.vm('retained', 'vmretained');
  await it.until('retained', isRunning);
  await it.kubectl(
    'annotate',
    'vms.samplecontroller.k8s.io',
    'retained',
    'vmwright.dev/deletion-policy=Retain',
  );
  await it.kubectl('delete', '--wait=false', 'vms.samplecontroller.k8s.io', 'retained');
  await it.until('retained', (vm) => status(vm, 'msg') === `Not deleted: ${sentence}`);
  expect((await it.servers()).map(({ name }) => name)).toContain('vmretained');
  await it.kubectl('annotate', 'vms.samplecontroller.k8s.io', 'retained', 'vmwright.dev/deletion-policy-');
  await it.gone('retained');
});

test('a machine whose marks were taken off gets them back', async () => {
  await it.vm('unmarked', 'vmunmarked');
  const { id = '', labels = {} } = (await untilServer('vmunmarked')) ?? {};
  await it.until('unmarked', isRunning);
  await it.client.relabel(id, { 'vmwright.dev/cluster': null });
  await expect.poll(async () => (await it.client.get(id)).labels, { timeout: 30_000 }).toEqual(labels);
});

const untilServer = async (name: string) => {
  await it.until(name.replace(/^vm/, ''), isRunning);
  return (await it.servers()).find((server) => server.name === name);
};

test('while the cloud is away machines are told as unknown, and as running when it is back', async () => {
  await it.vm('keyless', 'vmkeyless');
  await it.until('keyless', isRunning);
  await it.cloud.part.kill();
  const told = await it.until('keyless', (vm) => status(vm, 'opStatus') === 'Unknown');
  expect([condition(told, 'Ready'), reasonOf(told)]).toEqual(['Unknown', 'CloudUnreachable']);
  await it.cloud.part.start();
  await it.until('keyless', isRunning);
});

test('a VM that is let go leaves its machine, which is nobody’s then', async () => {
  await it.vm('orphan', 'vmorphan', { 'vmwright.dev/deletion-policy': 'Orphan' });
  const vmId = status(await it.until('orphan', isRunning), 'vmId');
  await it.kubectl('delete', 'vms.samplecontroller.k8s.io', 'orphan');
  const [server] = (await it.servers()).filter(({ id }) => id === vmId);
  expect(server).toMatchObject({ state: 'running', labels: {} });
});
