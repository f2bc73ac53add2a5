import type { JobFacts } from './candidate.ts';
import type { EndReason, Reservation } from './reservation.ts';

/** Time without pods after which a job counts as ended, even if its controller may start it again. */
export const IDLE_MS = 5 * 60_000;

/**
 * Returns a reservation with the observed state of its job: in use, idle or ended. The reservation also ends when its
 * time has passed.
 * @param now milliseconds since 1970
 */
export function observedReservation(
  reservation: Reservation,
  job: JobFacts | undefined,
  now: number,
): Reservation {
  const { ended, until, inUse = false, isRepeated = false, idleSince = now } = reservation;
  if (ended !== undefined) return reservation;
  const end = (reason: EndReason) => ({ ...reservation, ended: { at: now, reason } });
  if (until !== undefined && until <= now) return end('TimePassed');
  const mayRestart = mayStartAgain(reservation, job);
  if (job?.state === 'Active' || (job?.state === 'Waiting' && inUse)) {
    const { idleSince: _idle, mayRestart: _before, ...active } = reservation;
    return { ...active, inUse: true, ...(mayRestart && { mayRestart }) };
  }
  if (!inUse && (job?.state !== 'Ended' || isRepeated)) return reservation;
  if (!mayRestart || idleSince + IDLE_MS <= now) return end('JobEnded');
  return { ...reservation, inUse: true, mayRestart, idleSince };
}

/**
 * Whether a controller may start the job again. The value is derived from pods, and stored in the reservation because
 * the pods may be deleted later.
 */
function mayStartAgain({ mayRestart: before = false }: Reservation, job: JobFacts | undefined): boolean {
  if (job === undefined) return before;
  return job.mayRestart || (before && job.isOver !== true);
}
