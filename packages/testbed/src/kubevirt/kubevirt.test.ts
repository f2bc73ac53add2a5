import { expect } from 'vitest';
import { field } from '../kubernetes/api.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { test } from '../vitest/index.ts';

test('a machine runs and stops by the hand of virt-controller', async ({ kubevirt, namespace }) => {
  using seen = await follow(kubevirt, namespace, 'plain');
  await kubevirt.apply(machine(namespace, 'plain'));
  await seen.reaches('Running');
  const instances = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstances`;
  const instance = await kubevirt.api.get(`${instances}/plain`);
  expect(field(instance, 'status', 'nodeName')).toMatch(/^kubevirt-\d$/);

  await setRunStrategy(kubevirt, namespace, 'plain', 'Halted');
  await kubevirt.waitForGone(`${instances}/plain`);
  await seen.reaches('Stopped');
  const from = seen.statuses.indexOf('Starting');
  expect(seen.statuses.slice(from)).toEqual(['Starting', 'Running', 'Stopping', 'Stopped']);
});

test('a machine on a data volume waits for its volume', async ({ kubevirt, namespace }) => {
  using seen = await follow(kubevirt, namespace, 'on-volume');
  await kubevirt.apply(machine(namespace, 'on-volume', { import: 'hang' }));
  const volume = `/apis/cdi.kubevirt.io/v1beta1/namespaces/${namespace}/datavolumes/on-volume-root`;
  await kubevirt.waitFor(volume, (object) => field(object, 'status', 'phase') === 'ImportInProgress');
  await seen.reaches('Provisioning');

  await kubevirt.api.merge(volume, { metadata: { annotations: { 'testbed.vmwright.dev/import': null } } });
  await seen.reaches('Running');
  // On the way from one to the next, virt-controller may say Stopped for a moment.
  const lasting = seen.statuses.filter((each) => each !== 'Stopped');
  expect(lasting).toEqual(['Provisioning', 'Starting', 'Running']);
});

test('a claim whose storage waits for its consumer gets its volume where the machine goes', async ({
  kubevirt,
  namespace,
}) => {
  await kubevirt.apply(machine(namespace, 'late-bound', { storageClass: 'wait-for-first-consumer' }));
  await status(kubevirt, namespace, 'late-bound', 'Running');
});

test('a failing import shows as DataVolumeError', async ({ kubevirt, namespace }) => {
  await kubevirt.apply(machine(namespace, 'failing', { import: 'fail' }));
  await status(kubevirt, namespace, 'failing', 'DataVolumeError');
});

test('an import from an address that is not there restarts and says so', async ({ kubevirt, namespace }) => {
  await kubevirt.apply(machine(namespace, 'nowhere', { import: '404' }));
  const volume = `/apis/cdi.kubevirt.io/v1beta1/namespaces/${namespace}/datavolumes/nowhere-root`;
  const seen = await kubevirt.waitFor(volume, (object) => field(object, 'status', 'restartCount') === 2);
  expect(JSON.stringify(field(seen, 'status', 'conditions'))).toContain('404 Not Found');
});

test('a guest that dies while it boots shows as CrashLoopBackOff', async ({ kubevirt, namespace }) => {
  await kubevirt.apply(machine(namespace, 'crashing', { annotations: { boot: 'crash' } }));
  await status(kubevirt, namespace, 'crashing', 'CrashLoopBackOff');
});

test('a guest boots as slowly as told, and can shut itself down', async ({ kubevirt, namespace }) => {
  await kubevirt.apply(
    machine(namespace, 'slow', { runStrategy: 'RerunOnFailure', annotations: { 'boot-time': '2s' } }),
  );
  await status(kubevirt, namespace, 'slow', 'Starting');
  await status(kubevirt, namespace, 'slow', 'Running');
  const instance = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstances/slow`;
  await kubevirt.api.merge(instance, {
    metadata: { annotations: { 'testbed.vmwright.dev/guest': 'poweroff' } },
  });
  await status(kubevirt, namespace, 'slow', 'Stopped');
});

test('a guest that hangs while it boots stays Starting', async ({ kubevirt, namespace }) => {
  await kubevirt.apply(machine(namespace, 'hanging', { annotations: { boot: 'hang' } }));
  const instance = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstances/hanging`;
  await kubevirt.waitFor(instance, (object) => field(object, 'status', 'phase') === 'Scheduled');
  await status(kubevirt, namespace, 'hanging', 'Starting');
});

test('an import can be slow, and a volume that cannot be claimed says why', async ({
  kubevirt,
  namespace,
}) => {
  const volumes = `/apis/cdi.kubevirt.io/v1beta1/namespaces/${namespace}/datavolumes`;
  const volume = (name: string, storage: object, annotations: object) => ({
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { name, annotations },
    spec: { source: { http: { url: 'http://images.example/disk.img' } }, storage },
  });
  await kubevirt.api.create(volumes, volume('unclaimable', {}, {}));
  const refused = await kubevirt.waitFor(`${volumes}/unclaimable`, (object) =>
    JSON.stringify(field(object, 'status', 'conditions') ?? '').includes('ErrClaimNotValid'),
  );
  expect(JSON.stringify(refused)).toContain('spec.resources');

  const slow = volume(
    'slow',
    { resources: { requests: { storage: '1Gi' } } },
    { 'testbed.vmwright.dev/import': 'slow' },
  );
  await kubevirt.api.create(volumes, slow);
  for (const progress of ['0.0%', '25.4%', '61.0%']) {
    await kubevirt.waitFor(`${volumes}/slow`, (object) => field(object, 'status', 'progress') === progress);
  }
  await kubevirt.api.merge(`${volumes}/slow`, {
    metadata: { annotations: { 'testbed.vmwright.dev/import': null } },
  });
  await kubevirt.waitFor(`${volumes}/slow`, (object) => field(object, 'status', 'phase') === 'Succeeded');
});

test('virt-api refuses a machine that KubeVirt cannot run', async ({ kubevirt, namespace }) => {
  const input = machine(namespace, 'refused').replace(
    '"volumes":[{"name":"root"',
    '"volumes":[{"name":"other"',
  );
  const answer = await kubevirt.tryKubectl(['apply', '-f', '-'], { input });
  expect(answer.code).toBe(1);
  expect(answer.stderr).toContain("disks[0].Name 'root' not found");
});

test('virt-api starts a machine by its own verb', async ({ kubevirt, namespace }) => {
  await kubevirt.apply(machine(namespace, 'by-verb', { runStrategy: 'Halted' }));
  await status(kubevirt, namespace, 'by-verb', 'Stopped');
  const verbs = `/apis/subresources.kubevirt.io/v1/namespaces/${namespace}/virtualmachines/by-verb`;
  await kubevirt.kubectl(['replace', '--raw', `${verbs}/start`, '-f', '-'], { input: '{}' });
  await status(kubevirt, namespace, 'by-verb', 'Running');
});

test('snapshots become ready, or fail as told', async ({ kubevirt, namespace }) => {
  const snapshots = `/apis/snapshot.storage.k8s.io/v1/namespaces/${namespace}/volumesnapshots`;
  const snapshot = (name: string, annotations: object) => ({
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name, annotations },
    spec: { volumeSnapshotClassName: 'testbed', source: { persistentVolumeClaimName: 'snapped-root' } },
  });
  await kubevirt.api.create(snapshots, snapshot('good', {}));
  await kubevirt.api.create(snapshots, snapshot('slow', { 'testbed.vmwright.dev/snapshot-time': '1s' }));
  await kubevirt.api.create(snapshots, snapshot('bad', { 'testbed.vmwright.dev/snapshot': 'fail' }));
  await kubevirt.waitFor(`${snapshots}/good`, (object) => field(object, 'status', 'readyToUse') === true);
  await kubevirt.waitFor(`${snapshots}/slow`, (object) => field(object, 'status', 'readyToUse') === true);
  const bad = await kubevirt.waitFor(
    `${snapshots}/bad`,
    (object) => field(object, 'status', 'error') !== undefined,
  );
  expect(field(bad, 'status', 'readyToUse')).toBe(false);
});

interface MachineOptions {
  readonly runStrategy?: string;
  /** How the import of its volume goes; without, and without a storage class, it has none. */
  readonly import?: 'hang' | 'fail' | '404';
  readonly storageClass?: string;
  /** On its template, without their prefix. */
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

async function status(cluster: Cluster, namespace: string, name: string, wanted: string): Promise<void> {
  const path = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines/${name}`;
  await cluster.waitFor(path, (machine) => field(machine, 'status', 'printableStatus') === wanted);
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

/** The different values of `printableStatus` that a machine goes through. */
async function follow(cluster: Cluster, namespace: string, name: string) {
  const statuses: string[] = [];
  const stop = new AbortController();
  // From before the machine, however late the watch begins: no state is missed.
  const { metadata } = await cluster.api.get(`/api/v1/namespaces/${namespace}`);
  const query = `fieldSelector=metadata.name%3D${name}&resourceVersion=${metadata.resourceVersion}`;
  const path = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines?${query}`;
  const events = cluster.api.watch(path, stop.signal);
  return {
    statuses,
    /** Waits until it is in this state. */
    reaches: async (wanted: string) => {
      while (statuses.at(-1) !== wanted) {
        const { value, done } = await events.next();
        if (done) throw new Error(`the watch ended; seen until then: ${statuses.join(', ')}`);
        const now = field(value.object, 'status', 'printableStatus');
        if (typeof now === 'string' && statuses.at(-1) !== now) statuses.push(now);
      }
    },
    [Symbol.dispose]: () => stop.abort(),
  };
}
