import { expect } from 'vitest';
import { field } from '../kubernetes/api.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { test } from '../vitest/index.ts';

test('virt-controller starts and stops a machine', async ({ kubevirt, namespace }) => {
  using observed = await observeStatus(kubevirt, namespace, 'plain');
  await kubevirt.apply(machine(namespace, 'plain'));
  await observed.reaches('Running');
  const instances = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstances`;
  const instance = await kubevirt.api.get(`${instances}/plain`);
  expect(field(instance, 'status', 'nodeName')).toMatch(/^kubevirt-\d$/);

  await setRunStrategy(kubevirt, namespace, 'plain', 'Halted');
  await kubevirt.waitForGone(`${instances}/plain`);
  await observed.reaches('Stopped');
  // A busy virt-controller may skip Starting or Stopping. The comparison leaves out the statuses before the start
  // (Stopped, Provisioning).
  const from = observed.statuses.findIndex((each) => each === 'Starting' || each === 'Running');
  expect(inOrder(observed.statuses.slice(from), ['Starting', 'Running', 'Stopping', 'Stopped'])).toBe(true);
});

test('a machine with a data volume is Provisioning until the import is done', async ({
  kubevirt,
  namespace,
}) => {
  using observed = await observeStatus(kubevirt, namespace, 'on-volume');
  await kubevirt.apply(machine(namespace, 'on-volume', { import: 'hang' }));
  const volume = `/apis/cdi.kubevirt.io/v1beta1/namespaces/${namespace}/datavolumes/on-volume-root`;
  await kubevirt.waitFor(volume, (object) => field(object, 'status', 'phase') === 'ImportInProgress');
  await observed.reaches('Provisioning');

  await kubevirt.api.merge(volume, { metadata: { annotations: { 'testbed.vmwright.dev/import': null } } });
  await observed.reaches('Running');
  // Between two states, virt-controller may report Stopped for a moment.
  const withoutStopped = observed.statuses.filter((each) => each !== 'Stopped');
  expect(inOrder(withoutStopped, ['Provisioning', 'Starting', 'Running'])).toBe(true);
});

test('a machine runs on storage with the binding mode WaitForFirstConsumer', async ({
  kubevirt,
  namespace,
}) => {
  await kubevirt.apply(machine(namespace, 'late-bound', { storageClass: 'wait-for-first-consumer' }));
  await waitForStatus(kubevirt, namespace, 'late-bound', 'Running');
});

test('a failed import is reported as DataVolumeError', async ({ kubevirt, namespace }) => {
  await kubevirt.apply(machine(namespace, 'failing', { import: 'fail' }));
  await waitForStatus(kubevirt, namespace, 'failing', 'DataVolumeError');
});

test('a guest that crashes during boot is reported as CrashLoopBackOff', async ({ kubevirt, namespace }) => {
  await kubevirt.apply(machine(namespace, 'crashing', { annotations: { boot: 'crash' } }));
  await waitForStatus(kubevirt, namespace, 'crashing', 'CrashLoopBackOff');
});

test('a machine is Starting during the configured boot time, then Running', async ({
  kubevirt,
  namespace,
}) => {
  using observed = await observeStatus(kubevirt, namespace, 'slow');
  await kubevirt.apply(machine(namespace, 'slow', { annotations: { 'boot-time': '2s' } }));
  await observed.reaches('Starting');
  await observed.reaches('Running');
});

test('a machine with RerunOnFailure is Stopped after its guest powers itself off', async ({
  kubevirt,
  namespace,
}) => {
  await kubevirt.apply(machine(namespace, 'self-stopping', { runStrategy: 'RerunOnFailure' }));
  await waitForStatus(kubevirt, namespace, 'self-stopping', 'Running');
  const instance = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstances/self-stopping`;
  await kubevirt.api.merge(instance, {
    metadata: { annotations: { 'testbed.vmwright.dev/guest': 'poweroff' } },
  });
  await waitForStatus(kubevirt, namespace, 'self-stopping', 'Stopped');
});

test('a machine stays Starting while its guest hangs during boot', async ({ kubevirt, namespace }) => {
  await kubevirt.apply(machine(namespace, 'hanging', { annotations: { boot: 'hang' } }));
  const instance = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstances/hanging`;
  await kubevirt.waitFor(instance, (object) => field(object, 'status', 'phase') === 'Scheduled');
  await waitForStatus(kubevirt, namespace, 'hanging', 'Starting');
});

test('virt-api rejects an invalid machine', async ({ kubevirt, namespace }) => {
  const input = machine(namespace, 'rejected').replace(
    '"volumes":[{"name":"root"',
    '"volumes":[{"name":"other"',
  );
  const result = await kubevirt.tryKubectl(['apply', '-f', '-'], { input });
  expect(result.code).toBe(1);
  expect(result.stderr).toContain("disks[0].Name 'root' not found");
});

test('the start subresource of virt-api starts a machine', async ({ kubevirt, namespace }) => {
  await kubevirt.apply(machine(namespace, 'by-verb', { runStrategy: 'Halted' }));
  await waitForStatus(kubevirt, namespace, 'by-verb', 'Stopped');
  const verbs = `/apis/subresources.kubevirt.io/v1/namespaces/${namespace}/virtualmachines/by-verb`;
  await kubevirt.kubectl(['replace', '--raw', `${verbs}/start`, '-f', '-'], { input: '{}' });
  await waitForStatus(kubevirt, namespace, 'by-verb', 'Running');
});

interface MachineOptions {
  readonly runStrategy?: string;
  /** Behaviour of the import. The machine has a data volume only if `import` or `storageClass` is set. */
  readonly import?: 'hang' | 'fail';
  readonly storageClass?: string;
  /** Annotations of the template, without the prefix `testbed.vmwright.dev/`. */
  readonly annotations?: Readonly<Record<string, string>>;
}

function machine(namespace: string, name: string, options: MachineOptions = {}): string {
  const { runStrategy = 'Always', storageClass, annotations = {} } = options;
  const prefixed = Object.entries(annotations).map(([key, value]) => [`testbed.vmwright.dev/${key}`, value]);
  const onVolume = options.import !== undefined || storageClass !== undefined;
  const dataVolume = {
    metadata: {
      name: `${name}-root`,
      annotations: options.import === undefined ? {} : { 'testbed.vmwright.dev/import': options.import },
    },
    spec: {
      source: { http: { url: 'http://images.example/disk.img' } },
      storage: {
        resources: { requests: { storage: '1Gi' } },
        ...(storageClass && { storageClassName: storageClass }),
      },
    },
  };
  const root = onVolume
    ? { dataVolume: { name: `${name}-root` } }
    : { containerDisk: { image: 'testbed/disk' } };
  return JSON.stringify({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace },
    spec: {
      runStrategy,
      dataVolumeTemplates: onVolume ? [dataVolume] : [],
      template: {
        metadata: { annotations: Object.fromEntries(prefixed) },
        spec: {
          domain: {
            memory: { guest: '1Gi' },
            devices: {
              disks: [{ name: 'root', disk: { bus: 'virtio' } }],
              interfaces: [{ name: 'default', masquerade: {} }],
            },
          },
          networks: [{ name: 'default', pod: {} }],
          volumes: [{ name: 'root', ...root }],
        },
      },
    },
  });
}

async function waitForStatus(
  cluster: Cluster,
  namespace: string,
  name: string,
  expected: string,
): Promise<void> {
  const path = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines/${name}`;
  await cluster.waitFor(path, (machine) => field(machine, 'status', 'printableStatus') === expected);
}

async function setRunStrategy(
  cluster: Cluster,
  namespace: string,
  name: string,
  runStrategy: string,
): Promise<void> {
  await cluster.api.merge(`/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines/${name}`, {
    spec: { runStrategy },
  });
}

/** Returns whether the statuses are some or all of the expected ones, in the expected order. */
function inOrder(statuses: readonly string[], expected: readonly string[]): boolean {
  return statuses.join() === expected.filter((each) => statuses.includes(each)).join();
}

/** Records the values of `printableStatus` that a machine goes through. */
async function observeStatus(cluster: Cluster, namespace: string, name: string) {
  const statuses: string[] = [];
  const stop = new AbortController();
  // The watch begins at the resource version of this write. The machine is created later, so the watch misses no state.
  // The API server's watch cache still contains this version.
  const { metadata } = await cluster.api.merge(`/api/v1/namespaces/${namespace}`, {
    metadata: { annotations: { 'testbed.vmwright.dev/observed': name } },
  });
  const query = `fieldSelector=metadata.name%3D${name}&resourceVersion=${metadata.resourceVersion}`;
  const path = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines?${query}`;
  const events = cluster.api.watch(path, stop.signal);
  return {
    statuses,
    /** Waits until the machine has this status. */
    reaches: async (expected: string) => {
      while (statuses.at(-1) !== expected) {
        const { value, done } = await events.next();
        if (done) throw new Error(`the watch ended; statuses until then: ${statuses.join(', ')}`);
        const now = field(value.object, 'status', 'printableStatus');
        if (typeof now === 'string' && statuses.at(-1) !== now) statuses.push(now);
      }
    },
    [Symbol.dispose]: () => stop.abort(),
  };
}
