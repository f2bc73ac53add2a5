import { HOUR_MS } from './maintenance.ts';
import type { Request } from './request.ts';
import type { Reservation } from './reservation.ts';
import type { GPUInfo } from './resource.ts';

/** The reservation that the status of a GPUInfo shows. */
export interface Reported {
  readonly node: string;
  /** Generation of the spec that the status describes. */
  readonly generation: number;
  /** End of the reservation, in milliseconds since 1970; undefined if the reservation has no end. */
  readonly until: number | undefined;
}

/** Returns the reservation that the status of a GPUInfo shows; undefined if it shows none. */
export function reportedIn({ status = {} }: GPUInfo): Reported | undefined {
  const { phase, suitableNodeName: node, observedGeneration: generation, reservedUntil } = status;
  if (phase !== 'Reserved' || node === undefined || generation === undefined) return undefined;
  return { node, generation, until: reservedUntil === undefined ? undefined : Date.parse(reservedUntil) };
}

/** Maximum difference between the clocks of the API server and of the operator. */
const SKEW_MS = 5 * 60_000;

/**
 * Returns the reservation that a status shows, in order to restore it after it was deleted from the ConfigMap. A client
 * with write access to the status can forge a reservation. So the result is undefined unless the operator can have
 * reported it: it must have the length `desAccTime`, must begin between the creation of the object and now, and must
 * not be over. The caller checks the node and its GPUs.
 * @param now milliseconds since 1970
 */
export function restoredFrom(
  { node, generation, until }: Reported,
  { key, createdAt, hours, gpus, generation: current }: Request,
  now: number,
): Reservation | undefined {
  if (generation !== current) return undefined;
  const reservation = { key, generation, node, gpus };
  if (hours === 0) return until === undefined ? { ...reservation, from: now } : undefined;
  if (until === undefined) return undefined;
  const from = until - hours * HOUR_MS;
  const isPlausible = from >= Date.parse(createdAt) - SKEW_MS && from <= now + SKEW_MS && until > now;
  return isPlausible ? { ...reservation, from, until } : undefined;
}
