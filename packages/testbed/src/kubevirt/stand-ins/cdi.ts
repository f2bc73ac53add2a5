import { type Api, field, type KubeObject } from '../../kubernetes/api.ts';
import type { Cluster } from '../../kubernetes/cluster.ts';
import { Mirror } from '../../kubernetes/mirror.ts';
import { createClaim, waitsForConsumer } from './claim.ts';
import { cloneData, cloneSourceOf } from './clone.ts';
import { notRunning } from './data-volume-status.ts';
import { importData } from './import.ts';
import { sourceOf } from './import-behaviour.ts';
import { type CdiCaches, PopulatedVolume } from './populated-volume.ts';
import { startWorker } from './worker.ts';

/**
 * Stand-in for CDI's controller, importer and cloner. Creates the claim of a DataVolume and waits until the claim is
 * bound. Then goes through the phases of an import or clone, without copying data. A test can select one of the
 * behaviours in `ImportBehaviour`. As in CDI without volume populators, the claim is bound before the data is imported.
 */
export function startCdi({ api }: Cluster): Disposable {
  const stack = new DisposableStack();
  const mirror = (path: string) => stack.use(new Mirror(api, path));
  const firstVolumes = new Map<string, string>();
  const caches: CdiCaches = {
    claims: mirror('/api/v1/persistentvolumeclaims'),
    snapshots: mirror('/apis/snapshot.storage.k8s.io/v1/volumesnapshots'),
    classes: mirror('/apis/storage.k8s.io/v1/storageclasses'),
    volumes: stack.use(
      startWorker(api, '/apis/cdi.kubevirt.io/v1beta1/datavolumes', (volume) =>
        populate(api, caches, firstVolumes, volume),
      ),
    ),
  };
  return stack;
}

/** @param firstVolumes UID of the first DataVolume of each URL, for the behaviour `fail-once` */
async function populate(
  api: Api,
  caches: CdiCaches,
  firstVolumes: Map<string, string>,
  object: KubeObject,
): Promise<void> {
  const done = ['Succeeded', 'Failed'].includes(String(field(object, 'status', 'phase')));
  if (done || object.metadata.deletionTimestamp !== undefined) return;
  const volume = new PopulatedVolume(api, caches, object);
  const rejection = await createClaim(api, object);
  if (rejection !== undefined) {
    const bound = notRunning('ErrClaimNotValid', rejection);
    return volume.report({ phase: 'Pending', bound });
  }
  await volume.until(() => volume.claim !== undefined);
  const waits = waitsForConsumer(object, caches.classes);
  await volume.report({ phase: waits ? 'WaitForFirstConsumer' : 'Pending', progress: 'N/A' });
  await volume.until(() => volume.claim === undefined || field(volume.claim, 'status', 'phase') === 'Bound');
  if (volume.claim === undefined) throw new Error('the claim was deleted; it is created again');

  const cloned = cloneSourceOf(object, caches);
  if (cloned !== undefined) await cloneData(volume, cloned);
  else if (field(object, 'spec', 'source', 'blank') === undefined) {
    const source = sourceOf(object);
    const { uid } = object.metadata;
    if (!firstVolumes.has(source.url)) firstVolumes.set(source.url, uid);
    const isFirst = firstVolumes.get(source.url) === uid;
    if ((await importData(volume, source, isFirst)) === 'failed') return;
  }
  await volume.step();
  const running = notRunning('Completed', cloned === undefined ? 'Import Complete' : 'Clone Complete');
  await volume.report({ phase: 'Succeeded', progress: '100.0%', running });
}
