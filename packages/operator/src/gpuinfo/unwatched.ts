import { type Logger, refOf } from '@vmwright/runtime';
import type { ObjectState } from '../ledger/entry-store.ts';
import { timeOf } from '../times.ts';
import type { Reservations } from './allocation.ts';
import type { Reservation } from './reservation.ts';

/** An active reservation of a GPUInfo in a namespace that the operator does not watch any more. */
export interface UnwatchedReservation {
  readonly uid: string;
  readonly reservation: Reservation;
  /** State of the GPUInfo. It is never `Gone`, because the reservation of a deleted GPUInfo is released. */
  readonly object: Exclude<ObjectState, 'Gone'>;
}

/**
 * Returns the active reservations of GPUInfos in namespaces that the operator does not watch any more.
 * @param namespaces watched namespaces; undefined for all
 * @param stateOf returns the state of the GPUInfo with this UID; undefined if it is not known
 */
export function unwatchedIn(
  reservations: Reservations,
  namespaces: readonly string[] | undefined,
  stateOf: (uid: string) => ObjectState | undefined,
): readonly UnwatchedReservation[] {
  if (namespaces === undefined) return [];
  return [...reservations].flatMap(([uid, reservation]) => {
    const { namespace = '' } = refOf(reservation.key);
    if (reservation.ended !== undefined || namespaces.includes(namespace)) return [];
    return [{ uid, reservation, object: stateOf(uid) === 'Exists' ? 'Exists' : 'Unreadable' } as const];
  });
}

/** Logs each unwatched reservation once. */
export class UnwatchedLog {
  #logged: ReadonlySet<string> = new Set();

  report(unwatched: readonly UnwatchedReservation[], log: Logger): void {
    for (const { uid, reservation, object } of unwatched) {
      if (this.#logged.has(uid)) continue;
      const { key, node, gpus, until } = reservation;
      const end = until === undefined ? {} : { reservedUntil: timeOf(until) };
      log.warn(
        { gpuinfo: key, uid, node, gpus, ...end, object },
        'Reservation in a namespace that is not watched',
      );
    }
    this.#logged = new Set(unwatched.map(({ uid }) => uid));
  }
}
