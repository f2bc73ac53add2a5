import { conditionOf, schema } from '@vmwright/runtime';
import { describe, expect, test } from 'vitest';
import type { DataVolume, PersistentVolumeClaim, VolumeSnapshot } from '../kubevirt/kinds.ts';
import type { VirtualMachine } from '../virtualmachine/resource.ts';
import { nameOf } from './cleanup.ts';
import { sourceDigest } from './identity.ts';
import type { Observed } from './observe.ts';
import { type Plan, plan } from './plan.ts';
import { type ImageSpec, VMDiskImage, type VMDiskImageStatus } from './resource.ts';

const NOW = Date.parse('2026-11-17T10:00:00.000Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const ago = (ms: number) => new Date(NOW - ms).toISOString();

const SPEC: ImageSpec = {
  secretRef: '',
  url: 'http://images.example/404/disk.qcow2',
  sourceType: 'http',
  diskSize: '10Gi',
};
const limits = {
  imageNamespaces: [],
  pruneAfterMs: 24 * HOUR,
  syncs: {
    concurrency: 10,
    maxBackoffMs: HOUR,
    maxTotalMs: 12 * HOUR,
    maxAttemptMs: HOUR,
    maxRestarts: 3,
    stalledAfterMs: 10 * MINUTE,
  },
};

interface Options {
  readonly annotations?: Record<string, string>;
  readonly spec?: Partial<ImageSpec>;
  readonly deleting?: boolean;
}

function image(status?: VMDiskImageStatus, { annotations, spec, deleting }: Options = {}): VMDiskImage {
  return {
    metadata: {
      namespace: 'farm',
      name: 'win',
      uid: '12345678-aaaa',
      generation: 2,
      ...(annotations && { annotations }),
      ...(deleting && { deletionTimestamp: ago(0) }),
    },
    spec: { ...SPEC, ...spec },
    ...(status && { status }),
  };
}

const ATTEMPT = { number: 1, startedAt: ago(MINUTE), progressedAt: ago(MINUTE), source: sourceDigest(SPEC) };
const SYNCING: VMDiskImageStatus = {
  phase: 'Syncing',
  attempt: ATTEMPT,
  syncStartedAt: ago(MINUTE),
  progress: 0,
};
const READY: VMDiskImageStatus = {
  phase: 'Ready',
  attempt: ATTEMPT,
  dataVolume: 'win-12345678-1',
  progress: 100,
  snapshots: [{ name: 'win-12345678-1-1', clones: 0 }],
};

function volume(
  status?: DataVolume['status'],
  { name = 'win-12345678-1', deleting = false } = {},
): DataVolume {
  return {
    metadata: { namespace: 'farm', name, uid: `uid-${name}`, ...(deleting && { deletionTimestamp: ago(0) }) },
    spec: { source: { http: { url: SPEC.url ?? '' } } },
    ...(status && { status }),
  };
}

function snapshot(
  status?: VolumeSnapshot['status'],
  { name = 'win-12345678-1-1', deleting = false, created = ago(MINUTE) } = {},
): VolumeSnapshot {
  const deletion = deleting && { deletionTimestamp: ago(0) };
  const metadata = { namespace: 'farm', name, uid: `uid-${name}`, creationTimestamp: created, ...deletion };
  const spec = { source: { persistentVolumeClaimName: name.replace(/-(\d+|snapshot)$/, '') } };
  return { metadata, spec, ...(status && { status }) };
}

const CLAIM: PersistentVolumeClaim = {
  metadata: { namespace: 'farm', name: 'win-12345678-1' },
  status: { phase: 'Bound' },
};
const IMPORTED = { volume: volume({ phase: 'Succeeded', claimName: 'win-12345678-1' }), claim: CLAIM };
const COMPLETE = { ...IMPORTED, snapshots: [snapshot({ readyToUse: true })] };

function machine(name: string, chosen?: string): VirtualMachine {
  return {
    metadata: { namespace: 'lab', name, uid: `uid-${name}` },
    spec: {
      resources: { cpu: '1', memory: '1Gi', diskSize: '10Gi' },
      vmDiskImageRef: { name: 'win', namespace: 'farm' },
    },
    ...(chosen !== undefined && { status: { snapshot: chosen } }),
  };
}

function next(object: VMDiskImage, seen: Partial<Observed> = {}, now = NOW): Plan {
  const nothing: Observed = {
    limits,
    isNameTaken: false,
    isUnverified: false,
    snapshots: [],
    lastAttempt: 0,
    slot: 'none',
    snapshotNames: new Set(seen.snapshots?.map(({ metadata }) => metadata.name)),
    obsolete: { volumes: [], snapshots: [] },
    users: { machines: [], clones: [] },
  };
  const planned = plan(
    object,
    { ...nothing, lastAttempt: object.status?.attempt?.number ?? 0, ...seen },
    now,
  );
  expect(schema.validate(VMDiskImage.schema, { spec: object.spec, status: planned.status })).toEqual([]);
  return planned;
}

/** Returns the actions of a plan in words. */
function shown({ actions }: Plan): readonly string[] {
  return actions.map((action) => {
    switch (action.type) {
      case 'createVolume':
        return `create ${action.volume.metadata.name}`;
      case 'createSnapshot':
        return `create ${action.snapshot.metadata.name}`;
      case 'delete':
        return `delete ${nameOf(action.child)}`;
      default:
        return action.type;
    }
  });
}

const condition = ({ status }: Plan, type: string) => conditionOf(status.conditions, type);
const running = (message: string) => [{ type: 'Running', status: 'False', reason: 'Error', message }];

describe('Queued', () => {
  test('a new image is queued and asks for a sync slot', () => {
    const planned = next(image());
    expect(planned.status).toMatchObject({
      phase: 'Queued',
      queuedAt: ago(0),
      references: 0,
      observedGeneration: 2,
    });
    expect(shown(planned)).toEqual(['acquireSlot']);
  });

  test('a queued image keeps its place in the queue while other images are before it', () => {
    const queued = next(image()).status;
    const planned = next(image(queued), { slot: 'waiting' }, NOW + HOUR);
    expect(planned.status).toEqual(queued);
    expect(planned).toMatchObject({ actions: [], requeueAfterMs: MINUTE });
  });

  test('when a queued image gets a sync slot, its import attempt begins, and its time limits start', () => {
    const planned = next(image({ phase: 'Queued', queuedAt: ago(20 * HOUR) }), { slot: 'held' });
    expect(planned.status).toMatchObject({
      phase: 'Syncing',
      syncStartedAt: ago(0),
      progress: 0,
      attempt: { number: 1, startedAt: ago(0), source: sourceDigest(SPEC) },
    });
    expect(planned.status).not.toHaveProperty('dataVolume');
    expect(shown(planned)).toEqual(['create win-12345678-1']);
  });

  test('after the status was lost, the next attempt number follows the highest number in the names of the children', () => {
    const planned = next(image({ phase: 'Queued', queuedAt: ago(0) }), { slot: 'held', lastAttempt: 4 });
    expect(shown(planned)).toEqual(['create win-12345678-5']);
  });

  test('an image in phase Queued enters the queue only after the unfinished import of its last attempt is deleted', () => {
    const queued = image({ phase: 'Queued', attempt: ATTEMPT, queuedAt: ago(HOUR) });
    const planned = next(queued, { volume: volume({ phase: 'ImportInProgress' }), slot: 'held' });
    expect(shown(planned)).toEqual(['delete DataVolume farm/win-12345678-1']);
    expect(planned.status).not.toHaveProperty('queuedAt');
    const waiting = next(queued, { volume: volume(undefined, { deleting: true }), slot: 'held' });
    expect(waiting.actions).toEqual([]);
    expect(waiting.status.message).toContain('DataVolume farm/win-12345678-1');
  });
});

describe('DataVolumes', () => {
  const created = (spec: Partial<ImageSpec>) => {
    const [action] = next(image({ phase: 'Queued', queuedAt: ago(0) }, { spec }), { slot: 'held' }).actions;
    return action?.type === 'createVolume' ? action.volume : undefined;
  };

  test('the DataVolume of an image imports immediately, is kept after the import, and belongs to the image', () => {
    expect(created({ storageClass: 'gp3' })).toMatchObject({
      metadata: {
        annotations: {
          'cdi.kubevirt.io/storage.bind.immediate.requested': 'true',
          'cdi.kubevirt.io/storage.deleteAfterCompletion': 'false',
        },
        labels: { 'vmwright.dev/vmdiskimage-uid': '12345678-aaaa' },
        ownerReferences: [
          { kind: 'VMDiskImage', uid: '12345678-aaaa', controller: true, blockOwnerDeletion: true },
        ],
      },
      spec: {
        storage: {
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'gp3',
          resources: { requests: { storage: '10Gi' } },
        },
      },
    });
  });

  test.each<[ImageSpec['sourceType'], Partial<ImageSpec>, object]>([
    ['s3', { secretRef: 'keys', url: 'https://a/b' }, { s3: { url: 'https://a/b', secretRef: 'keys' } }],
    [
      'registry',
      { url: 'docker://a', certConfigMap: 'ca' },
      { registry: { url: 'docker://a', certConfigMap: 'ca' } },
    ],
    ['blank', {}, { blank: {} }],
    ['http', { url: 'http://a', checksum: 'md5:0' }, { http: { url: 'http://a', checksum: 'md5:0' } }],
  ])('the DataVolume of an image has the source %s', (sourceType, spec, source) => {
    expect(created({ sourceType, ...spec })?.spec?.source).toEqual(source);
  });
});

describe('attempts', () => {
  const held = { slot: 'held' } as const;

  test('if the DataVolume of an attempt is missing after a crash of the operator, the same attempt creates it', () => {
    expect(shown(next(image(SYNCING), held))).toEqual(['create win-12345678-1']);
  });

  test('an attempt deletes an unfinished import of an earlier attempt', () => {
    const obsolete = { volumes: [volume(undefined, { name: 'win-12345678-0' })], snapshots: [] };
    const seen = { ...held, volume: volume({ phase: 'ImportInProgress' }), obsolete };
    expect(shown(next(image(SYNCING), seen))).toEqual(['delete DataVolume farm/win-12345678-0']);
  });

  test('an attempt chooses another name for its snapshot if the first one is taken', () => {
    const seen = { ...held, ...IMPORTED, snapshotNames: new Set(['win-12345678-1-1']) };
    expect(shown(next(image(SYNCING), seen))).toEqual(['create win-12345678-1-2']);
  });

  test('an attempt reports progress in steps of 5 %, and does not change the status in between', () => {
    const at = (progress: string, status: VMDiskImageStatus) =>
      next(image(status), { ...held, volume: volume({ phase: 'ImportInProgress', progress }) }).status;
    const first = at('61.0%', SYNCING);
    expect(first).toMatchObject({
      progress: 60,
      dataVolume: 'win-12345678-1',
      attempt: { progressedAt: ago(0) },
    });
    expect(at('64.9%', first)).toEqual(first);
    expect(at('99.9%', first).progress).toBe(95);
    expect(at('N/A', SYNCING).progress).toBe(0);
  });

  test('an attempt is not reported as stalled while its progress grows, even by less than 5 %', () => {
    const importing = (progress: string) => ({
      ...held,
      volume: volume({ phase: 'ImportInProgress', progress }),
    });
    const { status: first } = next(image(SYNCING), importing('61.2%'));
    const later = (minutes: number, progress: string, status = first) =>
      next(image(status), importing(progress), NOW + minutes * MINUTE);
    expect(later(4, '63.0%').status, 'written rarely').toEqual(first);
    const slow = later(5, '62.9%');
    expect(slow.status).toMatchObject({
      progress: 60,
      attempt: { percent: 62, progressedAt: ago(-5 * MINUTE) },
    });
    expect(condition(later(14, '62.9%', slow.status), 'Progressing')?.status).toBe('True');
    expect(condition(later(15, '62.9%', slow.status), 'Progressing')?.status).toBe('False');
  });

  test.each(['Pending', 'ContainerCreating', 'Completed'])(
    'an attempt does not store the importer state %s as an error',
    (reason) => {
      const conditions = [{ type: 'Running', status: 'False', reason, message: 'text' }];
      const seen = { ...held, volume: volume({ phase: 'ImportInProgress', conditions }) };
      expect(next(image(SYNCING), seen).status.attempt).not.toHaveProperty('importerError');
    },
  );

  test('an attempt takes no snapshot before the import has succeeded', () => {
    const importing = { ...held, volume: volume({ phase: 'ImportInProgress' }), claim: CLAIM };
    expect(next(image(SYNCING), importing).actions).toEqual([]);
    expect(shown(next(image(SYNCING), { ...held, ...IMPORTED }))).toEqual(['create win-12345678-1-1']);
  });

  test('an attempt is not finished while it has no ready snapshot', () => {
    expect(next(image(SYNCING), { ...held, ...IMPORTED }).status.phase).toBe('Syncing');
    const pending = next(image(SYNCING), { ...held, ...IMPORTED, snapshots: [snapshot()] });
    expect(pending.status.phase).toBe('Syncing');
    expect(pending.actions).toEqual([]);
  });

  test('an attempt makes the image Ready and releases the slot when the snapshot is ready', () => {
    const planned = next(image({ ...SYNCING, failureCount: 2, lastFailureTime: ago(HOUR) }), {
      ...held,
      ...COMPLETE,
    });
    expect(planned.status).toMatchObject(READY);
    for (const field of ['failureCount', 'lastFailureTime', 'syncStartedAt', 'queuedAt'])
      expect(planned.status).not.toHaveProperty(field);
    expect(shown(planned)).toEqual(['releaseSlot']);
    expect(condition(planned, 'Ready')).toMatchObject({ status: 'True', reason: 'Ready' });
    expect(planned.events?.map(({ reason }) => reason)).toEqual(['Synced', 'PruneScheduled']);
  });

  test('an attempt ends when the source changes, and the image is queued for the new source', () => {
    const planned = next(image({ ...SYNCING, failureCount: 3 }, { spec: { diskSize: '20Gi' } }), {
      ...held,
      volume: volume({ phase: 'ImportInProgress' }),
    });
    expect(planned.status.phase).toBe('Queued');
    expect(planned.status).not.toHaveProperty('failureCount');
    expect(planned.status).not.toHaveProperty('syncStartedAt');
    expect(shown(planned)).toEqual(['delete DataVolume farm/win-12345678-1']);
  });

  test('an attempt takes its slot back if the slot is missing from the ConfigMap', () => {
    expect(shown(next(image(SYNCING), { volume: volume() }))).toEqual(['acquireSlot']);
  });
});

describe('final failures', () => {
  test.each([
    ['SourceMissing', 'expected status code 200, got 404. Status: 404 Not Found'],
    ['SourceForbidden', 'expected status code 200, got 403. Status: 403 Forbidden'],
    ['ChecksumMismatch', 'checksum mismatch: expected a, got b'],
  ])('the failure %s is final, and the DataVolume of the attempt is deleted', (reason, message) => {
    const seen = {
      slot: 'held',
      volume: volume({ phase: 'ImportInProgress', conditions: running(message) }),
    } as const;
    const planned = next(image(SYNCING), seen);
    expect(planned.status).toMatchObject({ phase: 'Failed', failureCount: 1, lastFailureTime: ago(0) });
    expect(condition(planned, 'Stalled')).toMatchObject({ status: 'True', reason });
    expect(planned).toMatchObject({ failure: reason, events: [{ type: 'Warning', reason }] });
    expect(shown(planned)).toEqual(['delete DataVolume farm/win-12345678-1']);
    const after = next(image(planned.status), { slot: 'held' });
    expect(after.status).toEqual(planned.status);
    expect(shown(after)).toEqual(['releaseSlot']);
    expect(next(image(planned.status), {}, NOW + 100 * HOUR)).toEqual({
      status: planned.status,
      actions: [],
    });
  });

  test('an import is a final failure if CDI ignores the checksum, even if the import succeeds', () => {
    const checksum = { spec: { checksum: 'md5:0123456789abcdef0123456789abcdef' } };
    const source = sourceDigest({ ...SPEC, ...checksum.spec });
    const syncing = image({ ...SYNCING, attempt: { ...ATTEMPT, source } }, checksum);
    const planned = next(syncing, { slot: 'held', ...COMPLETE, isUnverified: true });
    expect(planned).toMatchObject({ failure: 'ChecksumUnsupported', status: { phase: 'Failed' } });
    expect(shown(planned)).toContain('delete DataVolume farm/win-12345678-1');
  });

  test('a final failure deletes the imported data, unless a disk is being cloned from it', () => {
    const failed = image({ phase: 'Failed', attempt: ATTEMPT });
    const obsolete = { volumes: [volume({ phase: 'Succeeded' }, { name: 'win-12345678-0' })], snapshots: [] };
    expect(shown(next(failed, { ...IMPORTED, obsolete }))).toEqual([
      'delete DataVolume farm/win-12345678-1',
      'delete DataVolume farm/win-12345678-0',
    ]);
    const clone: DataVolume = {
      metadata: { namespace: 'lab', name: 'root', uid: 'root' },
      spec: { source: { snapshot: { namespace: 'farm', name: 'win-12345678-1-1' } } },
    };
    expect(shown(next(failed, { ...COMPLETE, users: { machines: [], clones: [clone] } }))).toEqual([]);
  });

  test('a final failure keeps the newest complete data of earlier attempts, and deletes all other data', () => {
    const failed = image({ phase: 'Failed', attempt: { ...ATTEMPT, number: 4 } });
    const complete = (number: number) => ({
      volume: volume({ phase: 'Succeeded' }, { name: `win-12345678-${number}` }),
      snapshot: snapshot({ readyToUse: true }, { name: `win-12345678-${number}-1` }),
    });
    const [first, second] = [complete(1), complete(2)];
    const incomplete = volume({ phase: 'Succeeded' }, { name: 'win-12345678-3' });
    const seen: Partial<Observed> = {
      volume: volume({ phase: 'ImportInProgress' }, { name: 'win-12345678-4' }),
      obsolete: {
        volumes: [first.volume, second.volume, incomplete],
        snapshots: [first.snapshot, second.snapshot],
      },
    };
    expect(shown(next(failed, seen))).toEqual([
      ...['delete VolumeSnapshot farm/win-12345678-1-1', 'delete DataVolume farm/win-12345678-4'],
      ...['delete DataVolume farm/win-12345678-1', 'delete DataVolume farm/win-12345678-3'],
    ]);
  });

  test('a failure is final if the next attempt would begin after the time limit of the whole sync', () => {
    const status = { ...SYNCING, syncStartedAt: ago(11.5 * HOUR), failureCount: 5 };
    const planned = next(image(status), { slot: 'held', volume: volume({ phase: 'Failed' }) });
    expect(planned).toMatchObject({ failure: 'SyncTimeout', status: { phase: 'Failed' } });
    expect(planned.status.message).toContain('not synced within 12 h: The import to the DataVolume');
  });
});

describe('failures that are retried', () => {
  const seen = (more: Partial<Observed>): Partial<Observed> => ({ slot: 'held', ...more });
  const late = { ...SYNCING, attempt: { ...ATTEMPT, startedAt: ago(HOUR) } };
  test.each<[string, VMDiskImageStatus, Partial<Observed>]>([
    ['ImportFailed', SYNCING, { volume: volume({ phase: 'Failed' }) }],
    ['TooManyRestarts', SYNCING, { volume: volume({ phase: 'ImportInProgress', restartCount: 4 }) }],
    ['AttemptTimeout', late, { volume: volume({ phase: 'ImportInProgress' }), claim: CLAIM }],
    [
      'AttemptTimeout',
      late,
      { ...IMPORTED, snapshots: [snapshot({ readyToUse: false }, { created: ago(HOUR) })] },
    ],
    ['DataVolumeLost', { ...SYNCING, dataVolume: 'win-12345678-1' }, {}],
    ['DataVolumeLost', SYNCING, { volume: volume({ phase: 'ImportInProgress' }, { deleting: true }) }],
    ['DataVolumeRejected', SYNCING, { isNameTaken: true }],
    ['ClaimLost', SYNCING, { volume: IMPORTED.volume }],
    ['SnapshotFailed', SYNCING, { ...IMPORTED, snapshots: [snapshot({ error: { message: 'no space' } })] }],
  ])('an attempt that fails with %s is repeated', (reason, status, more) => {
    const planned = next(image(status), seen(more));
    expect(planned).toMatchObject({
      failure: reason,
      status: { phase: 'RetryableFailure', failureCount: 1 },
    });
    expect(condition(planned, 'Ready')).toMatchObject({ status: 'False', reason });
    expect(condition(planned, 'Reconciling')?.status).toBe('True');
  });

  test('three restarts of the importer do not fail the attempt', () => {
    const restarted = volume({ phase: 'ImportInProgress', restartCount: 3 });
    expect(next(image(SYNCING), seen({ volume: restarted })).status.phase).toBe('Syncing');
  });

  test('a snapshot error fails the attempt only after 15 s, because the snapshot controller retries', () => {
    const failing = (time: string) => snapshot({ error: { message: 'the API server is busy', time } });
    const waiting = next(image(SYNCING), seen({ ...IMPORTED, snapshots: [failing(ago(5_000))] }));
    expect(waiting).toMatchObject({ status: { phase: 'Syncing' }, requeueAfterMs: 10_000 });
    const failed = next(image(SYNCING), seen({ ...IMPORTED, snapshots: [failing(ago(15_000))] }));
    expect(failed.failure).toBe('SnapshotFailed');
  });

  test('a failure after too many restarts reports the last error of the importer', () => {
    const stopped = { type: 'Running', status: 'False', reason: 'Error', message: 'connection\n\treset' };
    const first = volume({ phase: 'ImportInProgress', restartCount: 1, conditions: [stopped] });
    const { status } = next(image(SYNCING), seen({ volume: first }));
    expect(status.attempt?.importerError).toBe('Error: connection reset');
    const running = { type: 'Running', status: 'True' };
    const last = volume({ phase: 'ImportInProgress', restartCount: 4, conditions: [running] });
    const failed = next(image(status), seen({ volume: last }));
    expect(failed.failure).toBe('TooManyRestarts');
    expect(failed.status.message).toContain('CDI reports: Error: connection reset');
  });

  test('after the n-th failure, the next attempt is delayed by 3ⁿ minutes, at most one hour', () => {
    const failing = (failureCount: number): VMDiskImageStatus => ({
      ...SYNCING,
      phase: 'RetryableFailure',
      failureCount,
      lastFailureTime: ago(0),
    });
    expect(shown(next(image(failing(1)), seen({ volume: volume({ phase: 'Failed' }) })))).toEqual([
      'delete DataVolume farm/win-12345678-1',
    ]);
    expect(shown(next(image(failing(1)), seen({})))).toEqual(['releaseSlot']);
    const waits = [1, 2, 3, 4].map((count) => next(image(failing(count))).requeueAfterMs);
    expect(waits).toEqual([3 * MINUTE, 9 * MINUTE, 27 * MINUTE, HOUR]);
    const again = next(image(failing(1)), {}, NOW + 3 * MINUTE);
    expect(again.status).toMatchObject({ phase: 'Queued', failureCount: 1 });
    expect(shown(again)).toEqual(['acquireSlot']);
  });

  test('a failed attempt is repeated without another download if only the snapshot failed', () => {
    const failed = next(image(SYNCING), seen({ ...IMPORTED, snapshots: [snapshot({ error: {} })] }));
    expect(shown(failed)).toEqual(['delete VolumeSnapshot farm/win-12345678-1-1']);
    const queued = image({ phase: 'Queued', attempt: ATTEMPT, queuedAt: ago(0) });
    const planned = next(queued, seen(IMPORTED));
    expect(planned.status).toMatchObject({ phase: 'Syncing', attempt: { number: 1, startedAt: ago(0) } });
    expect(shown(planned)).toEqual(['create win-12345678-1-1']);
    const terminating = { ...IMPORTED, snapshots: [snapshot(undefined, { deleting: true })] };
    expect(shown(next(image(SYNCING), seen(terminating)))).toEqual(['create win-12345678-1-2']);
  });
});

describe('long downtimes of the operator', () => {
  const old: VMDiskImageStatus = {
    ...SYNCING,
    syncStartedAt: ago(20 * HOUR),
    attempt: { ...ATTEMPT, startedAt: ago(20 * HOUR) },
  };
  const held = { slot: 'held', ...IMPORTED } as const;

  test('after a long downtime of the operator, an imported disk gets its snapshot despite expired time limits', () => {
    const planned = next(image(old), held);
    expect(planned.status.phase).toBe('Syncing');
    expect(shown(planned)).toEqual(['create win-12345678-1-1']);
    const waiting = next(image(old), { ...held, snapshots: [snapshot()] });
    expect(waiting).toMatchObject({ status: { phase: 'Syncing' }, actions: [], requeueAfterMs: MINUTE });
  });

  test('after a long downtime of the operator, an imported disk is kept while its image is queued or backs off', () => {
    const queued: VMDiskImageStatus = { ...old, phase: 'Queued', queuedAt: ago(20 * HOUR) };
    expect(shown(next(image(queued), held))).toEqual(['create win-12345678-1-1']);
    expect(next(image(queued), { ...held, slot: 'waiting' }).requeueAfterMs).toBe(MINUTE);
    const failed: VMDiskImageStatus = { ...old, phase: 'RetryableFailure', lastFailureTime: ago(20 * HOUR) };
    expect(shown(next(image(failed), { ...held, slot: 'none' }))).toEqual(['acquireSlot']);
  });

  test('a failed snapshot is a final failure once the time limit of the whole sync has passed', () => {
    const stuck = snapshot(undefined, { created: ago(HOUR) });
    expect(next(image(old), { ...held, snapshots: [stuck] }).failure).toBe('SyncTimeout');
  });
});

describe('requests to try a Failed image again', () => {
  const failed: VMDiskImageStatus = {
    phase: 'Failed',
    attempt: ATTEMPT,
    failureCount: 4,
    syncStartedAt: ago(20 * HOUR),
    lastFailureTime: ago(HOUR),
    retryRequest: 'one',
  };
  test.each<[string, Options]>([
    ['the source changes', { spec: { url: 'http://images.example/new' } }],
    ['the annotation has a new value', { annotations: { 'vmwright.dev/retry': 'two' } }],
  ])('a Failed image is queued again when %s', (_, options) => {
    const { status } = next(image(failed, options));
    expect(status.phase).toBe('Queued');
    for (const field of ['failureCount', 'syncStartedAt', 'lastFailureTime'])
      expect(status).not.toHaveProperty(field);
  });

  test.each(['Failed', 'RetryableFailure'] as const)(
    'an image in phase %s is queued again on every change of the spec',
    (phase) => {
      const attempt = { ...ATTEMPT, generation: 1 };
      const changed = image({ ...failed, phase, attempt }, { spec: { secretRef: 'keys' } });
      const { status } = next(changed);
      expect(status.phase).toBe('Queued');
      expect(status).not.toHaveProperty('failureCount');
      expect(next(image(status), { slot: 'held' }).status.attempt?.generation).toBe(2);
    },
  );

  test('a failed image that has an imported disk is synced again without another download', () => {
    const attempt = { ...ATTEMPT, generation: 1 };
    const changed = image(
      { ...failed, phase: 'RetryableFailure', attempt },
      { spec: { snapshotClass: 'fast' } },
    );
    expect(shown(next(changed, { ...IMPORTED, slot: 'held' }))).toEqual(['create win-12345678-1-1']);
  });

  test('a Failed image stays Failed without a new retry request, even if its deletion increases the generation', () => {
    const options = { annotations: { 'vmwright.dev/retry': 'one' } };
    const attempt = { ...ATTEMPT, generation: 2 };
    expect(next(image({ ...failed, attempt }, options)).status.phase).toBe('Failed');
    const deleted = image(
      { ...failed, attempt: { ...attempt, generation: 1 } },
      { ...options, deleting: true },
    );
    expect(next(deleted).status.phase).toBe('Failed');
  });

  test('a value of the retry annotation that was set before the failure counts as handled', () => {
    const annotations = { 'vmwright.dev/retry': 'early' };
    const seen = {
      slot: 'held',
      volume: volume({ phase: 'Failed', conditions: running('got 404') }),
    } as const;
    expect(next(image(SYNCING, { annotations }), seen).status.retryRequest).toBe('early');
  });
});

describe('Ready images', () => {
  test('a Ready image writes nothing when nothing changes', () => {
    const first = next(image(READY), COMPLETE);
    const second = next(image(first.status), COMPLETE, NOW + HOUR);
    expect(second.status).toEqual(first.status);
    expect(second).toMatchObject({ actions: [], events: [] });
  });

  test.each<[string, Partial<Observed>, readonly string[]]>([
    ['its DataVolume', { snapshots: COMPLETE.snapshots }, ['acquireSlot']],
    ['its claim', { ...COMPLETE, claim: undefined }, ['delete DataVolume farm/win-12345678-1']],
    ['its volume', { ...COMPLETE, claim: { ...CLAIM, status: { phase: 'Lost' } } }, expect.any(Array)],
    ['its snapshot', IMPORTED, ['acquireSlot']],
  ])('a Ready image is synced again when %s vanished', (_, seen, actions) => {
    const planned = next(image(READY), seen);
    expect(planned.status.phase).toBe('Queued');
    expect(planned.status).not.toHaveProperty('snapshots');
    expect(shown(planned)).toEqual(actions);
  });

  test('a Ready image replaces an unusable snapshot without another download', () => {
    const broken = { ...IMPORTED, snapshots: [snapshot({ readyToUse: false })] };
    const planned = next(image(READY), broken);
    expect(shown(planned)).toEqual(['delete VolumeSnapshot farm/win-12345678-1-1']);
    expect(shown(next(image(planned.status), IMPORTED))).toEqual(['acquireSlot']);
    expect(shown(next(image(planned.status), { ...IMPORTED, slot: 'held' }))).toEqual([
      'create win-12345678-1-1',
    ]);
  });

  test('a Ready image keeps its old data until the data of a new source is imported', () => {
    const changed = { spec: { diskSize: '20Gi' } };
    const queued = next(image(READY, changed), COMPLETE);
    expect(shown(queued)).toEqual(['acquireSlot']);
    const begun = next(image(queued.status, changed), { ...COMPLETE, slot: 'held' });
    expect(shown(begun)).toEqual(['create win-12345678-2']);
    const done: Partial<Observed> = {
      slot: 'held',
      claim: CLAIM,
      volume: volume({ phase: 'Succeeded' }, { name: 'win-12345678-2' }),
      snapshots: [snapshot({ readyToUse: true }, { name: 'win-12345678-2-1' })],
      obsolete: { volumes: [IMPORTED.volume], snapshots: COMPLETE.snapshots },
    };
    expect(shown(next(image(begun.status, changed), done))).toEqual([
      'delete VolumeSnapshot farm/win-12345678-1-1',
      'delete DataVolume farm/win-12345678-1',
      'releaseSlot',
    ]);
    const clone: DataVolume = {
      metadata: { namespace: 'lab', name: 'root', uid: 'root' },
      spec: { source: { snapshot: { namespace: 'farm', name: 'win-12345678-1-1' } } },
    };
    const cloning = { ...done, users: { machines: [], clones: [clone] } };
    expect(shown(next(image(begun.status, changed), cloning)), 'a disk is being cloned').toEqual([
      'releaseSlot',
    ]);
  });

  test('a Ready image is not synced when retention, maxClones or name change', () => {
    const spec = { retention: { pruneAfter: '72h' }, maxClones: 7, name: 'other' };
    expect(next(image(READY, { spec }), COMPLETE).status.phase).toBe('Ready');
  });

  test('a Ready image takes one more snapshot when every snapshot has maxClones clones', () => {
    const spec = { maxClones: 2 };
    const machines = ['a', 'b'].map((name) => machine(name, 'win-12345678-1-1'));
    const full = { ...COMPLETE, users: { machines, clones: [] } };
    const planned = next(image(READY, { spec }), full);
    expect(planned.status).toMatchObject({
      phase: 'Ready',
      snapshots: [{ name: 'win-12345678-1-1', clones: 2 }],
    });
    expect(shown(planned)).toEqual(['create win-12345678-1-2']);
    const pending = snapshot(undefined, { name: 'win-12345678-1-2' });
    const waiting = next(image(READY, { spec }), { ...full, snapshots: [...COMPLETE.snapshots, pending] });
    expect(waiting).toMatchObject({ actions: [], requeueAfterMs: 59 * MINUTE });
    const stuck = snapshot(undefined, { name: 'win-12345678-1-2', created: ago(HOUR) });
    expect(
      shown(next(image(READY, { spec }), { ...full, snapshots: [...COMPLETE.snapshots, stuck] })),
    ).toEqual(['delete VolumeSnapshot farm/win-12345678-1-2']);
    const one = { ...COMPLETE, users: { machines: machines.slice(1), clones: [] } };
    expect(next(image(READY, { spec }), one).actions).toEqual([]);
  });
});

describe('data of another controller', () => {
  const theirs = {
    volume: volume({ phase: 'Succeeded' }, { name: 'win' }),
    claim: { ...CLAIM, metadata: { namespace: 'farm', name: 'win' } },
    snapshots: [snapshot({ readyToUse: true }, { name: 'win-snapshot' })],
  };

  test('a Ready image adopts data that another controller imported, and imports new data when the source changes', () => {
    const planned = next(image({ phase: 'Ready' }), theirs);
    expect(planned.actions).toEqual([]);
    expect(planned.status).toMatchObject({
      phase: 'Ready',
      dataVolume: 'win',
      attempt: { number: 0, source: sourceDigest(SPEC) },
      snapshots: [{ name: 'win-snapshot', clones: 0 }],
    });
    expect(next(image(planned.status), theirs)).toMatchObject({ status: planned.status, events: [] });
    const changed = next(image(planned.status, { spec: { url: 'http://images.example/other' } }), theirs);
    expect(changed.status.phase).toBe('Queued');
  });

  test('data of another controller is adopted only if the image is Ready and has a usable snapshot', () => {
    expect(next(image({ phase: 'Syncing' }), theirs).status.phase).toBe('Queued');
    expect(next(image({ phase: 'Ready' }), { ...theirs, snapshots: [] }).status.phase).toBe('Queued');
  });
});

describe('pruning of unreferenced images', () => {
  const unused = { ...READY, unreferencedSince: ago(23 * HOUR) };
  const announced = { ...unused, pruneAt: ago(-HOUR) };

  test('pruning is announced when an image becomes unreferenced', () => {
    const planned = next(image(READY), COMPLETE);
    expect(planned.status).toMatchObject({ unreferencedSince: ago(0), pruneAt: ago(-24 * HOUR) });
    expect(planned).toMatchObject({ events: [{ reason: 'PruneScheduled' }], requeueAfterMs: 24 * HOUR });
    expect(next(image(planned.status), COMPLETE).events).toEqual([]);
  });

  test('an unreferenced image is pruned at the announced time, and not without an announcement', () => {
    expect(next(image(announced), COMPLETE).actions).toEqual([]);
    expect(shown(next(image(announced), COMPLETE, NOW + HOUR))).toEqual(['prune']);
    expect(next(image(unused), COMPLETE, NOW + 2 * HOUR).actions).toEqual([]);
  });

  test('a shorter retention takes effect only after another announcement and a notice period', () => {
    const later = { ...READY, unreferencedSince: ago(4 * HOUR), pruneAt: ago(-20 * HOUR) };
    const spec = { retention: { pruneAfter: '1h' } };
    const planned = next(image(later, { spec }), COMPLETE);
    expect(planned.status.pruneAt).toBe(ago(-HOUR));
    expect(planned).toMatchObject({ actions: [], events: [{ reason: 'PruneScheduled' }] });
    const between = next(image(planned.status, { spec }), COMPLETE, NOW + HOUR / 2);
    expect(between).toMatchObject({ status: { pruneAt: ago(-HOUR) }, actions: [], events: [] });
    expect(shown(next(image(planned.status, { spec }), COMPLETE, NOW + HOUR))).toEqual(['prune']);
    // A longer retention takes effect immediately.
    expect(next(image(planned.status), COMPLETE).status.pruneAt).toBe(ago(-20 * HOUR));
  });

  test('when retention.keep is removed from a long unreferenced image, pruning is announced a day ahead', () => {
    const kept = { ...READY, unreferencedSince: ago(1_000 * HOUR) };
    const planned = next(image(kept, { spec: { retention: { pruneAfter: '72h' } } }), COMPLETE);
    expect(planned).toMatchObject({ status: { pruneAt: ago(-24 * HOUR) }, actions: [] });
  });

  test('a reference cancels the pruning of an image', () => {
    const planned = next(
      image(announced),
      { ...COMPLETE, users: { machines: [machine('a')], clones: [] } },
      NOW + HOUR,
    );
    expect(planned.status).not.toHaveProperty('pruneAt');
    expect(planned.status).not.toHaveProperty('unreferencedSince');
    expect(planned.status).toMatchObject({ references: 1, referencedBy: ['VirtualMachine lab/a'] });
    expect(planned.actions).toEqual([]);
  });

  test.each(['Orphan', 'unknown'])(
    'an unreferenced image is not pruned with the deletion policy %s',
    (policy) => {
      const annotations = { 'vmwright.dev/deletion-policy': policy };
      const planned = next(image(announced, { annotations }), COMPLETE, NOW + 2 * HOUR);
      expect(planned.status).not.toHaveProperty('pruneAt');
      expect(planned.actions).toEqual([]);
    },
  );

  test('an image is not pruned if it has retention.keep or is not Ready', () => {
    expect(next(image(unused, { spec: { retention: { keep: true } } }), COMPLETE).status).not.toHaveProperty(
      'pruneAt',
    );
    const resynced = next(image(announced), IMPORTED, NOW + 2 * HOUR);
    expect(resynced.status.phase).toBe('Queued');
    expect(resynced.status).not.toHaveProperty('pruneAt');
  });
});

describe('imports without progress', () => {
  const stalled = { ...SYNCING, attempt: { ...ATTEMPT, progressedAt: ago(10 * MINUTE) } };
  test.each<[string, Partial<Observed>]>([
    [
      'the StorageClass fast does not exist',
      { volume: volume({ phase: 'Pending' }), storageClass: 'the StorageClass fast does not exist' },
    ],
    [
      'the PersistentVolumeClaim farm/win-12345678-1 is Pending (NoSpace: full)',
      {
        volume: volume({
          phase: 'Pending',
          conditions: [{ type: 'Bound', status: 'False', reason: 'NoSpace', message: 'full' }],
        }),
        claim: { ...CLAIM, status: { phase: 'Pending' } },
      },
    ],
    [
      'the importer of the DataVolume farm/win-12345678-1 is in phase ImportScheduled (ImagePullFailed: no image)',
      {
        volume: volume({
          phase: 'ImportScheduled',
          conditions: [{ type: 'Running', status: 'False', reason: 'ImagePullFailed', message: 'no image' }],
        }),
        claim: CLAIM,
      },
    ],
    ['the VolumeSnapshot farm/win-12345678-1-1 is not ready', { ...IMPORTED, snapshots: [snapshot()] }],
  ])('an import without progress is reported with the object that blocks it: %s', (message, seen) => {
    const done = seen.volume?.status?.phase === 'Succeeded' ? { ...stalled, progress: 100 } : stalled;
    const planned = next(image(done), { slot: 'held', ...seen });
    expect(condition(planned, 'Progressing')).toMatchObject({ status: 'False', reason: 'NoProgress' });
    expect(condition(planned, 'Progressing')?.message).toContain(message);
    expect(next(image(planned.status), { slot: 'held', ...seen }, NOW + MINUTE).status).toEqual(
      planned.status,
    );
  });

  test('an import without progress is not reported as stalled before the time limit', () => {
    const seen = { slot: 'held', volume: volume({ phase: 'ImportInProgress' }), claim: CLAIM } as const;
    const planned = next(image(SYNCING), seen);
    expect(condition(planned, 'Progressing')?.status).toBe('True');
    expect(planned.requeueAfterMs).toBe(MINUTE);
  });
});

describe('paused, terminating and foreign images', () => {
  test('an image that is paused is only observed', () => {
    const annotations = { 'vmwright.dev/paused': 'true' };
    for (const status of [undefined, SYNCING, READY, { phase: 'Queued', queuedAt: ago(0) } as const]) {
      const planned = next(image(status, { annotations }), {
        users: { machines: [machine('a')], clones: [] },
      });
      expect(planned.actions).toEqual([]);
      expect(planned.status.phase).toBe(status?.phase);
      expect(planned.status.references).toBe(1);
      expect(condition(planned, 'Paused')?.status).toBe('True');
    }
  });

  test('an image that is paused returns to the queue and releases its slot once its disk is imported', () => {
    const annotations = { 'vmwright.dev/paused': 'true' };
    const paused = image(SYNCING, { annotations });
    const importing = next(paused, { slot: 'held', volume: volume({ phase: 'ImportInProgress' }) });
    expect(importing).toMatchObject({ status: { phase: 'Syncing' }, actions: [] });
    expect(shown(next(paused, { slot: 'held' })), 'not created yet').toEqual([]);
    const { status, ...planned } = next(paused, { slot: 'held', ...IMPORTED });
    expect(status).toMatchObject({ phase: 'Queued', queuedAt: ago(0) });
    expect(shown({ status, ...planned })).toEqual(['releaseSlot']);
    const again = next(image(status, { annotations }), { slot: 'held', ...IMPORTED });
    expect(shown(again), 'after a crash').toEqual(['releaseSlot']);
    expect(next(image(status, { annotations }), IMPORTED)).toEqual({ status, actions: [] });
    expect(shown(next(image(status), { slot: 'held', ...IMPORTED }))).toEqual(['create win-12345678-1-1']);
  });

  test('an image that is paused reports a failed import and releases its slot', () => {
    const annotations = { 'vmwright.dev/paused': 'true' };
    const seen = { slot: 'held', volume: volume({ phase: 'Failed' }) } as const;
    const planned = next(image(SYNCING, { annotations }), seen);
    expect(planned).toMatchObject({ failure: 'ImportFailed', status: { phase: 'RetryableFailure' } });
    expect(condition(planned, 'Paused')?.status).toBe('True');
    expect(shown(planned)).toEqual(['releaseSlot']);
    const after = image(planned.status, { annotations });
    expect(shown(next(after, seen)), 'after a crash').toEqual(['releaseSlot']);
    expect(next(after, { volume: seen.volume })).toEqual({ status: planned.status, actions: [] });
  });

  test('an image that is being deleted stays usable while it is referenced', () => {
    const users = { machines: ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => machine(name)), clones: [] };
    const planned = next(image(READY, { deleting: true }), { ...COMPLETE, users });
    expect(planned.status.phase).toBe('Ready');
    expect(condition(planned, 'DeletionBlocked')).toMatchObject({ status: 'True' });
    expect(condition(planned, 'DeletionBlocked')?.message).toContain('VirtualMachine lab/e and 1 more');
    const marked = next(image({ ...READY, phase: 'Deleting' }, { deleting: true }), { ...COMPLETE, users });
    expect(marked.status.phase).toBe('Ready');
  });

  test('an image with a status from another controller is imported if its data does not exist', () => {
    expect(next(image({ phase: 'Ready' })).status.phase).toBe('Queued');
    expect(next(image({ phase: 'Syncing' })).status.phase).toBe('Queued');
  });
});
