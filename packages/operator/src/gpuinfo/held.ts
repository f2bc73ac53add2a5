import type { Occupancy } from './occupancy.ts';
import type { Request } from './request.ts';
import type { Reservation } from './reservation.ts';

/** A request that holds a reservation. */
export interface Held {
  readonly request: Request;
  readonly reservation: Reservation;
}

/** Whether the spec has changed since the reservation was made. */
export function isEdited({ request, reservation }: Held): boolean {
  return request.generation > reservation.generation;
}

/**
 * Adds all reservations to `occupancy`. If the GPUs of a reserved node now belong to another pool, moves the
 * reservation to that pool, provided that the pool has enough free GPUs. Otherwise the reservation stays in its old
 * pool.
 * @param newPool returns the pool of the reserved node, if it differs from the pool of the reservation
 */
export function followPools(
  held: readonly Held[],
  occupancy: Occupancy,
  newPool: (held: Held) => string | undefined,
): readonly Held[] {
  for (const { request, reservation } of held) occupancy.add(request.uid, reservation);
  let current = held;
  for (let isChanged = true; isChanged; ) {
    isChanged = false; // the loop is repeated, because a reservation that left a pool can make room for another one
    current = current.map((each) => {
      const { request, reservation } = each;
      const pool = newPool(each);
      if (pool === undefined || occupancy.freeFor(request.uid, pool) < reservation.gpus) return each;
      isChanged = true;
      const followed = { ...reservation, pool };
      occupancy.add(request.uid, followed);
      return { request, reservation: followed };
    });
  }
  return current;
}
