import {
  type AdmissionRules,
  type Caches,
  type Client,
  type Clock,
  ConfigMap,
  type Denied,
  deny,
  ignoreNotFound,
  keyOf,
  type ObjectRef,
} from '@vmwright/runtime';
import type { Pod, PodSpec } from './kinds.ts';
import { GPUINFO_LABEL, GPUINFO_UID } from './labels.ts';
import { RESERVATIONS_NAME } from './ledger.ts';
import { earliest } from './maintenance.ts';
import { MOST_SECONDS, termOf } from './placement.ts';
import { podRequests } from './pod-requests.ts';
import { parseReservation, type Reservation } from './reservation.ts';
import { GPUInfo } from './resource.ts';

/** Parts of the operator that the rules use. */
export interface PodAdmissionOptions {
  readonly caches: Caches;
  readonly client: Pick<Client, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
  /** Namespace of the operator, which contains the ConfigMap with the reservations. */
  readonly namespace: string;
}

/**
 * Returns the admission rules that bind pods with the GPUInfo label to the reserved node of their GPUInfo. Other pods
 * never reach the webhook, so that a stopped operator does not block their creation. A pod with the label is rejected
 * while the webhook does not respond, or while no node is reserved. The controller of the pod, such as a Job, creates
 * it again later.
 * @param options undefined for manifests, which only declare the rules
 */
export function admitPods(options: PodAdmissionOptions | undefined): AdmissionRules<Pod> {
  return {
    operations: ['CREATE'],
    failurePolicy: 'Fail',
    objectSelector: { matchExpressions: [{ key: GPUINFO_LABEL, operator: 'Exists' }] },
    reinvocationPolicy: 'IfNeeded',
    mutate: async (pod, { namespace }) => {
      const name = pod.metadata.labels?.[GPUINFO_LABEL];
      if (options === undefined || name === undefined) return pod;
      // Looks only in the namespace of the request: a pod cannot refer to a GPUInfo in another namespace.
      const info = await read({ namespace, name }, options);
      if (info === undefined)
        return deny(
          `The GPUInfo ${keyOf({ namespace, name })} does not exist. Create it, or remove the label ${GPUINFO_LABEL} from the pod`,
        );
      return place(pod, info, await reservationOf(info, options), options.clock.now());
    },
  };
}

/**
 * Returns a GPUInfo from the cache if the cached status shows a reservation for the cached spec. Otherwise the cache
 * may be stale, so the GPUInfo is read from the API server.
 */
async function read(ref: ObjectRef, { caches, client }: PodAdmissionOptions): Promise<GPUInfo | undefined> {
  const cached = caches.get(GPUInfo).get(ref);
  if (cached !== undefined && isReserved(cached)) return cached;
  return ignoreNotFound(client.get(GPUInfo, ref));
}

/**
 * Reads the reservation of a GPUInfo from the ConfigMap, because the status is written later and may still show an
 * earlier reservation.
 */
async function reservationOf(
  { metadata: { uid = '' } }: GPUInfo,
  { client, namespace }: PodAdmissionOptions,
): Promise<Reservation | undefined> {
  const stored = await ignoreNotFound(client.get(ConfigMap, { namespace, name: RESERVATIONS_NAME }));
  const text = stored?.data?.[uid];
  return text === undefined ? undefined : parseReservation(text);
}

function isReserved({ metadata, status }: GPUInfo): boolean {
  return status?.phase === 'Reserved' && status.observedGeneration === metadata.generation;
}

/**
 * Binds a pod to the reserved node of a GPUInfo, or returns why the pod is rejected.
 * @param reservation stored reservation of the GPUInfo
 */
export function place(
  pod: Pod,
  info: GPUInfo,
  reservation: Reservation | undefined,
  now: number,
): Pod | Denied {
  const { metadata, status } = info;
  const name = keyOf(metadata);
  if (metadata.deletionTimestamp !== undefined)
    return deny(`The GPUInfo ${name} is being deleted. Create another one`);
  const { placement, suitableNodeName: node, availableUntil } = status ?? {};
  const { until, gpus = 0, ended } = reservation ?? {};
  if (status?.phase === 'Ended' || ended !== undefined || (until !== undefined && until <= now))
    return deny(
      `The reservation of the GPUInfo ${name} has ended. Create another GPUInfo, or change the spec of this one`,
    );
  if (!isReserved(info) || placement === undefined || node === undefined)
    return deny(
      `The GPUInfo ${name} has no node${status?.message === undefined ? ' yet' : `: ${status.message}`}`,
    );
  if (reservation?.node !== node)
    return deny(
      `The reservation of the GPUInfo ${name} is changing from node ${node} to ${reservation?.node ?? 'none'}. Create the pod again when the status of the GPUInfo shows the new node`,
    );
  const maintenanceAt = availableUntil === undefined ? undefined : Date.parse(availableUntil);
  if (maintenanceAt !== undefined && maintenanceAt <= now)
    return deny(
      `Maintenance of node ${node}, which the GPUInfo ${name} has reserved, began at ${availableUntil} (${status?.decidedBy}). Create the pod after the maintenance`,
    );
  const wanted = gpusOf(pod);
  if (wanted > gpus)
    return deny(
      gpus === 0
        ? `The pod requests ${count(wanted)}, but the GPUInfo ${name} has reserved a node without GPUs. Set gpuRequired and gpuCount of the GPUInfo, or request no GPU`
        : `The pod requests ${count(wanted)}, but the GPUInfo ${name} has reserved ${count(gpus)}. Raise gpuCount of the GPUInfo to ${wanted}, or request fewer GPUs`,
    );
  const { nodeName } = pod.spec ?? {};
  if (nodeName !== undefined && nodeName !== '' && nodeName !== node)
    return deny(
      `spec.nodeName is ${nodeName}, but the GPUInfo ${name} has reserved ${node}. Remove spec.nodeName`,
    );
  const annotations = { ...pod.metadata.annotations, [GPUINFO_UID]: metadata.uid ?? '' };
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations },
    spec: {
      ...pod.spec,
      ...boundTo(node, pod.spec),
      ...tolerating(placement.tolerations ?? [], pod.spec),
      ...limitedTo(earliest(until, maintenanceAt), now, pod.spec),
    },
  };
}

/**
 * Adds the node to each term of the pod's node affinity. A node has to match only one term, so a term without the node
 * would admit other nodes. An empty term is left unchanged, because it matches no node. If the pod has no terms, a term
 * is added.
 */
function boundTo(node: string, { affinity }: PodSpec = {}): Pick<PodSpec, 'affinity'> {
  const own = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const terms = own?.nodeSelectorTerms ?? [];
  const bound = terms.map((term) => {
    const { matchExpressions = [], matchFields = [] } = term;
    if (matchExpressions.length === 0 && matchFields.length === 0) return term;
    const isBound = matchFields.some(
      ({ key, operator, values = [] }) =>
        key === 'metadata.name' && operator === 'In' && values.length === 1 && values[0] === node,
    );
    return isBound ? term : { ...term, matchFields: [...matchFields, ...termOf(node).matchFields] };
  });
  return {
    affinity: {
      ...affinity,
      nodeAffinity: {
        ...affinity?.nodeAffinity,
        requiredDuringSchedulingIgnoredDuringExecution: {
          ...own,
          nodeSelectorTerms: terms.length === 0 ? [termOf(node)] : bound,
        },
      },
    },
  };
}

/** Returns the number of GPUs that a pod requests as extended resources. */
function gpusOf({ spec = {} }: Pod): number {
  return Object.values(podRequests(spec).accelerators).reduce((sum, gpus) => sum + gpus, 0);
}

function count(gpus: number): string {
  return gpus === 1 ? '1 GPU' : `${gpus} GPUs`;
}

/**
 * Sets `activeDeadlineSeconds` of a pod that has none, so that the pod stops at the end of its reservation or at the
 * start of maintenance, whichever comes first. A pod that a Job creates as a retry gets only the remaining time.
 */
function limitedTo(
  end: number | undefined,
  now: number,
  { activeDeadlineSeconds }: PodSpec = {},
): Pick<PodSpec, 'activeDeadlineSeconds'> {
  if (activeDeadlineSeconds !== undefined || end === undefined) return {};
  const seconds = Math.floor((end - now) / 1_000);
  return { activeDeadlineSeconds: Math.min(Math.max(seconds, 1), MOST_SECONDS) };
}

function tolerating(
  needed: NonNullable<PodSpec['tolerations']>,
  { tolerations = [] }: PodSpec = {},
): Pick<PodSpec, 'tolerations'> {
  const missing = needed.filter(
    ({ key, effect }) => !tolerations.some((each) => each.key === key && each.effect === effect),
  );
  return missing.length === 0 ? {} : { tolerations: [...tolerations, ...missing] };
}
