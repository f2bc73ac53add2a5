import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, field, isRecord, type KubeObject } from '../../kubernetes/api.ts';
import type { Cluster } from '../../kubernetes/cluster.ts';
import { Mirror } from '../../kubernetes/mirror.ts';
import { persist } from './persist.ts';

const STEP_MS = 200;
const STEER = 'testbed.vmwright.dev/import';
const IMMEDIATE = 'cdi.kubevirt.io/storage.bind.immediate.requested';

/**
 * Plays CDI's controller and importer: a DataVolume gets a claim, waits for its volume, and goes through the phases of
 * an import. No byte is moved. Steered by the annotation `testbed.vmwright.dev/import` on the DataVolume:
 *
 * - `slow`: ten times as slow
 * - `hang`: stays in progress until the annotation goes
 * - `fail`: ends Failed
 * - `404`: the importer restarts again and again, as for a URL that is not there
 */
export function startCdi({ api }: Cluster): Disposable {
  const stack = new DisposableStack();
  const claims = stack.use(new Mirror(api, '/api/v1/persistentvolumeclaims'));
  const snapshots = stack.use(new Mirror(api, '/apis/snapshot.storage.k8s.io/v1/volumesnapshots'));
  const classes = stack.use(new Mirror(api, '/apis/storage.k8s.io/v1/storageclasses'));
  const busy = new Set<string>();
  const volumes = stack.use(
    new Mirror(api, '/apis/cdi.kubevirt.io/v1beta1/datavolumes', (volume) => void take(volume)),
  );
  return stack;

  async function take({ metadata: { uid } }: KubeObject): Promise<void> {
    if (busy.has(uid)) return;
    busy.add(uid);
    await persist(
      async () => {
        const volume = volumes.get(uid);
        if (volume !== undefined) await populate(volume);
      },
      () => volumes.get(uid) !== undefined && !stack.disposed,
    );
    busy.delete(uid);
  }

  async function populate(volume: KubeObject): Promise<void> {
    const { uid, name, namespace } = volume.metadata;
    const done = ['Succeeded', 'Failed'].includes(String(field(volume, 'status', 'phase')));
    if (done || volume.metadata.deletionTimestamp !== undefined) return;
    const steer = () => volumes.get(uid)?.metadata.annotations?.[STEER];
    const exists = () => volumes.get(uid) !== undefined;
    const report = (phase: string, details: Details = {}) =>
      api.merge(`/apis/cdi.kubevirt.io/v1beta1/namespaces/${namespace}/datavolumes/${name}/status`, {
        status: { phase, claimName: name, ...details.status, conditions: conditions(phase, details) },
      });
    const step = () => sleep(steer() === 'slow' ? STEP_MS * 10 : STEP_MS);

    const refusal = await createClaim(volume);
    if (refusal !== undefined)
      return void (await report('Pending', { message: refusal, reason: 'ErrClaimNotValid' }));
    await report(waitsForConsumer(volume) ? 'WaitForFirstConsumer' : 'Pending');
    const claim = () =>
      claims.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
    await claims.until(() => field(claim(), 'status', 'phase') === 'Bound' || !exists());

    const source = field(volume, 'spec', 'source');
    if (field(source, 'snapshot') !== undefined) {
      await report('SnapshotForSmartCloneInProgress');
      const is = ({ metadata }: KubeObject) =>
        metadata.name === field(source, 'snapshot', 'name') &&
        metadata.namespace === field(source, 'snapshot', 'namespace');
      await snapshots.until(() => field(snapshots.find(is), 'status', 'readyToUse') === true || !exists());
    } else if (field(source, 'blank') === undefined) {
      await report('ImportScheduled');
      await step();
      for (const progress of ['0.0%', '25.4%', '61.0%', '92.7%']) {
        await report('ImportInProgress', { status: { progress } });
        await step();
        if (steer() === 'fail')
          return void (await report('Failed', { status: { progress, restartCount: 3 } }));
        for (let restartCount = 1; steer() === '404'; restartCount++) {
          const message =
            'Unable to connect to http data source: expected status code 200, got 404. Status: 404 Not Found';
          await report('ImportInProgress', { status: { progress, restartCount }, message });
          await sleep(STEP_MS * 5);
        }
        await volumes.until(() => steer() !== 'hang');
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

  /** @returns why the API server will never take it */
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
            // CDI asks for a volume at once by letting its own pod be the first consumer; the effect is this annotation.
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
      if (error.status !== 409) throw error; // made before, by an attempt that was cut short
    }
    return undefined;
  }
}

interface Details {
  readonly status?: Readonly<Record<string, unknown>>;
  /** Why the importer is not running. */
  readonly message?: string;
  readonly reason?: string;
}

function storageOf(volume: KubeObject): Readonly<Record<string, unknown>> {
  const storage = field(volume, 'spec', 'storage') ?? field(volume, 'spec', 'pvc');
  return isRecord(storage) ? storage : {};
}

function conditions(phase: string, { message, reason = 'Error' }: Details): object[] {
  const now = new Date().toISOString().replace(/\.\d+/, '');
  const of = (type: string, is: boolean, extra: object = {}) => ({
    type,
    status: is ? 'True' : 'False',
    lastTransitionTime: now,
    lastHeartbeatTime: now,
    ...extra,
  });
  return [
    of('Bound', !['Pending', 'WaitForFirstConsumer'].includes(phase)),
    of('Ready', phase === 'Succeeded'),
    of(
      'Running',
      phase === 'ImportInProgress' && message === undefined,
      message === undefined ? {} : { reason, message },
    ),
  ];
}
