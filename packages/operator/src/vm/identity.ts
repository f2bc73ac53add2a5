import type { Labels, Server } from '@vmwright/cloud';
import type { VM } from './resource.ts';

/* Ownership labels and idempotency keys of servers. The label keys are stored in the cloud and must not change. */

const CLUSTER_LABEL = 'vmwright.dev/cluster';
/** Label with the UID of the VM that a server was created for. */
export const UID_LABEL = 'vmwright.dev/uid';
const NAMESPACE_LABEL = 'vmwright.dev/namespace';
const NAME_LABEL = 'vmwright.dev/name';

/** Returns the ownership labels of a VM's server. @param cluster id of this cluster */
export function ownershipLabels(cluster: string, { metadata }: VM): Labels {
  const { uid = '', namespace = '', name } = metadata;
  return { [CLUSTER_LABEL]: cluster, [UID_LABEL]: uid, [NAMESPACE_LABEL]: namespace, [NAME_LABEL]: name };
}

/** Returns the labels that select all servers of a cluster. */
export function clusterLabels(cluster: string): Labels {
  return { [CLUSTER_LABEL]: cluster };
}

/**
 * Returns the label that selects the servers of one VM. It also selects servers that were created under an earlier
 * cluster id.
 */
export function ownerLabels(uid: string): Labels {
  return { [UID_LABEL]: uid };
}

/** Label change that removes all ownership labels. */
export const NO_OWNERSHIP_LABELS: Readonly<Record<string, null>> = {
  [CLUSTER_LABEL]: null,
  [UID_LABEL]: null,
  [NAMESPACE_LABEL]: null,
  [NAME_LABEL]: null,
};

/**
 * Returns the ownership labels to set on a VM's server if they differ from `wanted`, for example because the cluster id
 * has changed. Undefined if no label differs. Also undefined if the UID label is missing or different, because a server
 * without the UID label was orphaned. A delayed request must not set that label again: garbage collection would then
 * delete the server.
 */
export function labelsToRepair({ labels }: Server, wanted: Labels): Labels | undefined {
  if (labels[UID_LABEL] !== wanted[UID_LABEL]) return undefined;
  const { [UID_LABEL]: _, ...others } = wanted;
  return Object.entries(others).every(([key, value]) => labels[key] === value) ? undefined : others;
}

/** Returns the UID of the VM that a server was created for. */
export function ownerUid({ labels }: Server): string | undefined {
  return labels[UID_LABEL];
}

/** Whether a server carries the UID label of this VM. The operator changes and deletes no other servers. */
export function isOwnedBy({ metadata }: VM, server: Server): boolean {
  return ownerUid(server) === metadata.uid;
}

/**
 * Returns the VM that a server was created for; undefined if the server belongs to another cluster or has no UID label.
 */
export function ownerIn(
  { labels }: Server,
  cluster: string,
): { readonly namespace: string; readonly name: string } | undefined {
  if (labels[CLUSTER_LABEL] !== cluster || labels[UID_LABEL] === undefined) return undefined;
  return { namespace: labels[NAMESPACE_LABEL] ?? '', name: labels[NAME_LABEL] ?? '' };
}

export function namespaceOf({ labels }: Server): string {
  return labels[NAMESPACE_LABEL] ?? '';
}

export function nameOf({ labels }: Server): string {
  return labels[NAME_LABEL] ?? '';
}

/**
 * Returns the idempotency key of the create request. However often the request is sent, the cloud creates one server.
 * The key is derived from the stored object, so it is known before the first request. A machine that replaces a lost
 * machine gets a new key, because the old key identifies the lost one.
 */
export function idempotencyKey({ metadata, status }: VM): string {
  const { uid = '' } = metadata;
  const { recreations = 0 } = status ?? {};
  return recreations === 0 ? uid : `${uid}.${recreations}`;
}
