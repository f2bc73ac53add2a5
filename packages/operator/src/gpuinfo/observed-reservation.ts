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
  if (job?.state === 'Active' || (job?.state === 'Waiting' && inUse)) {
    const mayRestart = (job.mayRestart || reservation.mayRestart) ?? false;
    const { idleSince: _, ...active } = reservation;
    return { ...active, inUse: true, ...(mayRestart && { mayRestart }) };
  }
  if (!inUse && (job?.state !== 'Ended' || isRepeated)) return reservation;
  const mayRestart = (job?.mayRestart || reservation.mayRestart) ?? false;
  if (!mayRestart || idleSince + IDLE_MS <= now) return end('JobEnded');
  return { ...reservation, inUse: true, mayRestart, idleSince };
}
