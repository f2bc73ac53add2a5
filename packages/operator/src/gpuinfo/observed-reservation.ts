import type { JobFacts } from './candidate.ts';
import type { EndReason, Reservation } from './reservation.ts';

/** Time after which a job that may be started again, and has no pods, has ended. */
export const IDLE_MS = 5 * 60_000;

/**
 * Returns a reservation with what is observed about its job: it is in use, or it has ended.
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

/** Whether a controller may start the job again. It is remembered, because the pods that show it may be gone. */
function mayStartAgain({ mayRestart: before = false }: Reservation, job: JobFacts | undefined): boolean {
  if (job === undefined) return before;
  return job.mayRestart || (before && job.isOver !== true);
}
