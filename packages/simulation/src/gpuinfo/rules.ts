import type { KubeObject } from '@vmwright/runtime';
import { fieldAt } from '../apiserver/json.ts';
import { listAt, numberAt, textAt } from '../scenario/stored-objects.ts';
import { GPU, INFO_LABEL, INFO_UID, MAINTENANCE_END, MAINTENANCE_START, MODEL } from './kinds.ts';
import { isLive, type StoredReservations } from './reservations.ts';

/*
 * The rules for the choice of a node, written from the documentation and evaluated by brute force. They share no code
 * with the operator.
 */

export const HOUR_MS = 3_600_000;
/** Time from now for which a node that announces no maintenance counts as available. */
export const HORIZON_MS = 6 * HOUR_MS;

/** Why a node that announces no maintenance cannot be reserved: the requested time exceeds `HORIZON_MS`. */
export const BEYOND_HORIZON = 'the horizon is shorter';

/** Hosts and machines of vCenter: their true state, or the view of one replica. */
export interface KnownHosts {
  /**
   * Returns the host of a node; `unknown` if the data about the host is stale, undefined if the node is not on vSphere.
   */
  hostOf(node: KubeObject): KnownHost | 'unknown' | undefined;
}

export interface KnownHost {
  readonly id: string;
  readonly gpus: number;
  /** GPUs that machines use. */
  readonly taken: number;
  /** Whether jobs can start on the node: host connected and not in maintenance, machine powered on. */
  readonly isAvailable: boolean;
}

/** State of the cluster, as the API server or one replica knows it. */
export interface Known {
  readonly nodes: readonly KubeObject[];
  readonly pods: readonly KubeObject[];
  readonly infos: readonly KubeObject[];
  readonly hosts: KnownHosts;
}

/** Requirements of a GPUInfo. */
export interface Wanted {
  readonly uid: string;
  readonly name: string;
  readonly age: string;
  readonly generation: number;
  readonly hours: number;
  readonly gpus: number;
  readonly model: string | undefined;
  readonly zone: string | undefined;
  readonly isPaused: boolean;
}

export function wantedBy(info: KubeObject): Wanted {
  const { uid = '', name, namespace, creationTimestamp, generation = 0, annotations } = info.metadata;
  const isRequired = fieldAt(info, ['spec', 'gpuRequired']) === true;
  return {
    uid,
    name: `${namespace}/${name}`,
    age: `${creationTimestamp} ${uid}`,
    generation,
    hours: numberAt(info, 'spec', 'desAccTime') ?? 0,
    gpus: isRequired ? (numberAt(info, 'spec', 'gpuCount') ?? 1) : 0,
    model: textAt(info, 'spec', 'gpuModel'),
    zone: textAt(info, 'spec', 'nodeSelector', 'zone'),
    isPaused: annotations?.['vmwright.dev/paused'] === 'true',
  };
}

/** GPUs of a node. */
export interface Gpus {
  readonly pool: string;
  readonly total: number;
  readonly model: string | undefined;
}

/** Returns the GPUs of a node: its own, or those of its host; undefined if there are none. */
export function gpusOf(node: KubeObject, { hosts }: Pick<Known, 'hosts'>): Gpus | undefined {
  const own = Number(fieldAt(node, ['status', 'capacity', GPU]) ?? 0);
  if (own > 0) {
    const total = Number(fieldAt(node, ['status', 'allocatable', GPU]) ?? 0);
    return { pool: `node/${node.metadata.name}`, total, model: node.metadata.labels?.[MODEL] };
  }
  const host = hosts.hostOf(node);
  if (host === undefined || host === 'unknown' || host.gpus === 0) return undefined;
  return { pool: `host/${host.id}`, total: host.gpus, model: undefined };
}

export interface Window {
  readonly start: number;
  readonly end: number;
}

/** Returns the period for which a job that starts now needs its node. */
export function windowFrom({ hours }: Wanted, now: number): Window {
  return { start: now, end: now + hours * HOUR_MS };
}

/**
 * Returns why a node cannot be reserved for a GPUInfo; undefined if it can.
 * @param reservations reservations of all GPUInfos; the GPUInfo's own reservation does not count
 */
export function obstacle(
  known: Known,
  reservations: StoredReservations,
  wanted: Wanted,
  node: KubeObject,
  window: Window,
): string | undefined {
  const host = known.hosts.hostOf(node);
  if (host === 'unknown') return 'its facts are not current';
  const blocked = blockedBy(node) ?? (host?.isAvailable === false ? 'its host is not available' : undefined);
  if (blocked !== undefined) return blocked;
  if (wanted.zone !== undefined && node.metadata.labels?.zone !== wanted.zone) return 'it is in another zone';
  const gpus = gpusOf(node, known);
  if (wanted.gpus === 0 && gpus !== undefined) return 'it has GPUs';
  if (wanted.gpus > 0) {
    if (gpus === undefined) return 'it has no GPUs';
    if (wanted.model !== undefined && gpus.model !== wanted.model) return 'it has another model';
    const taken = typeof host === 'object' && gpus.pool === `host/${host.id}` ? host.taken : 0;
    const free = gpus.total - taken - occupied(known, reservations, gpus.pool, wanted.uid);
    if (free < wanted.gpus) return `only ${free} of its ${gpus.total} GPUs are free`;
  }
  return interruptedBy(node, window);
}

/** Returns why, according to Kubernetes, jobs cannot start on a node; undefined if they can. */
export function blockedBy(node: KubeObject): string | undefined {
  const ready = listAt(node, 'status', 'conditions').find((each) => textAt(each, 'type') === 'Ready');
  if (textAt(ready, 'status') !== 'True') return 'it is not ready';
  if (fieldAt(node, ['spec', 'unschedulable']) === true) return 'it is cordoned';
  return listAt(node, 'spec', 'taints').length > 0 ? 'it has a taint' : undefined;
}

function interruptedBy(node: KubeObject, { start, end }: Window): string | undefined {
  const [from, to] = maintenanceOf(node) ?? [];
  const isOver = to !== undefined && to <= start;
  if (from === undefined || isOver) return end - start > HORIZON_MS ? BEYOND_HORIZON : undefined;
  return from <= start || from < end ? 'its maintenance comes too early' : undefined;
}

/** Returns start and end of the maintenance that a node announces. */
export function maintenanceOf({ metadata }: KubeObject): readonly [number, number | undefined] | undefined {
  const { [MAINTENANCE_START]: start, [MAINTENANCE_END]: end } = metadata.annotations ?? {};
  if (start === undefined) return undefined;
  return [start === 'now' ? 0 : Date.parse(start), end === undefined ? undefined : Date.parse(end)];
}

/**
 * Returns the number of GPUs of a pool that are reserved or in use. Does not count the GPUs of the GPUInfo with the UID
 * `except`.
 */
function occupied(known: Known, reservations: StoredReservations, pool: string, except: string): number {
  const shares = new Map<string, number>();
  for (const pod of known.pods) {
    const gpus = podGpus(pod);
    const node = known.nodes.find(({ metadata }) => metadata.name === textAt(pod, 'spec', 'nodeName'));
    // A pod uses only GPUs of the pool `node/<name>` of its node, never GPUs of the pool of a vSphere host.
    if (gpus === 0 || node === undefined || pool !== `node/${node.metadata.name}`) continue;
    const holder = holderOf(pod, known.infos) ?? '';
    shares.set(holder, (shares.get(holder) ?? 0) + gpus);
  }
  for (const [uid, reservation] of reservations)
    if (isLive(reservation) && reservation.pool === pool)
      shares.set(uid, Math.max(shares.get(uid) ?? 0, reservation.gpus));
  shares.delete(except);
  return shares.values().reduce((sum, gpus) => sum + gpus, 0);
}

export function podGpus(pod: KubeObject): number {
  if (isOver(pod)) return 0;
  return listAt(pod, 'spec', 'containers').reduce<number>(
    (sum, each) => sum + Number(fieldAt(each, ['resources', 'requests', GPU]) ?? 0),
    0,
  );
}

/** Whether a pod has ended. */
export function isOver(pod: KubeObject): boolean {
  return ['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase') ?? '');
}

/**
 * Returns the UID of the GPUInfo that a pod refers to: the pod's label contains the name of the GPUInfo, and the pod's
 * annotation its UID.
 */
export function holderOf({ metadata }: KubeObject, infos: readonly KubeObject[]): string | undefined {
  const name = metadata.labels?.[INFO_LABEL];
  const uid = metadata.annotations?.[INFO_UID];
  const info = infos.find((each) => each.metadata.uid === uid);
  return info?.metadata.name === name && info?.metadata.namespace === metadata.namespace ? uid : undefined;
}
