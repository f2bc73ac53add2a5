import { setTimeout as sleep } from 'node:timers/promises';
import { field, type KubeObject } from '../../kubernetes/api.ts';
import type { Cluster } from '../../kubernetes/cluster.ts';
import { Mirror } from '../../kubernetes/mirror.ts';
import { DEFAULT_SNAPSHOT_CLASS } from './storage-classes.ts';
import { startWorker } from './worker.ts';

/**
 * Annotation on a VolumeSnapshot that selects its behaviour: `fail` or `hang`. It overrides the behaviour that the
 * VolumeSnapshotClass selects.
 */
const BEHAVIOUR = 'testbed.vmwright.dev/snapshot';
/** Annotation on a VolumeSnapshot: duration of the snapshot, such as `5s`. */
const DURATION = 'testbed.vmwright.dev/snapshot-time';

const DURATION_MS = 300;
/** Time before a problem is reported. Until then, the caches of claims and classes may be older than the snapshot. */
const CACHE_LAG_MS = 500;

/**
 * Stand-in for the CSI snapshot controller and snapshotter. A snapshot becomes ready if its class exists and its claim
 * is bound. Otherwise, its status reports the error until the cause is gone. The stand-in creates no
 * VolumeSnapshotContents, and its snapshots have no finalizers.
 */
export function startSnapshotter({ api }: Cluster): Disposable {
  const stack = new DisposableStack();
  const mirror = (path: string) => stack.use(new Mirror(api, path));
  const claims = mirror('/api/v1/persistentvolumeclaims');
  const classes = mirror('/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses');
  const snapshots = stack.use(
    startWorker(api, '/apis/snapshot.storage.k8s.io/v1/volumesnapshots', takeSnapshot),
  );
  return stack;

  async function takeSnapshot(snapshot: KubeObject): Promise<void> {
    const { name, namespace, uid } = snapshot.metadata;
    const current = () => {
      const object = snapshots.get(uid);
      return object?.metadata.deletionTimestamp === undefined ? object : undefined;
    };
    const until = async (predicate: () => boolean) => {
      while (current() !== undefined && !snapshots.disposed && !predicate())
        await Promise.race([snapshots, claims, classes].map((each) => each.nextChange()));
    };
    const setStatus = async (status: object) => {
      if (current() === undefined) return;
      const path = `/apis/snapshot.storage.k8s.io/v1/namespaces/${namespace}/volumesnapshots/${name}/status`;
      await api.merge(path, { metadata: { uid }, status });
    };
    const setError = (message: string) =>
      setStatus({ readyToUse: false, error: { message, time: new Date().toISOString() } });

    if (field(snapshot, 'status', 'readyToUse') === true) return;
    if (problemOf(snapshot) !== undefined) await sleep(CACHE_LAG_MS);
    for (let problem = problemOf(snapshot); problem !== undefined; problem = problemOf(snapshot)) {
      const reported = problem;
      await setError(reported);
      await until(() => problemOf(snapshot) !== reported);
      if (current() === undefined) return;
    }
    await setStatus({ boundVolumeSnapshotContentName: `snapcontent-${uid}`, readyToUse: false, error: null });
    await sleep(durationOf(snapshot));
    if (behaviourOf(current()) === 'fail') await setError('no space left for snapshots');
    await until(() => behaviourOf(current()) === undefined);
    await setStatus({
      readyToUse: true,
      creationTime: new Date().toISOString(),
      restoreSize: field(claimOf(snapshot), 'status', 'capacity', 'storage'),
      error: null,
    });
  }

  /** Returns the reason why the snapshot cannot be taken; undefined if there is none. */
  function problemOf(snapshot: KubeObject): string | undefined {
    const requested = field(snapshot, 'spec', 'volumeSnapshotClassName');
    if (classOf(snapshot) === undefined)
      return requested === undefined
        ? 'Failed to set default snapshot class with error cannot find default snapshot class'
        : `failed to retrieve snapshot class ${requested} from the informer: "volumesnapshotclass.snapshot.storage.k8s.io \\"${requested}\\" not found"`;
    const name = field(snapshot, 'spec', 'source', 'persistentVolumeClaimName');
    const claim = claimOf(snapshot);
    const failure = `Failed to create snapshot content with error failed to get input parameters to create snapshot ${snapshot.metadata.name}:`;
    if (claim === undefined)
      return `${failure} "failed to retrieve PVC ${name} from the lister: \\"persistentvolumeclaim \\\\\\"${name}\\\\\\" not found\\""`;
    if (field(claim, 'status', 'phase') !== 'Bound')
      return `${failure} "the PVC ${name} is not yet bound to a PV, will not attempt to take a snapshot"`;
    return undefined;
  }

  function claimOf(snapshot: KubeObject): KubeObject | undefined {
    const name = field(snapshot, 'spec', 'source', 'persistentVolumeClaimName');
    const { namespace } = snapshot.metadata;
    return claims.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
  }

  function classOf(snapshot: KubeObject): KubeObject | undefined {
    const name = field(snapshot, 'spec', 'volumeSnapshotClassName');
    return classes.find(({ metadata }) =>
      name === undefined ? metadata.annotations?.[DEFAULT_SNAPSHOT_CLASS] === 'true' : metadata.name === name,
    );
  }

  function behaviourOf(snapshot: KubeObject | undefined): unknown {
    if (snapshot === undefined) return undefined;
    return snapshot.metadata.annotations?.[BEHAVIOUR] ?? field(classOf(snapshot), 'parameters', 'behaviour');
  }
}

function durationOf({ metadata }: KubeObject): number {
  const seconds = /^(\d+)s$/.exec(metadata.annotations?.[DURATION] ?? '')?.[1];
  return seconds === undefined ? DURATION_MS : Number(seconds) * 1_000;
}
