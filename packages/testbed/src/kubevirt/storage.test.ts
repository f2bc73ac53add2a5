import { describe, expect } from 'vitest';
import { Api, field, type KubeObject } from '../kubernetes/api.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { readKubeconfig } from '../kubernetes/kubeconfig.ts';
import { test } from '../vitest/index.ts';

const CDI = '/apis/cdi.kubevirt.io/v1beta1';
const SNAPSHOTS = '/apis/snapshot.storage.k8s.io/v1';

describe('imports', () => {
  test('an import reports its progress', async ({ kubevirt, namespace }) => {
    const url = 'http://images.example/slow/disk.img';
    const volumes = await historyOfImport(kubevirt, namespace, 'slow', url);
    const reported = new Set(volumes.map((volume) => field(volume, 'status', 'progress')));
    const expected = ['0.0%', '25.4%', '61.0%'];
    expect([...reported].filter((progress) => expected.includes(String(progress)))).toEqual(expected);
  });

  test('an import reports the reason if its claim is invalid', async ({ kubevirt, namespace }) => {
    const path = `${CDI}/namespaces/${namespace}/datavolumes`;
    const source = { http: { url: 'http://images.example/disk.img' } };
    await kubevirt.api.create(path, dataVolume('invalid-claim', source, { storage: {} }));
    const rejected = await kubevirt.waitFor(
      `${path}/invalid-claim`,
      (volume) => conditionOf(volume, 'Bound')?.reason === 'ErrClaimNotValid',
    );
    expect(conditionOf(rejected, 'Bound')?.message).toContain('spec.resources');
  });

  test('an import succeeds after three restarts if the importer fails three times', async ({
    kubevirt,
    namespace,
  }) => {
    const url = 'http://images.example/fail-3-times/disk.img';
    const volumes = await historyOfImport(kubevirt, namespace, 'flaky', url);
    const crashes = volumes
      .map((volume) => conditionOf(volume, 'Running'))
      .filter((its) => its?.reason === 'Error');
    expect(crashes.length).toBeGreaterThan(0);
    for (const crash of crashes) expect(crash?.message).toBe('Unable to process data: unexpected EOF');
    expect(field(volumes.at(-1), 'status', 'restartCount')).toBe(3);
  });

  test.for<readonly [string, string]>([
    ['missing', 'expected status code 200, got 404. Status: 404 Not Found'],
    ['forbidden', 'expected status code 200, got 403. Status: 403 Forbidden'],
    ['s3-missing', 'NoSuchKey: The specified key does not exist.'],
    ['checksum', 'Unable to process data: checksum mismatch: expected sha256:'],
  ])(
    'an import with the behaviour %s restarts forever and reports the cause',
    async ([behaviour, message], { kubevirt, namespace }) => {
      const url = `https://store.test/behaviour/${behaviour}/disk.img`;
      const path = await importFrom(kubevirt, namespace, `broken-${behaviour}`, url);
      const crashed = await kubevirt.waitFor(
        path,
        (volume) =>
          Number(field(volume, 'status', 'restartCount')) >= 2 &&
          conditionOf(volume, 'Running')?.reason === 'Error',
      );
      expect(conditionOf(crashed, 'Running')?.message).toContain(message);
      expect(field(crashed, 'status', 'phase')).toBe('ImportInProgress');
      await kubevirt.api.delete(path);
      await kubevirt.waitForGone(path);
    },
  );

  test('an import with the behaviour fail-once fails for the first DataVolume and succeeds for the next', async ({
    kubevirt,
    namespace,
  }) => {
    const url = `http://images.example/fail-once/${namespace}/disk.img`;
    const first = await importFrom(kubevirt, namespace, 'first', url);
    await kubevirt.waitFor(first, (volume) => field(volume, 'status', 'phase') === 'Failed');
    const second = await importFrom(kubevirt, namespace, 'second', url);
    await kubevirt.waitFor(second, succeeded);
  });

  test('the claim of an import with the behaviour unbound stays pending, and a new import can use the name after the deletion', async ({
    kubevirt,
    namespace,
  }) => {
    const path = await importFrom(kubevirt, namespace, 'unbound', 'http://images.example/unbound/disk.img');
    const pending = await kubevirt.waitFor(path, (volume) => conditionOf(volume, 'Bound') !== undefined);
    expect(conditionOf(pending, 'Bound')?.message).toBe('PVC unbound Pending');
    await kubevirt.api.delete(path);
    await kubevirt.waitForGone(path);
    await importFrom(kubevirt, namespace, 'unbound', 'http://images.example/404/disk.img');
    await kubevirt.waitFor(path, succeeded);
  });
});

describe('snapshots', () => {
  test('a snapshot becomes ready when its claim is bound', async ({ kubevirt, namespace }) => {
    const path = await takeSnapshot(kubevirt, namespace, 'early', { claim: 'later' });
    const waiting = await kubevirt.waitFor(
      path,
      (snapshot) => field(snapshot, 'status', 'error') !== undefined,
    );
    expect(field(waiting, 'status', 'error', 'message')).toContain('failed to retrieve PVC later');
    expect(field(waiting, 'status', 'readyToUse')).toBe(false);
    await importFrom(kubevirt, namespace, 'later', 'http://images.example/disk.img');
    const ready = await kubevirt.waitFor(path, isReady);
    expect(field(ready, 'status', 'restoreSize')).toBe('1Gi');
    expect(field(ready, 'status', 'error')).toBeUndefined();
  });

  test('a snapshot does not become ready if its class fails, hangs or does not exist', async ({
    kubevirt,
    namespace,
  }) => {
    const volume = await importFrom(kubevirt, namespace, 'snapped', 'http://images.example/disk.img');
    await kubevirt.waitFor(volume, succeeded);
    const options = { claim: 'snapped' };
    const bad = await takeSnapshot(kubevirt, namespace, 'bad', { ...options, class: 'testbed-fail' });
    const never = await takeSnapshot(kubevirt, namespace, 'never', {
      ...options,
      class: 'testbed-never-ready',
    });
    const unknown = await takeSnapshot(kubevirt, namespace, 'unknown', { ...options, class: 'nowhere' });
    const good = await takeSnapshot(kubevirt, namespace, 'good', options);
    const failed = await kubevirt.waitFor(
      bad,
      (snapshot) => field(snapshot, 'status', 'error') !== undefined,
    );
    expect(field(failed, 'status', 'error', 'message')).toBe('no space left for snapshots');
    const classless = await kubevirt.waitFor(
      unknown,
      (snapshot) => field(snapshot, 'status', 'error') !== undefined,
    );
    expect(field(classless, 'status', 'error', 'message')).toContain(
      'failed to retrieve snapshot class nowhere',
    );
    await kubevirt.waitFor(good, isReady);
    await kubevirt.waitFor(never, (snapshot) => field(snapshot, 'status', 'readyToUse') !== undefined);
    expect(field(await kubevirt.api.get(never), 'status', 'readyToUse')).toBe(false);
  });
});

describe('clones of snapshots', () => {
  test('a clone waits until its snapshot exists, and reports an error if the snapshot is deleted during the cloning', async ({
    kubevirt,
    namespace,
  }) => {
    const origin = await importFrom(kubevirt, namespace, 'origin', 'http://images.example/disk.img');
    await kubevirt.waitFor(origin, succeeded);
    const path = `${CDI}/namespaces/${namespace}/datavolumes`;
    const source = { snapshot: { namespace, name: 'origin-1' } };
    await kubevirt.api.create(path, dataVolume('cloned', source));
    const clone = `${path}/cloned`;
    const waiting = await kubevirt.waitFor(clone, (volume) => phaseOf(volume) === 'CloneScheduled');
    expect(conditionOf(waiting, 'Running')?.message).toBe('Clone Pending');

    const snapshot = await takeSnapshot(kubevirt, namespace, 'origin-1', { claim: 'origin', clone: 'hang' });
    await kubevirt.waitFor(clone, (volume) => phaseOf(volume) === 'CloneFromSnapshotSourceInProgress');
    await kubevirt.waitFor(snapshot, isReady);
    await kubevirt.api.delete(snapshot);
    const failed = await kubevirt.waitFor(
      clone,
      (volume) => conditionOf(volume, 'Running')?.reason === 'Error',
    );
    expect(conditionOf(failed, 'Running')?.message).toBe('source snapshot does not exist');
    const events = await kubevirt.api.list(`/api/v1/namespaces/${namespace}/events`);
    expect(events.map((event) => event.message)).toContain("The source snapshot origin-1 doesn't exist");

    await takeSnapshot(kubevirt, namespace, 'origin-1', { claim: 'origin' });
    await kubevirt.waitFor(clone, succeeded);
  });

  test('a clone of a snapshot needs the permission to create datavolumes/source in the namespace of the snapshot', async ({
    kubevirt,
    namespace,
  }) => {
    await using other = await kubevirt.namespace('clone-source');
    const account = { namespace, name: 'cloner' };
    await kubevirt.kubectl(['create', '-n', namespace, 'serviceaccount', account.name]);
    const subject = `--serviceaccount=${namespace}:${account.name}`;
    await allow(kubevirt, namespace, 'datavolumes.cdi.kubevirt.io', subject);
    await using api = new Api(await readKubeconfig(await kubevirt.kubeconfigFor(account)));
    const create = (name: string, sourceNamespace: string) =>
      api.create(
        `${CDI}/namespaces/${namespace}/datavolumes`,
        dataVolume(name, { snapshot: { namespace: sourceNamespace, name: 'any' } }),
      );
    // Retries, because the API server's authorizer reads RBAC from a cache.
    await expect
      .poll(() => create('same-namespace', namespace).then(({ metadata }) => metadata.name, String))
      .toBe('same-namespace');
    await expect(create('foreign', other.name)).rejects.toThrow(
      `User system:serviceaccount:${namespace}:cloner has insufficient permissions in clone source namespace ${other.name}`,
    );
    await allow(kubevirt, other.name, 'datavolumes.cdi.kubevirt.io/source', subject);
    await expect
      .poll(() => create('foreign', other.name).then(({ metadata }) => metadata.name))
      .toBe('foreign');
  });
});

test('a claim grows if its class allows expansion; otherwise, the API server rejects the larger size', async ({
  kubevirt,
  namespace,
}) => {
  const claims = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
  const grown = { spec: { resources: { requests: { storage: '2Gi' } } } };
  const source = { blank: {} };
  const path = `${CDI}/namespaces/${namespace}/datavolumes`;
  for (const storageClassName of ['gp3', 'immediate']) {
    const storage = { resources: { requests: { storage: '1Gi' } }, storageClassName };
    await kubevirt.api.create(path, dataVolume(`grows-${storageClassName}`, source, { storage }));
    await kubevirt.waitFor(`${path}/grows-${storageClassName}`, succeeded);
  }
  await kubevirt.api.merge(`${claims}/grows-gp3`, grown);
  await kubevirt.waitFor(
    `${claims}/grows-gp3`,
    (claim) => field(claim, 'status', 'capacity', 'storage') === '2Gi',
  );
  await expect(kubevirt.api.merge(`${claims}/grows-immediate`, grown)).rejects.toThrow('must support resize');
});

function dataVolume(
  name: string,
  source: object,
  spec: object = { storage: { resources: { requests: { storage: '1Gi' } } } },
): object {
  const annotations = { 'cdi.kubevirt.io/storage.bind.immediate.requested': 'true' };
  const metadata = { name, annotations };
  return { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', metadata, spec: { source, ...spec } };
}

/** Creates a DataVolume. @returns its path */
async function importFrom(cluster: Cluster, namespace: string, name: string, url: string): Promise<string> {
  const path = `${CDI}/namespaces/${namespace}/datavolumes`;
  await cluster.api.create(path, dataVolume(name, { http: { url } }));
  return `${path}/${name}`;
}

/** Creates a DataVolume. @returns all its versions until the import has succeeded */
async function historyOfImport(
  cluster: Cluster,
  namespace: string,
  name: string,
  url: string,
): Promise<readonly KubeObject[]> {
  const path = `${CDI}/namespaces/${namespace}/datavolumes`;
  const created = await cluster.api.create(path, dataVolume(name, { http: { url } }));
  const versions = [created];
  const query = `fieldSelector=metadata.name%3D${name}&resourceVersion=${created.metadata.resourceVersion}`;
  for await (const { object } of cluster.api.watch(`${path}?${query}`, AbortSignal.timeout(80_000))) {
    versions.push(object);
    if (succeeded(object)) return versions;
  }
  throw new Error(`the watch ended; last state: ${JSON.stringify(versions.at(-1))}`);
}

interface SnapshotOptions {
  readonly claim: string;
  /** VolumeSnapshotClass. @default the default class */
  readonly class?: string;
  /** Behaviour of clones of the snapshot. */
  readonly clone?: 'hang';
}

/** Creates a VolumeSnapshot. @returns its path */
async function takeSnapshot(
  cluster: Cluster,
  namespace: string,
  name: string,
  options: SnapshotOptions,
): Promise<string> {
  const path = `${SNAPSHOTS}/namespaces/${namespace}/volumesnapshots`;
  const annotations = options.clone === undefined ? {} : { 'testbed.vmwright.dev/clone': options.clone };
  await cluster.api.create(path, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name, annotations },
    spec: {
      source: { persistentVolumeClaimName: options.claim },
      ...(options.class !== undefined && { volumeSnapshotClassName: options.class }),
    },
  });
  return `${path}/${name}`;
}

/** Allows a service account to create a resource in a namespace. */
async function allow(cluster: Cluster, namespace: string, resource: string, subject: string): Promise<void> {
  await cluster.kubectl([
    'create',
    '-n',
    namespace,
    'role',
    'cloner',
    '--verb=create',
    `--resource=${resource}`,
  ]);
  await cluster.kubectl(['create', '-n', namespace, 'rolebinding', 'cloner', '--role=cloner', subject]);
}

function phaseOf(volume: KubeObject): unknown {
  return field(volume, 'status', 'phase');
}

function succeeded(volume: KubeObject): boolean {
  return phaseOf(volume) === 'Succeeded';
}

function isReady(snapshot: KubeObject): boolean {
  return field(snapshot, 'status', 'readyToUse') === true;
}

function conditionOf(object: KubeObject, type: string): { reason: unknown; message: unknown } | undefined {
  const conditions = field(object, 'status', 'conditions');
  const found: unknown = Array.isArray(conditions)
    ? conditions.find((each) => field(each, 'type') === type)
    : undefined;
  return found === undefined
    ? undefined
    : { reason: field(found, 'reason'), message: field(found, 'message') };
}
