import { keyOf } from '@vmwright/runtime';
import { isPaused } from '../annotations.ts';
import type { GPUInfo } from './resource.ts';

/** What a GPUInfo asks for. */
export interface Request {
  readonly uid: string;
  /** `namespace/name` */
  readonly key: string;
  /** Creation time, RFC 3339. Older requests get free GPUs first. */
  readonly createdAt: string;
  readonly generation: number;
  /** Hours that the job needs; 0 for any available time. */
  readonly hours: number;
  /** Number of GPUs; 0 if the job must run on a node without GPUs. */
  readonly gpus: number;
  /** Model of the GPUs, with `*` for any characters; undefined for any model. */
  readonly model: string | undefined;
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly policy: 'LeastCpu' | 'LeastMemory' | 'Pack' | 'Spread';
  /** Whether a reservation may be made or moved. False for an object that is paused or being deleted. */
  readonly mayReserve: boolean;
  readonly isDeleting: boolean;
}

export function requestOf(info: GPUInfo): Request {
  const { metadata, spec } = info;
  const { gpuRequired, gpuCount = 1, gpuModel, nodeSelector = {}, policy = 'LeastCpu' } = spec;
  return {
    uid: metadata.uid ?? '',
    key: keyOf(metadata),
    createdAt: metadata.creationTimestamp ?? '',
    generation: metadata.generation ?? 0,
    hours: spec.desAccTime,
    gpus: gpuRequired ? gpuCount : 0,
    model: gpuRequired ? gpuModel : undefined,
    nodeSelector,
    policy,
    mayReserve: metadata.deletionTimestamp === undefined && !isPaused(info),
    isDeleting: metadata.deletionTimestamp !== undefined,
  };
}

/** Returns the fields of a request that the suitability of nodes depends on, as text. */
export function shapeOf({ hours, gpus, model, nodeSelector }: Request): string {
  return JSON.stringify([hours, gpus, model, nodeSelector]);
}

/** Orders requests: first come, first served. */
export function byAge(a: Request, b: Request): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.uid < b.uid ? -1 : a.uid === b.uid ? 0 : 1;
}
