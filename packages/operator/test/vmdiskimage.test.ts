import { field, type KubeObject } from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { VMDiskImage } from '../src/vmdiskimage/resource.ts';
import { SYSTEM } from './installed.ts';
import { auditLines } from './log-lines.ts';
import { untilAfter } from './object-versions.ts';
import { expectExactPermissions, permissionsFor } from './permissions.ts';
import { conditionIn, IMAGES, type WithImages, withImages } from './with-images.ts';

let env: WithImages;
beforeAll(async () => {
  env = await withImages();
}, 180_000);
afterAll(() => env?.[Symbol.asyncDispose]());

const status = (image: KubeObject, ...path: readonly string[]) => field(image, 'status', ...path);
const slots = async () => {
  const path = `/api/v1/namespaces/${SYSTEM}/configmaps/vmwright-image-syncs`;
  return Object.keys(field(await env.controlPlane.cluster.api.get(path), 'data') ?? {});
};

test('at most two of six images are synced at the same time, in the order of their creation', async () => {
  const { api } = env.controlPlane.cluster;
  const names = ['one', 'two', 'three', 'four', 'five', 'six'].map((name) => `limit-${name}`);
  const held = names.slice(0, 2);
  const volumes = '/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes';
  const stop = new AbortController();
  const active = new Set<string>();
  const started: string[] = [];
  let most = 0;
  const watching = (async () => {
    for await (const { type, object } of api.watch(volumes, stop.signal)) {
      const { name } = object.metadata;
      if (type === 'ADDED') started.push(name.replace(/-[0-9a-f]{8}-\d+$/, ''));
      if (type === 'DELETED' || status(object, 'phase') === 'Succeeded') active.delete(name);
      else active.add(name);
      most = Math.max(most, active.size);
    }
  })().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
  // The first two imports hang until all images exist.
  for (const name of names) {
    await env.create(name, held.includes(name) ? 'hang' : 'ok');
    await env.until(name, (image) => status(image, 'phase') !== undefined);
  }
  for (const name of names.slice(held.length))
    expect(conditionIn(await env.image(name), 'Ready')).toMatchObject({ reason: 'Queued' });
  for (const name of held) {
    const image = await env.until(name, (each) => status(each, 'dataVolume') !== undefined);
    await api.merge(`${volumes}/${String(status(image, 'dataVolume'))}`, {
      metadata: { annotations: { 'testbed.vmwright.dev/import': 'ok' } },
    });
  }
  const images = await Promise.all(names.map((name) => env.untilPhase(name, 'Ready')));
  await expect.poll(() => started.length).toBe(names.length);
  stop.abort();
  await watching;
  expect(most).toBe(2);
  // If two slots become free at the same time, the next two images start in any order. So the place of an image in
  // the order of starts may differ by one from its place in the order of creation.
  const startedAt = images.map((image) => String(field(image, 'status', 'attempt', 'startedAt')));
  for (const [place, time] of startedAt.entries())
    expect(Math.abs(startedAt.toSorted().indexOf(time) - place), names[place]).toBeLessThanOrEqual(1);
  expect(started.toSorted()).toEqual(names.toSorted());
  for (const image of images) {
    const [volume] = await env.children(image, 'volumes');
    expect(await env.children(image, 'snapshots')).toHaveLength(1);
    expect(volume?.metadata.name).toBe(status(image, 'dataVolume'));
    expect(conditionIn(image, 'Ready')).toMatchObject({ status: 'True', observedGeneration: 1 });
    expect(status(image, 'progress')).toBe(100);
  }
  await expect.poll(slots).toEqual([]);
  await expect.poll(() => env.events('limit-one')).toContain('Synced');
  const metrics = () => env.metrics(env.operator);
  await expect.poll(metrics).toMatch(/^vmwright_image_syncs 0$/m);
  await expect.poll(metrics).toMatch(/^vmwright_image_sync_queue 0$/m);
  expect(await env.kubectl('get', 'vmdi', 'limit-one')).toMatch(/limit-one +Ready +100 +0 +1Gi/);
});

describe('imports that cannot succeed', () => {
  test.each([
    ['missing', 'SourceMissing', {}],
    ['forbidden', 'SourceForbidden', {}],
    ['checksum', 'ChecksumMismatch', { checksum: `sha256:${'0'.repeat(64)}` }],
  ])(
    'an import that cannot succeed (%s) stops after the first failure, and its DataVolume is deleted',
    async (behaviour, reason, spec) => {
      const name = `stop-${behaviour}`;
      await env.create(name, behaviour, spec);
      const image = await env.untilPhase(name, 'Failed');
      expect(status(image, 'failureCount')).toBe(1);
      expect(conditionIn(image, 'Stalled')).toMatchObject({ status: 'True', reason });
      await expect.poll(() => env.children(image, 'volumes')).toEqual([]);
      await expect.poll(slots).toEqual([]);
      await expect.poll(() => env.events(name)).toEqual([reason]);
    },
  );

  test('an import that has failed permanently starts again when the source is corrected', async () => {
    await env.patch('stop-missing', { spec: { url: 'http://images.example/ok/found.qcow2' } });
    const image = await env.untilPhase('stop-missing', 'Ready');
    expect(status(image, 'failureCount')).toBeUndefined();
    expect(status(image, 'attempt', 'number')).toBe(2);
  });

  test('an import that has failed permanently is retried when the retry annotation changes', async () => {
    const annotations = { 'vmwright.dev/retry': 'now' };
    const requested = await env.patch('stop-forbidden', { metadata: { annotations } });
    const image = await env.untilAfter(requested, (each) => status(each, 'attempt', 'number') === 2);
    expect([status(image, 'retryRequest'), status(image, 'phase')]).toEqual(['now', 'Syncing']);
    await env.untilAfter(image, (each) => status(each, 'phase') === 'Failed');
  });
});

test('a "404" in the name and URL of an image is not mistaken for a missing source', async () => {
  await env.create('404', 'ok', { url: 'http://images.example/404/got-404/status-404.qcow2' });
  await env.untilPhase('404', 'Ready');
});

test('an importer that fails three times and then succeeds counts as one attempt', async () => {
  await env.create('flaky', 'fail-3-times');
  const image = await env.untilPhase('flaky', 'Ready');
  expect(status(image, 'attempt', 'number')).toBe(1);
});

test('a failed import is repeated with a back-off, and each attempt has a new DataVolume', async () => {
  const created = await env.create('failing', 'fail');
  const image = await env.untilAfter(created, (each) => status(each, 'failureCount') === 2);
  expect(status(image, 'phase')).toBe('RetryableFailure');
  expect(conditionIn(image, 'Ready')).toMatchObject({ status: 'False', reason: 'ImportFailed' });
  expect(Number(status(image, 'attempt', 'number'))).toBe(2);
  await env.remove('failing');
});

test('an import with a StorageClass that does not exist is reported with the name of the class', async () => {
  const created = await env.create('classless', 'ok', { storageClass: 'absent' });
  const image = await env.untilAfter(created, isStalled);
  expect(conditionIn(image, 'Progressing')?.message).toContain('the StorageClass absent does not exist');
  await env.remove('classless');
});

const isStalled = (image: KubeObject) => conditionIn(image, 'Progressing')?.status === 'False';
const hasFailed = (image: KubeObject) => status(image, 'phase') === 'RetryableFailure';

// Concurrent to save time: both tests wait for a timeout, and the operator runs two imports at the same time.
describe.concurrent('attempts that take too long', () => {
  test('an import that hangs is reported with the phase of the importer, and fails after a timeout', async () => {
    const created = await env.create('hanging', 'hang');
    const stalled = await env.untilAfter(created, isStalled);
    expect(conditionIn(stalled, 'Progressing')).toMatchObject({ reason: 'NoProgress' });
    expect(String(conditionIn(stalled, 'Progressing')?.message)).toMatch(
      /the importer of the DataVolume default\/hanging-[0-9a-f]{8}-1 is in phase ImportInProgress/,
    );
    const image = await env.untilAfter(stalled, hasFailed);
    expect(conditionIn(image, 'Ready')).toMatchObject({ reason: 'AttemptTimeout' });
    await env.remove('hanging');
    await expect.poll(() => env.children(image, 'volumes')).toEqual([]);
  });

  test('if a snapshot is not ready before the timeout, the retry creates a new snapshot without a new import', async () => {
    const created = await env.create('unready', 'ok', { snapshotClass: 'testbed-never-ready' });
    const stalled = await env.untilAfter(created, isStalled);
    expect(conditionIn(stalled, 'Progressing')?.message).toContain('the VolumeSnapshot default/unready-');
    expect(status(stalled, 'phase')).toBe('Syncing');
    const failed = await env.untilAfter(stalled, hasFailed);
    expect(conditionIn(failed, 'Ready')).toMatchObject({ reason: 'AttemptTimeout' });
    await env.patch('unready', { spec: { snapshotClass: 'testbed' } });
    const image = await env.untilPhase('unready', 'Ready');
    expect(status(image, 'attempt', 'number')).toBe(1);
    expect(await env.children(image, 'snapshots')).toHaveLength(1);
  });
});

describe('referenced images', () => {
  beforeAll(async () => {
    await env.create('used', 'ok');
    await env.untilPhase('used', 'Ready');
    await env.createMachine('user', 'used');
    await env.until('used', (image) => status(image, 'references') === 1);
  });

  test('an image reports the objects that use it, and its deletion is rejected with their names', async () => {
    const image = await env.image('used');
    expect(status(image, 'referencedBy')).toEqual(['VirtualMachine default/user']);
    expect(status(image, 'pruneAt')).toBeUndefined();
    const rejected = await env.controlPlane.cluster.tryKubectl(['delete', 'vmdi', 'used']);
    expect(rejected.stderr).toContain(
      'The VMDiskImage default/used is used by VirtualMachine default/user. Delete this object first',
    );
  });

  test('a foreign DataVolume that clones the snapshot of an image counts as a reference to the image', async () => {
    const { cluster } = env.controlPlane;
    const snapshot = String(status(await env.image('used'), 'snapshots', '0', 'name'));
    const volumes = '/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes';
    await cluster.api.create(volumes, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { name: 'foreign' },
      spec: {
        source: { snapshot: { namespace: 'default', name: snapshot } },
        storage: { resources: { requests: { storage: '1Gi' } } },
      },
    });
    const image = await env.until('used', (each) => status(each, 'references') === 2);
    expect(status(image, 'referencedBy')).toEqual([
      'DataVolume default/foreign',
      'VirtualMachine default/user',
    ]);
    expect(status(image, 'snapshots', '0', 'clones')).toBe(1);
    await cluster.api.delete(`${volumes}/foreign`);
    await env.until('used', (each) => status(each, 'references') === 1);
  });

  test('a referenced image that is deleted while the webhook is not installed stays usable until its last reference is gone', async () => {
    const { cluster } = env.controlPlane;
    const webhooks = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/vmwright';
    const before = field(await cluster.api.get(webhooks), 'webhooks');
    await cluster.api.merge(webhooks, { webhooks: [] });
    await expect
      .poll(() => cluster.tryKubectl(['delete', 'vmdi', 'used', '--wait=false']).then(({ code }) => code))
      .toBe(0);
    await cluster.api.merge(webhooks, { webhooks: before });
    const image = await env.until('used', (each) => conditionIn(each, 'DeletionBlocked')?.status === 'True');
    expect(status(image, 'phase')).toBe('Ready');
    expect(await env.children(image, 'snapshots')).toHaveLength(1);
    await env.removeMachine('user');
    await env.gone('used');
    for (const kind of ['volumes', 'snapshots'] as const) expect(await env.children(image, kind)).toEqual([]);
    const lines = await auditLines(env.operator, 'default/used');
    expect(lines.map((line) => `${field(line, 'audit')} ${field(line, 'resource')}`)).toEqual([
      ...['create DataVolume', 'create VolumeSnapshot'],
      ...['delete VolumeSnapshot', 'delete DataVolume'],
    ]);
  });

  test('deletion of an image with the policy Orphan keeps its data, and an unknown policy is rejected', async () => {
    await env.patch('limit-two', { metadata: { annotations: { 'vmwright.dev/deletion-policy': 'Orphan' } } });
    const image = await env.image('limit-two');
    await env.remove('limit-two');
    const volume = `/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes/${String(status(image, 'dataVolume'))}`;
    const kept = await env.controlPlane.cluster.api.get(volume);
    expect(field(kept.metadata, 'ownerReferences')).toBeUndefined();
    const unknown = env.patch('limit-one', {
      metadata: { annotations: { 'vmwright.dev/deletion-policy': 'Keep' } },
    });
    await expect(unknown).rejects.toThrow('it must be Delete or Orphan');
  });
});

describe('kubectl delete', () => {
  const volumes = '/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes';

  // kube-controller-manager removes the finalizer of the propagation policy. It notices new CRDs only every 30 s, so
  // this test takes up to 30 s.
  test('kubectl delete --cascade=orphan keeps the data, and --cascade=foreground deletes it', async () => {
    for (const cascade of ['orphan', 'foreground']) {
      await env.create(cascade, 'ok');
      const image = await env.untilPhase(cascade, 'Ready');
      await env.kubectl('delete', '--timeout=120s', `--cascade=${cascade}`, 'vmdi', cascade);
      for (const kind of ['volumes', 'snapshots'] as const)
        expect(await env.children(image, kind)).toEqual([]);
      const kept = env.controlPlane.cluster.api.get(`${volumes}/${String(status(image, 'dataVolume'))}`);
      if (cascade === 'foreground') await expect(kept).rejects.toThrow('not found');
      else expect((await kept).metadata.deletionTimestamp).toBeUndefined();
    }
  }, 150_000);

  test('kubectl delete --cascade=orphan keeps the data even if the garbage collector acts before the operator', async () => {
    await env.create('orphan-first', 'ok');
    const image = await env.untilPhase('orphan-first', 'Ready');
    await env.patch('orphan-first', { metadata: { annotations: { 'vmwright.dev/paused': 'true' } } });
    await env.kubectl('delete', '--wait=false', '--cascade=orphan', 'vmdi', 'orphan-first');
    const isOrphaned = ({ metadata }: KubeObject) =>
      metadata.deletionTimestamp !== undefined &&
      !JSON.stringify(field(metadata, 'finalizers')).includes('orphan');
    await env.until('orphan-first', isOrphaned);
    await env.patch('orphan-first', { metadata: { annotations: { 'vmwright.dev/paused': null } } });
    await env.gone('orphan-first');
    const kept = await env.controlPlane.cluster.api.get(`${volumes}/${String(status(image, 'dataVolume'))}`);
    expect([kept.metadata.deletionTimestamp, field(kept.metadata, 'ownerReferences')]).toEqual([
      undefined,
      undefined,
    ]);
  });

  test('kubectl delete --cascade=foreground is rejected for an image that is in use again while it is being deleted', async () => {
    const { cluster } = env.controlPlane;
    await env.create('again', 'ok');
    await env.untilPhase('again', 'Ready');
    await env.patch('again', { metadata: { annotations: { 'vmwright.dev/paused': 'true' } } });
    await env.kubectl('delete', '--wait=false', 'vmdi', 'again');
    await env.createMachine('late-user', 'again');
    await env.patch('again', { metadata: { annotations: { 'vmwright.dev/paused': null } } });
    const image = await env.until('again', (each) => conditionIn(each, 'DeletionBlocked')?.status === 'True');
    const remove = (cascade: string) =>
      cluster.tryKubectl(['delete', '--wait=false', `--cascade=${cascade}`, 'vmdi', 'again']);
    expect((await remove('foreground')).stderr).toContain('is used by VirtualMachine default/late-user');
    expect((await remove('background')).code).toBe(0);
    for (const kind of ['volumes', 'snapshots'] as const)
      expect(await env.children(image, kind)).toMatchObject([{ metadata: { name: expect.any(String) } }]);
    expect(field((await env.image('again')).metadata, 'finalizers')).toEqual(['vmwright.dev/vmdiskimage']);
    await env.removeMachine('late-user');
    await env.gone('again');
  });

  test('deletion of a namespace deletes an image that another namespace uses, and reports the loss', async () => {
    const { cluster } = env.controlPlane;
    await env.kubectl('create', 'namespace', 'doomed');
    const images = IMAGES.replace('/default/', '/doomed/');
    await cluster.api.create(images, {
      apiVersion: 'crd.pelotech.ot/v1alpha1',
      kind: 'VMDiskImage',
      metadata: { name: 'base' },
      spec: { secretRef: '', sourceType: 'blank', diskSize: '1Gi' },
    });
    await env.createMachine('remote-user', { name: 'base', namespace: 'doomed' });
    const isReady = (image: KubeObject) => status(image, 'phase') === 'Ready';
    const ready = await cluster.waitFor(`${images}/base`, isReady);
    expect(status(ready, 'references'), 'the machine may not use the image').toBe(0);
    await cluster.kubectl(['delete', '-n', 'doomed', '--dry-run=server', 'vmdi', 'base']);
    await cluster.api.merge(`${images}/base`, {
      metadata: { annotations: { 'vmwright.dev/shared-with': 'default' } },
    });
    const shared = await cluster.waitFor(`${images}/base`, (image) => status(image, 'references') === 1);
    expect((await cluster.tryKubectl(['delete', '-n', 'doomed', 'vmdi', 'base'])).stderr).toContain(
      'is used by VirtualMachine default/remote-user',
    );
    const isDeleting = (image: KubeObject) => status(image, 'phase') === 'Deleting';
    const deleting = untilAfter(cluster, images, shared, isDeleting);
    await env.kubectl('delete', 'namespace', 'doomed', '--timeout=120s');
    expect(String(status(await deleting, 'message'))).toContain(
      'because its namespace is being deleted, although it is used by VirtualMachine default/remote-user',
    );
    await env.removeMachine('remote-user');
  });
});

test('data that an earlier controller imported is adopted, and is replaced when the source changes', async () => {
  const { cluster } = env.controlPlane;
  const { api } = cluster;
  await env.create('earlier', 'ok', {}, { 'vmwright.dev/paused': 'true' });
  const { uid = '' } = (await env.until('earlier', (image) => conditionIn(image, 'Paused') !== undefined))
    .metadata;
  const ownerReferences = [
    { apiVersion: 'crd.pelotech.ot/v1alpha1', kind: 'VMDiskImage', name: 'earlier', uid, controller: true },
  ];
  const volumes = '/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes';
  const snapshots = '/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots';
  const storage = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
  const dataVolume = (name: string, source: object, metadata: object = {}) =>
    api.create(volumes, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: {
        name,
        annotations: { 'cdi.kubevirt.io/storage.bind.immediate.requested': 'true' },
        ...metadata,
      },
      spec: { source, storage },
    });
  await dataVolume(
    'earlier',
    { http: { url: 'http://images.example/ok/earlier.qcow2' } },
    { ownerReferences },
  );
  await cluster.waitFor(`${volumes}/earlier`, (volume) => status(volume, 'phase') === 'Succeeded');
  await api.create(snapshots, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name: 'earlier-snap', ownerReferences },
    spec: { volumeSnapshotClassName: 'testbed', source: { persistentVolumeClaimName: 'earlier' } },
  });
  await cluster.waitFor(`${snapshots}/earlier-snap`, (snapshot) => status(snapshot, 'readyToUse') === true);
  await api.merge(`${IMAGES}/earlier/status`, { status: { phase: 'Ready', message: 'Synced' } });
  await env.patch('earlier', { metadata: { annotations: { 'vmwright.dev/paused': null } } });
  const image = await env.until('earlier', (each) => field(each, 'status', 'attempt', 'number') === 0);
  expect(image.status).toMatchObject({
    phase: 'Ready',
    dataVolume: 'earlier',
    snapshots: [{ name: 'earlier-snap', clones: 0 }],
    references: 0,
  });
  expect((await env.children(image, 'volumes')).map(({ metadata }) => metadata.name)).toEqual(['earlier']);
  await dataVolume('earlier-clone', { snapshot: { namespace: 'default', name: 'earlier-snap' } });
  await env.until('earlier', (each) => status(each, 'references') === 1);
  await env.patch('earlier', { spec: { url: 'http://images.example/ok/later.qcow2' } });
  await env.until(
    'earlier',
    (each) => status(each, 'phase') === 'Ready' && field(each, 'status', 'attempt', 'number') === 1,
  );
  await cluster.waitForGone(`${volumes}/earlier`);
  await api.delete(`${volumes}/earlier-clone`);
  await env.remove('earlier');
});

describe('pruning', () => {
  const retention = { retention: { pruneAfter: '2s' } };
  const isAnnounced = (image: KubeObject) => status(image, 'pruneAt') !== undefined;

  test('pruning is announced by an event and status.pruneAt, and happens at that time', async () => {
    const created = await env.create('unused', 'ok', retention);
    const image = await env.untilAfter(created, isAnnounced);
    expect(status(image, 'phase')).toBe('Ready');
    const pruneAt = Date.parse(String(status(image, 'pruneAt')));
    expect(pruneAt - Date.parse(String(status(image, 'unreferencedSince')))).toBe(2_000);
    await env.gone('unused');
    expect(Date.now()).toBeGreaterThanOrEqual(pruneAt);
    await expect
      .poll(() => env.events('unused'))
      .toEqual(expect.arrayContaining(['PruneScheduled', 'Pruned']));
    await expect.poll(() => env.metrics(env.operator)).toMatch(/^vmwright_images_pruned_total 1$/m);
    for (const kind of ['volumes', 'snapshots'] as const) expect(await env.children(image, kind)).toEqual([]);
  });

  test('pruning keeps the data of an image if a machine refers to it just before pruneAt', async () => {
    const created = await env.create('late', 'ok', retention);
    const image = await env.untilAfter(created, isAnnounced);
    const untilPruneMs = Date.parse(String(status(image, 'pruneAt'))) - Date.now();
    await new Promise((resolve) => setTimeout(resolve, untilPruneMs - 30));
    const machine = await env.createMachine('last-moment', 'late');
    const { used, deleting } = await usedOrDeleted(image);
    if (used !== undefined) {
      // The image stays usable. If it is being deleted already, its finalizer keeps it.
      expect(status(used, 'phase')).toBe('Ready');
      expect(await env.children(used, 'snapshots')).toHaveLength(1);
    }
    // The data is lost only if the machine was created after the deletion of the data had begun.
    else expect(versionOf(machine)).toBeGreaterThan(versionOf(deleting));
    await env.removeMachine('last-moment');
    await env.gone('late');
  });

  const versionOf = (object: KubeObject | undefined) => Number(object?.metadata.resourceVersion);

  /**
   * Waits until an image has a reference or is gone.
   * @returns the version with the reference, or the first one in the phase Deleting
   */
  async function usedOrDeleted(known: KubeObject): Promise<{ used?: KubeObject; deleting?: KubeObject }> {
    const { name, resourceVersion } = known.metadata;
    const path = `${IMAGES}?fieldSelector=metadata.name=${name}&resourceVersion=${resourceVersion}`;
    const versions: KubeObject[] = [];
    for await (const { type, object } of env.controlPlane.cluster.api.watch(
      path,
      AbortSignal.timeout(60_000),
    )) {
      if (type === 'DELETED') break;
      if (status(object, 'references') === 1) return { used: object };
      versions.push(object);
    }
    const deleting = versions.find((image) => status(image, 'phase') === 'Deleting');
    return deleting === undefined ? {} : { deleting };
  }
});

describe('Ready images', () => {
  test.each(['datavolume', 'pvc', 'volumesnapshot'])(
    'a Ready image is repaired after its %s was deleted',
    async (kind) => {
      const name = 'limit-three';
      const before = await env.untilPhase(name, 'Ready');
      const child =
        kind === 'volumesnapshot' ? status(before, 'snapshots', '0', 'name') : status(before, 'dataVolume');
      const uids = async (image: KubeObject) => {
        const all = [...(await env.children(image, 'volumes')), ...(await env.children(image, 'snapshots'))];
        return all.map(({ metadata }) => metadata.uid).toSorted();
      };
      const old = await uids(before);
      await env.kubectl('delete', kind, String(child), '--wait=false');
      const broken = await env.untilAfter(before, (image) => status(image, 'phase') !== 'Ready');
      const after = await env.untilAfter(broken, (image) => status(image, 'phase') === 'Ready');
      expect(status(after, 'attempt', 'number')).toBe(
        Number(status(before, 'attempt', 'number')) + (kind === 'volumesnapshot' ? 0 : 1),
      );
      await expect.poll(() => uids(after)).toHaveLength(2);
      expect((await uids(after)).filter((uid) => old.includes(uid))).toHaveLength(
        kind === 'volumesnapshot' ? 1 : 0,
      );
    },
  );
});

test('images of the same name in two namespaces do not affect each other', async () => {
  const { cluster } = env.controlPlane;
  await using other = await cluster.namespace();
  const path = IMAGES.replace('default', other.name);
  const { metadata, spec, apiVersion, kind } = await env.image('limit-four');
  await cluster.api.create(path, { apiVersion, kind, metadata: { name: metadata.name }, spec });
  await cluster.waitFor(`${path}/limit-four`, (image) => status(image, 'phase') === 'Ready');
  await cluster.api.delete(`${path}/limit-four`);
  await cluster.waitForGone(`${path}/limit-four`);
  const image = await env.image('limit-four');
  expect(status(image, 'phase')).toBe('Ready');
  expect(await env.children(image, 'volumes')).toHaveLength(1);
});

test('an operator that is killed during an import converges to one DataVolume and one snapshot', async () => {
  for (const [round, progress] of [0, 60].entries()) {
    const name = `killed-${round}`;
    await env.create(name, 'ok');
    await env.until(name, (image) => Number(status(image, 'progress') ?? -1) >= progress);
    await env.operator.kill();
    await env.operator.start();
    const image = await env.untilPhase(name, 'Ready');
    expect(status(image, 'attempt', 'number')).toBe(1);
    expect(await env.children(image, 'volumes')).toHaveLength(1);
    expect(await env.children(image, 'snapshots')).toHaveLength(1);
  }
  await expect.poll(slots).toEqual([]);
});

// Must be the last test of the file, because it checks the requests of all other tests.
test('the operator uses exactly the permissions that it ships', async () => {
  await expectExactPermissions(env.controlPlane, permissionsFor(VMDiskImage));
});
