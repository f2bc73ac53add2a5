import type { Candidate, Facts } from './candidate.ts';
import type { Occupancy } from './occupancy.ts';
import type { Reported } from './reported.ts';
import type { Request } from './request.ts';
import type { Reservation } from './reservation.ts';
import type { Rejection } from './suitability.ts';

/** Reservations by the UID of their GPUInfo. */
export type Reservations = ReadonlyMap<string, Reservation>;

export interface AllocationInput {
  readonly requests: readonly Request[];
  readonly facts: Facts;
  /** Reservations before the allocation. If `requests` lacks the GPUInfo of a reservation, the reservation is kept. */
  readonly reservations: Reservations;
  /**
   * Reservations that the statuses of the GPUInfos show, by UID of the GPUInfo. If `reservations` lacks one of them,
   * the allocation restores it.
   * @default none
   */
  readonly reported?: ReadonlyMap<string, Reported>;
  /** Time in milliseconds for which a node without known maintenance counts as available. */
  readonly horizonMs: number;
}

/** Result of the allocation for a request. */
export interface Verdict {
  readonly request: Request;
  /** Undefined if no node is suitable, `refusedBy` is set, or the object was paused before it had a node. */
  readonly reservation: Reservation | undefined;
  /**
   * What is wrong with the reservation; undefined if nothing is wrong.
   * - `PodsOnOtherNode`: pods of the job run on, or wait for, another node than the reserved node
   * - `NodeGone`: the reserved node does not exist
   * - a `Rejection`: why the reserved node is no longer suitable. The node stays reserved because a pod of the job is
   *   bound to it, or because the object is paused
   */
  readonly degradedBy: Rejection | 'NodeGone' | 'PodsOnOtherNode' | undefined;
  /** Why no reservation was made although a node may be suitable. */
  readonly refusedBy?: 'TooManyReservations' | undefined;
}

export interface Allocation {
  readonly reservations: Reservations;
  /** Result for each request, by UID of the GPUInfo. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  readonly occupancy: Occupancy;
  /** All nodes, by name. */
  readonly nodes: ReadonlyMap<string, Candidate>;
  /** Earliest time at which the result may change without any event, in milliseconds since 1970. */
  readonly nextAt: number | undefined;
}
