import type { ObjectState } from '../ledger/entry-store.ts';
import type { Reservations } from './allocation.ts';
import type { Facts, JobFacts } from './candidate.ts';
import type { ReservationStore } from './ledger.ts';
import type { Request } from './request.ts';
import type { Reservation } from './reservation.ts';

/** Time for which an answer of the API server is used, and after which a job that only it knows is looked up again. */
export const RECHECK_MS = 30_000;

/** Maximum number of concurrent lookups. */
const CONCURRENCY = 8;

interface Answer<T> {
  readonly at: number;
  readonly value: T;
  /** What the caches had when the API server was asked: after a change, it is asked again. */
  readonly cached?: JobFacts | undefined;
}

/** State that the confirmations are needed for. */
export interface Unconfirmed {
  readonly reservations: Reservations;
  readonly requests: readonly Request[];
  readonly facts: Facts;
}

/**
 * What the API server says about objects and jobs that the caches lack. The watches of a new leader may be late, so the caches
 * alone do not prove that an object or a job is gone, or that no pod of a job runs on its node.
 */
export class Confirmations {
  /** State of the object of a reservation, by UID. */
  readonly #objects = new Map<string, Answer<ObjectState>>();
  /** The job of a reservation, by UID. */
  readonly #jobs = new Map<string, Answer<JobFacts | undefined>>();

  /** Forgets all answers. */
  reset(): void {
    this.#objects.clear();
    this.#jobs.clear();
  }

  /**
   * Asks about all objects and jobs that are missing and were not asked about recently.
   * @param now milliseconds since 1970
   * @returns whether it asked: requests and facts may have changed since
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

  /** Returns the reservations without those of objects that no longer exist. */
  existing({ reservations, requests }: Unconfirmed): Reservations {
    const cached = new Set(requests.map(({ uid }) => uid));
    const isGone = (uid: string) => !cached.has(uid) && this.#objects.get(uid)?.value === 'Gone';
    return new Map([...reservations].filter(([uid]) => !isGone(uid)));
  }

  /** Returns the state of an object that the cache lacks; undefined if the API server was not asked. */
  stateOf(uid: string): ObjectState | undefined {
    return this.#objects.get(uid)?.value;
  }

  /** Returns the jobs that use reservations although the facts do not contain them, or not as active on their node. */
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

  /** Forgets answers after they were used, except that an object or a job exists, which is asked again after some time. */
  settle(reservations: Reservations): void {
    for (const uid of this.#objects.keys()) if (!reservations.has(uid)) this.#objects.delete(uid);
    for (const [uid, { value: job }] of this.#jobs)
      if (!reservations.has(uid) || job === undefined || job.state === 'Ended') this.#jobs.delete(uid);
  }
}

/** Whether the reservation would end, or could be moved, only because the caches lack pods that use it. */
function isDoubtful(
  { node, inUse = false, isRepeated = false, ended }: Reservation,
  job: JobFacts | undefined,
): boolean {
  if (ended !== undefined) return false;
  if (inUse) return !(job?.state === 'Active' && job.boundTo.includes(node));
  return job?.state === 'Ended' && !isRepeated;
}
