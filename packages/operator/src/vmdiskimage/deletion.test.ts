import {
  apiError,
  Fence,
  type KubeObject,
  Manager,
  noCredentials,
  nodeWorld,
  type ReconcileContext,
  silentLogger,
} from '@vmwright/runtime';
import { describe, expect, test, vi } from 'vitest';
import { DataSource, DataVolume, PersistentVolumeClaim, VolumeSnapshot } from '../kubevirt/kinds.ts';
import { VirtualMachine } from '../virtualmachine/resource.ts';
import { ImageFinalizer } from './deletion.ts';
import { childMetadata } from './identity.ts';
import { indexChildren } from './observe.ts';
import { indexUsers } from './references.ts';
import type { VMDiskImage, VMDiskImageStatus } from './resource.ts';
import { slotStore } from './slot-store.ts';
import { SyncSlots } from './sync-slots.ts';

const NOW = '2026-11-17T10:00:00.000Z';
const NAME = 'win-12345678-1';
const LIMITS = {
  pruneAfterMs: 86_400_000,
  syncs: {
    concurrency: 1,
    maxBackoffMs: 1_000,
    maxTotalMs: 60_000,
    maxAttemptMs: 60_000,
    maxRestarts: 3,
    stalledAfterMs: 1_000,
  },
};
const MACHINE: VirtualMachine = {
  metadata: { namespace: 'lab', name: 'a', uid: 'uid-a', resourceVersion: '1' },
  spec: {
    resources: { cpu: '1', memory: '1Gi', diskSize: '10Gi' },
    vmDiskImageRef: { name: 'win', namespace: 'farm' },
  },
};

function image(status: VMDiskImageStatus, annotations: Record<string, string> = {}): VMDiskImage {
  return {
    metadata: {
      namespace: 'farm',
      name: 'win',
      uid: '12345678-aaaa',
      resourceVersion: '1',
      annotations,
      deletionTimestamp: NOW,
    },
    spec: { secretRef: '', sourceType: 'blank', diskSize: '1Gi' },
    status,
  };
}

/**
 * Returns a finalizer, its caches and a record of its actions. Every list of VirtualMachines from etcd calls `onList`.
 */
function setup(
  onList: (count: number) => void = () => undefined,
  imageNamespaces: readonly string[] = ['*'],
) {
  const { caches, client } = new Manager({
    world: nodeWorld,
    name: 'test',
    log: silentLogger,
    access: { server: { origin: 'http://127.0.0.1:1' }, credentials: noCredentials, namespace: 'test' },
  });
  indexUsers(caches);
  indexChildren(caches);
  const done: string[] = [];
  let lists = 0;
  vi.spyOn(caches.get(VirtualMachine), 'refresh').mockImplementation(async () => {
    lists++;
    done.push('list');
    onList(lists);
    return [];
  });
  for (const kind of [DataVolume, VolumeSnapshot, DataSource])
    vi.spyOn(caches.get<KubeObject>(kind), 'refresh').mockResolvedValue([]);
  vi.spyOn(client, 'get').mockRejectedValue(apiError('not found', { status: 404 }));
  vi.spyOn(client, 'delete').mockImplementation(async (kind, { name }) => {
    done.push(`delete ${kind.kind} ${name}`);
  });
  const slots = new SyncSlots({
    storeOf: (own) => slotStore(own, 'test'),
    limit: 1,
    queue: () => [],
    isCached: () => true,
    onReleased: () => undefined,
  });
  vi.spyOn(slots, 'release').mockResolvedValue();
  const finalizer = new ImageFinalizer({
    caches,
    slots,
    limits: { ...LIMITS, imageNamespaces },
    reconcile: async () => {
      done.push('maintain');
      return undefined;
    },
  });
  const context: ReconcileContext<VMDiskImage> = {
    signal: new AbortController().signal,
    client,
    log: silentLogger,
    key: 'farm/win',
    fence: new Fence(),
    assertLeader: () => undefined,
    now: () => Date.parse(NOW),
    cache: (kind) => caches.get(kind),
    setStatus: async (object, status) => {
      const { phase, deletionStartedAt } = status;
      done.push(deletionStartedAt === undefined ? `store ${phase}` : 'store deletionStartedAt');
      return { ...object, status };
    },
    event: () => undefined,
  };
  return {
    caches,
    client,
    done,
    finalize: (object: VMDiskImage) => finalizer.reconcileDelete(object, context),
  };
}

const owned = (object: VMDiskImage, name: string) => ({
  ...childMetadata(object, name),
  uid: `uid-${name}`,
  resourceVersion: '1',
});

test('deletionStartedAt is stored after the machines were listed twice, and before a child is deleted', async () => {
  const { caches, done, finalize } = setup();
  const ready = image({ phase: 'Ready', dataVolume: NAME });
  caches.get(DataVolume).onWrite({ metadata: owned(ready, NAME) });
  await finalize(ready);
  expect(done.slice(0, 5)).toEqual([
    ...['list', 'store Deleting', 'list', 'store deletionStartedAt'],
    `delete DataVolume ${NAME}`,
  ]);
});

test.each(['Failed', 'Ready', 'Deleting'] as const)(
  'a %s image is kept if a machine that refers to it is created after the machines were listed once and before they are listed again',
  async (phase) => {
    const { caches, done, finalize } = setup((count) => {
      if (count === 2) caches.get(VirtualMachine).onWrite(MACHINE);
    });
    const snapshots = [{ name: `${NAME}-1`, clones: 0 }];
    await finalize(image({ phase, dataVolume: NAME, snapshots }));
    expect(done).toEqual(['list', 'store Deleting', 'list', 'maintain']);
  },
);

test('a referenced image is deleted if its namespace is being deleted, and kept otherwise', async () => {
  for (const isTerminating of [true, false]) {
    const { caches, client, done, finalize } = setup();
    caches.get(VirtualMachine).onWrite(MACHINE);
    vi.spyOn(client, 'get').mockResolvedValue({
      metadata: { name: 'farm', ...(isTerminating && { deletionTimestamp: NOW }) },
    });
    await finalize(image({ phase: 'Ready' }));
    expect(done).toEqual([isTerminating ? 'store deletionStartedAt' : 'maintain']);
  }
});

test('a machine that refers to an image does not block the foreground deletion of the image', async () => {
  for (const created of [0, 1]) {
    const { caches, done, finalize } = setup((count) => {
      if (count > created) caches.get(VirtualMachine).onWrite(MACHINE);
    });
    const { metadata, ...rest } = image({ phase: 'Ready' });
    await finalize({ ...rest, metadata: { ...metadata, finalizers: ['foregroundDeletion'] } });
    expect(done.at(-1)).toBe('store deletionStartedAt');
  }
});

test('a machine in another namespace blocks the deletion of an image only if the machine may use the image', async () => {
  for (const sharedWith of ['other', 'other, lab']) {
    const { caches, done, finalize } = setup(undefined, []);
    caches.get(VirtualMachine).onWrite(MACHINE);
    await finalize(image({ phase: 'Ready' }, { 'vmwright.dev/shared-with': sharedWith }));
    expect(done.at(-1)).toBe(sharedWith === 'other' ? 'store deletionStartedAt' : 'maintain');
  }
});

test('a reference does not stop the deletion of an image once deletionStartedAt is stored', async () => {
  const { caches, done, finalize } = setup();
  caches.get(VirtualMachine).onWrite(MACHINE);
  await finalize(image({ phase: 'Deleting', deletionStartedAt: NOW }));
  expect(done).toEqual([]);
});

test('an object in another namespace is not deleted even if it names the image as its owner', async () => {
  const { caches, done, finalize } = setup();
  const marked = image({ phase: 'Deleting', deletionStartedAt: NOW });
  caches.get(DataVolume).onWrite({ metadata: { ...owned(marked, NAME), namespace: 'lab' } });
  caches.get(VolumeSnapshot).onWrite({ metadata: { ...owned(marked, `${NAME}-1`), namespace: 'lab' } });
  await expect(finalize(marked)).resolves.toBeUndefined();
  expect(done).toEqual([]);
});

describe('PVCs of the image', () => {
  const marked = image({ phase: 'Deleting', deletionStartedAt: NOW, dataVolume: NAME });
  const { ownerReferences: _, ...metadata } = owned(marked, NAME);
  const owner = { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', name: NAME, uid: 'uid-dv' };
  const claim = { metadata: { ...metadata, ownerReferences: [{ ...owner, controller: true }] } };

  test('a PVC of the image blocks the removal of the finalizer only while it has an owner', async () => {
    const { caches, finalize } = setup();
    caches.get(PersistentVolumeClaim).onWrite(claim);
    expect(await finalize(marked), 'its DataVolume owns it').toBeDefined();
    caches.get(PersistentVolumeClaim).onWrite({ metadata: { ...metadata, resourceVersion: '2' } });
    expect(await finalize(marked)).toBeUndefined();
  });

  // With --cascade=orphan, the garbage collector removes the owner references first and the finalizer `orphan`
  // afterwards. So the operator may see a DataVolume without an owner, and never see the finalizer.
  test.each(['cached', 'not cached'])(
    'a PVC (%s) does not block the removal of the finalizer if its DataVolume has lost its owner',
    async (where) => {
      const { caches, client, done, finalize } = setup();
      caches.get(DataVolume).onWrite({ metadata: { ...metadata, uid: owner.uid } });
      if (where === 'cached') caches.get(PersistentVolumeClaim).onWrite(claim);
      else vi.spyOn(client, 'get').mockResolvedValue(claim);
      expect(await finalize(marked)).toBeUndefined();
      expect(done).toEqual([]);
    },
  );
});

describe('the deletion policy Orphan', () => {
  const orphaning = image({ phase: 'Ready' }, { 'vmwright.dev/deletion-policy': 'Orphan' });

  test('while a machine refers to an image with the deletion policy Orphan, the image stays and is reconciled as usual', async () => {
    const { caches, done, finalize } = setup(() => caches.get(VirtualMachine).onWrite(MACHINE));
    await finalize(orphaning);
    expect(done).toEqual(['list', 'maintain']);
  });

  test('with the deletion policy Orphan, deletionStartedAt is stored before the children lose their owner', async () => {
    const { caches, client, done, finalize } = setup();
    caches.get(DataVolume).onWrite({ metadata: owned(orphaning, NAME) });
    vi.spyOn(client, 'mergePatch').mockImplementation(async (_, { name }) => {
      done.push(`disown ${name}`);
      return Promise.reject(apiError('gone', { status: 404 }));
    });
    await expect(finalize(orphaning)).resolves.toBeUndefined();
    expect(done).toEqual([
      ...['list', 'store Deleting', 'list', 'store deletionStartedAt', `disown ${NAME}`],
    ]);
  });

  test('with the deletion policy Orphan, children that the caches do not contain yet lose their owner too', async () => {
    const { caches, client, finalize } = setup();
    vi.spyOn(caches.get(VolumeSnapshot), 'refresh').mockImplementation(async () => {
      caches.get(VolumeSnapshot).onWrite({ metadata: owned(orphaning, `${NAME}-1`) });
      return [];
    });
    const patch = vi.spyOn(client, 'mergePatch').mockRejectedValue(apiError('gone', { status: 404 }));
    await expect(finalize(orphaning)).resolves.toBeUndefined();
    expect(patch.mock.calls.map(([, { name }, body]) => [name, body])).toEqual([
      [`${NAME}-1`, { metadata: { resourceVersion: '1', ownerReferences: [] } }],
    ]);
  });
});
