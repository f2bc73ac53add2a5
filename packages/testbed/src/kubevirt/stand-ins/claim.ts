import { type Api, ApiError, field, isRecord, type KubeObject } from '../../kubernetes/api.ts';
import type { Mirror } from '../../kubernetes/mirror.ts';
import { behaviourOf } from './import-behaviour.ts';
import { UNPROVISIONED } from './provisioner.ts';

const IMMEDIATE = 'cdi.kubevirt.io/storage.bind.immediate.requested';

/**
 * Creates the claim of a DataVolume.
 * @returns the API server's message if it rejects the claim as invalid
 * @throws if another DataVolume, which may be terminating, has a claim with this name
 */
export async function createClaim(api: Api, volume: KubeObject): Promise<string | undefined> {
  const { name, namespace, uid } = volume.metadata;
  const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
  try {
    await api.create(path, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name,
        labels: { app: 'containerized-data-importer' },
        annotations: {
          'cdi.kubevirt.io/storage.contentType': 'kubevirt',
          // Real CDI starts a pod as the first consumer, so that the claim is bound immediately. The scheduler then
          // sets this annotation on the claim.
          ...(bindsAtOnce(volume) && { 'volume.kubernetes.io/selected-node': 'any' }),
          ...(behaviourOf(volume).unbound && UNPROVISIONED),
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
    const existing = error.status === 409 ? await api.get(`${path}/${name}`) : undefined;
    if (!isClaimOf(existing, uid)) throw error;
  }
  return undefined;
}

/** Returns whether a claim belongs to the DataVolume with this UID. */
export function isClaimOf(claim: KubeObject | undefined, uid: string): boolean {
  const owners = field(claim, 'metadata', 'ownerReferences');
  return Array.isArray(owners) && owners.some((owner) => field(owner, 'uid') === uid);
}

/** Returns whether the claim of a DataVolume waits for its first consumer. */
export function waitsForConsumer(volume: KubeObject, classes: Mirror): boolean {
  if (bindsAtOnce(volume)) return false;
  const name = field(storageOf(volume), 'storageClassName');
  const storageClass = classes.find(({ metadata }) =>
    name === undefined
      ? metadata.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true'
      : metadata.name === name,
  );
  return field(storageClass, 'volumeBindingMode') === 'WaitForFirstConsumer';
}

function bindsAtOnce(volume: KubeObject): boolean {
  return volume.metadata.annotations?.[IMMEDIATE] !== undefined;
}

function storageOf(volume: KubeObject): Readonly<Record<string, unknown>> {
  const storage = field(volume, 'spec', 'storage') ?? field(volume, 'spec', 'pvc');
  return isRecord(storage) ? storage : {};
}
