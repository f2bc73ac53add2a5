import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, field, isRecord, type KubeObject } from '../../kubernetes/api.ts';
import type { Cluster } from '../../kubernetes/cluster.ts';
import { Mirror } from '../../kubernetes/mirror.ts';
import { retry } from './retry.ts';

const STEP_MS = 200;
const BEHAVIOUR = 'testbed.vmwright.dev/import';
const IMMEDIATE = 'cdi.kubevirt.io/storage.bind.immediate.requested';

/**
 * Stand-in for CDI's controller and importer: creates the claim of a DataVolume, waits until it is bound, and goes through the
 * phases of an import without copying data. The annotation `testbed.vmwright.dev/import` on the DataVolume selects a behaviour:
 *
 * - `slow`: ten times slower
 * - `hang`: stays in progress until the annotation is removed
 * - `fail`: ends as Failed
 * - `404`: the importer keeps restarting, as for a missing URL
 */
export function startCdi({ api }: Cluster): Disposable {
  const stack = new DisposableStack();
  const claims = stack.use(new Mirror(api, '/api/v1/persistentvolumeclaims'));
  const snapshots = stack.use(new Mirror(api, '/apis/snapshot.storage.k8s.io/v1/volumesnapshots'));
  const classes = stack.use(new Mirror(api, '/apis/storage.k8s.io/v1/storageclasses'));
  const inProgress = new Set<string>();
  const volumes = stack.use(
    new Mirror(api, '/apis/cdi.kubevirt.io/v1beta1/datavolumes', (volume) => void reconcile(volume)),
  );
  return stack;

  async function reconcile({ metadata: { uid } }: KubeObject): Promise<void> {
    if (inProgress.has(uid)) return;
    inProgress.add(uid);
    await retry(
      async () => {
        const volume = volumes.get(uid);
        if (volume !== undefined) await populate(volume);
      },
      () => volumes.get(uid) !== undefined && !stack.disposed,
    );
    inProgress.delete(uid);
  }

  async function populate(volume: KubeObject): Promise<void> {
    const { uid, name, namespace } = volume.metadata;
    const done = ['Succeeded', 'Failed'].includes(String(field(volume, 'status', 'phase')));
    if (done || volume.metadata.deletionTimestamp !== undefined) return;
    const behaviour = () => volumes.get(uid)?.metadata.annotations?.[BEHAVIOUR];
    const exists = () => volumes.get(uid) !== undefined;
    const report = (phase: string, details: Details = {}) =>
      api.merge(`/apis/cdi.kubevirt.io/v1beta1/namespaces/${namespace}/datavolumes/${name}/status`, {
        status: { phase, claimName: name, ...details.status, conditions: conditions(phase, details) },
      });
    const step = () => sleep(behaviour() === 'slow' ? STEP_MS * 10 : STEP_MS);

    const rejection = await createClaim(volume);
    if (rejection !== undefined)
      return void (await report('Pending', { message: rejection, reason: 'ErrClaimNotValid' }));
    await report(waitsForConsumer(volume) ? 'WaitForFirstConsumer' : 'Pending');
    const claim = () =>
      claims.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
    await claims.until(() => field(claim(), 'status', 'phase') === 'Bound' || !exists());

    const source = field(volume, 'spec', 'source');
    if (field(source, 'snapshot') !== undefined) {
      await report('SnapshotForSmartCloneInProgress');
      const isSource = ({ metadata }: KubeObject) =>
        metadata.name === field(source, 'snapshot', 'name') &&
        metadata.namespace === field(source, 'snapshot', 'namespace');
      await snapshots.until(
        () => field(snapshots.find(isSource), 'status', 'readyToUse') === true || !exists(),
      );
    } else if (field(source, 'blank') === undefined) {
      await report('ImportScheduled');
      await step();
      for (const progress of ['0.0%', '25.4%', '61.0%', '92.7%']) {
        await report('ImportInProgress', { status: { progress } });
        await step();
        if (behaviour() === 'fail')
          return void (await report('Failed', { status: { progress, restartCount: 3 } }));
        for (let restartCount = 1; behaviour() === '404'; restartCount++) {
          const message =
            'Unable to connect to http data source: expected status code 200, got 404. Status: 404 Not Found';
          await report('ImportInProgress', { status: { progress, restartCount }, message });
          await sleep(STEP_MS * 5);
        }
        await volumes.until(() => behaviour() !== 'hang');
      }
    }
    await step();
    await report('Succeeded', { status: { progress: '100.0%' } });
  }

  function waitsForConsumer(volume: KubeObject): boolean {
    if (volume.metadata.annotations?.[IMMEDIATE] !== undefined) return false;
    const name = field(storageOf(volume), 'storageClassName');
    const storageClass = classes.find(({ metadata }) =>
      name === undefined
        ? metadata.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true'
        : metadata.name === name,
    );
    return field(storageClass, 'volumeBindingMode') === 'WaitForFirstConsumer';
  }

  /** Creates the claim. @returns the API server's message if it rejects the claim as invalid */
  async function createClaim(volume: KubeObject): Promise<string | undefined> {
    const { name, namespace, uid, annotations } = volume.metadata;
    const immediate = annotations?.[IMMEDIATE] !== undefined;
    try {
      await api.create(`/api/v1/namespaces/${namespace}/persistentvolumeclaims`, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: {
          name,
          labels: { app: 'containerized-data-importer' },
          annotations: {
            'cdi.kubevirt.io/storage.contentType': 'kubevirt',
            // Real CDI starts a pod as first consumer to get the volume at once; the effect on the claim is this annotation.
            ...(immediate && { 'volume.kubernetes.io/selected-node': 'any' }),
          },
          ownerReferences: [
            {
              apiVersion: 'cdi.kubevirt.io/v1beta1',
              kind: 'DataVolume',
              name,
              uid,
              controller: true,
              blockOwnerDeletion: true,
            },
          ],
        },
        spec: { accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem', ...storageOf(volume) },
      });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 422) return error.message;
      if (error.status !== 409) throw error; // 409: created by an earlier attempt that was interrupted
    }
    return undefined;
  }
}

interface Details {
  readonly status?: Readonly<Record<string, unknown>>;
  /** Reason why the importer is not running. */
  readonly message?: string;
  readonly reason?: string;
}

function storageOf(volume: KubeObject): Readonly<Record<string, unknown>> {
  const storage = field(volume, 'spec', 'storage') ?? field(volume, 'spec', 'pvc');
  return isRecord(storage) ? storage : {};
}

function conditions(phase: string, { message, reason = 'Error' }: Details): object[] {
  const now = new Date().toISOString().replace(/\.\d+/, '');
  const condition = (type: string, isTrue: boolean, extra: object = {}) => ({
    type,
    status: isTrue ? 'True' : 'False',
    lastTransitionTime: now,
    lastHeartbeatTime: now,
    ...extra,
  });
  return [
    condition('Bound', !['Pending', 'WaitForFirstConsumer'].includes(phase)),
    condition('Ready', phase === 'Succeeded'),
    condition(
      'Running',
      phase === 'ImportInProgress' && message === undefined,
      message === undefined ? {} : { reason, message },
    ),
  ];
}
