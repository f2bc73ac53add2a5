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
  /** Reservations before the allocation, also those of objects without a request, which keep them. */
  readonly reservations: Reservations;
  /** What the status of each request shows, by UID, to restore reservations that were lost. @default nothing */
  readonly reported?: ReadonlyMap<string, Reported>;
  /** Time in milliseconds for which a node without known maintenance is available. */
  readonly horizonMs: number;
}

/** Answer to a request. */
export interface Verdict {
  readonly request: Request;
  /** Undefined if no node is suitable. */
  readonly reservation: Reservation | undefined;
  /**
   * Why the reserved node is no longer suitable although it stays reserved: its job runs, or the object is paused. `NodeGone` if
   * the node does not exist. `PodsOnOtherNode` if the node is suitable, but pods of the job run on another one or wait for it.
   */
  readonly degradedBy: Rejection | 'NodeGone' | 'PodsOnOtherNode' | undefined;
  /** Why no reservation was made although a node may be suitable. */
  readonly refusedBy?: 'TooManyReservations' | undefined;
}

export interface Allocation {
  readonly reservations: Reservations;
  /** By UID, for each request. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  readonly occupancy: Occupancy;
  /** By name. */
  readonly nodes: ReadonlyMap<string, Candidate>;
  /** Earliest time at which the result changes although nothing else does, in milliseconds since 1970. */
  readonly nextAt: number | undefined;
}
