import type { ObjectState } from '../ledger/entry-store.ts';
import type { Reservations } from './allocation.ts';
import type { Facts, JobFacts } from './candidate.ts';
import type { ReservationStore } from './ledger.ts';
import type { Request } from './request.ts';
import type { Reservation } from './reservation.ts';

/**
 * Time for which the result of a lookup is used. Afterwards, an object or job that the caches lack is looked up again.
 */
export const RECHECK_MS = 30_000;

/** Maximum number of concurrent lookups. */
const CONCURRENCY = 8;

interface Answer<T> {
  readonly at: number;
  readonly value: T;
  /**
   * State of the job in the caches at the time of the lookup. If the cached state changes, the job is looked up again.
   */
  readonly cached?: JobFacts | undefined;
}

/** Stored reservations, and cached requests and facts, which may be out of date until the API server confirms them. */
export interface Unconfirmed {
  readonly reservations: Reservations;
  readonly requests: readonly Request[];
  readonly facts: Facts;
}

/**
 * Results of lookups in the API server. The caches of a new leader may be out of date. An object that is missing from a
 * cache may exist, and a job without cached pods may be running. So the API server is asked before a reservation
 * ends or moves.
 */
export class Confirmations {
  /** State of the GPUInfo of a reservation, by UID of the GPUInfo. */
  readonly #objects = new Map<string, Answer<ObjectState>>();
  /** Job that uses the reservation of a GPUInfo, by UID of the GPUInfo. The value is undefined if there is no job. */
  readonly #jobs = new Map<string, Answer<JobFacts | undefined>>();

  /** Forgets the results of all lookups. */
  reset(): void {
    this.#objects.clear();
    this.#jobs.clear();
  }

  /**
   * Looks up objects in the API server, because a stale cache must not make a reservation end or move. Looks up a
   * GPUInfo if the cache lacks it, and a job if `isDoubtful` returns true. Skips a lookup that has a recent result.
   * @param now milliseconds since 1970
   * @returns whether a lookup was sent; if so, requests and facts may have changed during the lookup
   */
  async ask(
    { reservations, requests, facts }: Unconfirmed,
    store: Pick<ReservationStore, 'stateOf' | 'findJob'>,
    now: number,
  ): Promise<boolean> {
    const cached = new Set(requests.map(({ uid }) => uid));
    const lookups: (() => Promise<unknown>)[] = [];
    const isDue = (answer: Answer<unknown> | undefined) =>
      answer === undefined || now - answer.at >= RECHECK_MS;
    for (const [uid, reservation] of reservations) {
      const { key } = reservation;
      if (!cached.has(uid) && isDue(this.#objects.get(uid)))
        lookups.push(async () => this.#objects.set(uid, { at: now, value: await store.stateOf(key, uid) }));
      const job = facts.jobs.get(uid);
      const known = this.#jobs.get(uid);
      const isChanged = JSON.stringify(known?.cached) !== JSON.stringify(job);
      if (isDoubtful(reservation, job) && (isChanged || isDue(known)))
        lookups.push(async () => {
          this.#jobs.set(uid, { at: now, value: await store.findJob(key, uid), cached: job });
        });
    }
    const queue = lookups.values();
    const work = async () => {
      for (const lookUp of queue) await lookUp();
    };
    await Promise.all(Array.from({ length: Math.min(CONCURRENCY, lookups.length) }, work));
    return lookups.length > 0;
  }

  /** Returns all reservations except those of objects that no longer exist. */
  existing({ reservations, requests }: Unconfirmed): Reservations {
    const cached = new Set(requests.map(({ uid }) => uid));
    const isGone = (uid: string) => !cached.has(uid) && this.#objects.get(uid)?.value === 'Gone';
    return new Map([...reservations].filter(([uid]) => !isGone(uid)));
  }

  /** Returns the state of an object that the cache lacks; undefined if the object was not looked up. */
  stateOf(uid: string): ObjectState | undefined {
    return this.#objects.get(uid)?.value;
  }

  /**
   * Returns the jobs that use reservations according to the API server, but not according to the facts. The map key is
   * the UID of the GPUInfo.
   */
  unobserved({ reservations, facts }: Unconfirmed): ReadonlyMap<string, JobFacts> {
    const found = new Map<string, JobFacts>();
    for (const [uid, { value: job }] of this.#jobs) {
      const reservation = reservations.get(uid);
      const observed = facts.jobs.get(uid);
      if (reservation === undefined || job === undefined || !isDoubtful(reservation, observed)) continue;
      const isMore = observed?.state !== 'Active' || job.boundTo.includes(reservation.node);
      if (job.state !== 'Ended' && isMore) found.set(uid, job);
    }
    return found;
  }

  /**
   * Forgets the results for reservations that no longer exist. Also forgets each result that says that a job has ended
   * or does not exist. Other results are kept until they expire.
   */
  settle(reservations: Reservations): void {
    for (const uid of this.#objects.keys()) if (!reservations.has(uid)) this.#objects.delete(uid);
    for (const [uid, { value: job }] of this.#jobs)
      if (!reservations.has(uid) || job === undefined || job.state === 'Ended') this.#jobs.delete(uid);
  }
}

/**
 * Whether the cached state of the job would end the reservation or allow it to move. The cache may be out of date, so
 * the API server has to confirm this state.
 */
function isDoubtful(
  { node, inUse = false, isRepeated = false, ended }: Reservation,
  job: JobFacts | undefined,
): boolean {
  if (ended !== undefined) return false;
  if (inUse) return !(job?.state === 'Active' && job.boundTo.includes(node));
  return job?.state === 'Ended' && !isRepeated;
}
