import type { Allocation, AllocationInput, Verdict } from './allocation.ts';
import type { Candidate, JobFacts } from './candidate.ts';
import { followPools, type Held, isEdited } from './held.ts';
import { LedgerSpace } from './ledger-space.ts';
import { endOf } from './maintenance.ts';
import { NodeOrder } from './node-order.ts';
import { IDLE_MS, observedReservation } from './observed-reservation.ts';
import { Occupancy } from './occupancy.ts';
import { restoredFrom } from './reported.ts';
import { byAge, type Request, shapeOf } from './request.ts';
import type { Reservation } from './reservation.ts';
import { type Rejection, Suitability, type Window, windowOf } from './suitability.ts';

/**
 * Allocates nodes and GPUs to requests.
 *
 * Guarantees: the result does not depend on the order of requests, nodes or reservations. A reservation is kept while its node
 * is suitable; it also stays while a pod of its job is bound to the node, or while the facts about the node are unknown. Free GPUs go to the oldest request that can use them.
 * No reservation is made that exceeds the GPUs of a pool. A request without a reservation gets one if a suitable node exists.
 * @param now milliseconds since 1970
 */
export function allocate(input: AllocationInput, now: number): Allocation {
  return new Allocator(input, now).run();
}

class Allocator {
  readonly #input: AllocationInput;
  readonly #now: number;
  readonly #nodes: ReadonlyMap<string, Candidate>;
  readonly #order: NodeOrder;
  readonly #occupancy: Occupancy;
  readonly #reservations = new Map<string, Reservation>();
  readonly #verdicts = new Map<string, Verdict>();
  readonly #space = new LedgerSpace();
  /** Specs for which no node is suitable. It stays so, because the number of free GPUs only decreases while nodes are chosen. */
  readonly #hopeless = new Set<string>();
  /** Requests that have changed while their jobs run. */
  readonly #changed: Held[] = [];

  constructor(input: AllocationInput, now: number) {
    const { facts } = input;
    this.#input = input;
    this.#now = now;
    this.#nodes = new Map(facts.candidates.map((candidate) => [candidate.name, candidate]));
    this.#order = new NodeOrder(facts.candidates);
    this.#occupancy = new Occupancy(facts);
  }

  run(): Allocation {
    const { requests, reservations } = this.#input;
    const sorted = requests.toSorted(byAge);
    const known = new Set(sorted.map(({ uid }) => uid));
    for (const [uid, reservation] of reservations)
      if (!known.has(uid)) this.#store(uid, this.#observed(uid, reservation));
    const held: Held[] = [];
    const waiting: Request[] = [];
    for (const request of sorted) {
      const before = reservations.get(request.uid);
      const reservation = before && this.#observed(request.uid, before);
      if (reservation === undefined) waiting.push(request);
      else if (reservation.ended === undefined) held.push({ request, reservation });
      else if (isEdited({ request, reservation })) waiting.push(request);
      else this.#decide(request, reservation);
    }
    const left = this.#ordered(held).filter((each) => !this.#keep(each));
    for (const { request } of left) this.#occupancy.remove(request.uid);
    for (const each of this.#changed) this.#extend(each);
    // An edited request that needs no additional GPUs is served before waiting requests.
    const goesFirst = (each: Held) => isEdited(each) && each.request.gpus <= each.reservation.gpus;
    for (const { request } of left.filter(goesFirst)) this.#choose(request);
    const unrestored = waiting.filter((request) => !this.#restore(request));
    const displaced = left.filter((each) => !goesFirst(each)).map(({ request }) => request);
    for (const request of [...unrestored, ...displaced].toSorted(byAge)) this.#choose(request);
    return {
      reservations: this.#reservations,
      verdicts: this.#verdicts,
      occupancy: this.#occupancy,
      nodes: this.#nodes,
      nextAt: this.#nextAt(),
    };
  }

  /**
   * Returns the reservations in the order in which they are judged, in the pools that they draw from. Reservations whose pool has not
   * changed come first, so that a machine that moves to another host takes no GPU from them; of both groups, those that cannot
   * move, because they keep their GPUs.
   */
  #ordered(held: readonly Held[]): readonly Held[] {
    const fixed = held.filter((each) => this.#isFixed(each));
    const movable = held.filter((each) => !this.#isFixed(each));
    const moved = followPools([...fixed, ...movable], this.#occupancy, (each) => this.#newPool(each));
    for (const { request } of movable) this.#occupancy.remove(request.uid); // counted again as it is kept
    const isInPlace = (each: Held) => this.#newPool(each) === undefined;
    return [...moved.filter(isInPlace), ...moved.filter((each) => !isInPlace(each))];
  }

  /** Returns the pool that the node of a reservation draws from, if it is another one than when the reservation was made. */
  #newPool(held: Held): string | undefined {
    const { request, reservation } = held;
    const isChosenAgain = request.mayReserve && isEdited(held);
    if (reservation.pool === undefined || this.#isUndecided(held) || isChosenAgain) return undefined;
    const pool = this.#nodes.get(reservation.node)?.gpus?.pool;
    return pool === reservation.pool ? undefined : pool;
  }

  #observed(uid: string, reservation: Reservation): Reservation {
    return observedReservation(reservation, this.#jobOf(uid), this.#now);
  }

  #jobOf(uid: string): JobFacts | undefined {
    return this.#input.facts.jobs.get(uid);
  }

  /** Whether a pod of the job is bound to the reserved node. */
  #isRunning({ request, reservation }: Held): boolean {
    return this.#jobOf(request.uid)?.boundTo.includes(reservation.node) ?? false;
  }

  /** Whether pods of the job are bound to, or wait for, a node that is not reserved. */
  #isElsewhere(uid: string, { node, ended }: Reservation): boolean {
    const { state, boundTo = [], pinnedTo = [] } = this.#jobOf(uid) ?? {};
    return (
      ended === undefined && state === 'Active' && [...boundTo, ...pinnedTo].some((each) => each !== node)
    );
  }

  /** Whether a reservation stays even if its node is not suitable: its job runs, or nothing may be decided about it now. */
  #isFixed({ request, reservation }: Held): boolean {
    const held = { request, reservation };
    return this.#isRunning(held) || !request.mayReserve || this.#isUndecided(held);
  }

  /**
   * Whether a reservation cannot be judged: the facts about its node are unknown, or it was made for a newer spec than the cache
   * has.
   */
  #isUndecided({ request, reservation }: Held): boolean {
    const { blocker } = this.#nodes.get(reservation.node) ?? {};
    return blocker?.reason === 'FactsUnknown' || reservation.generation > request.generation;
  }

  /** Keeps a reservation if its node is suitable, or if it must not be moved. @returns whether it is kept */
  #keep(held: Held): boolean {
    const { request, reservation } = held;
    if (this.#isUndecided(held)) {
      this.#decide(request, reservation);
      return true;
    }
    const candidate = this.#nodes.get(reservation.node);
    if (candidate === undefined) {
      if (request.mayReserve) return false;
      this.#decide(request, reservation, 'NodeGone');
      return true;
    }
    const isChanged = isEdited(held);
    const isFixed = this.#isFixed(held);
    if (isChanged && !isFixed) return false; // chosen again for the changed spec
    if (isChanged && request.mayReserve) {
      this.#changed.push(held);
      this.#decide(request, reservation); // counted as it is, until all reservations that stay are counted
      return true;
    }
    const rejection = this.#rejectionOf(request, candidate, reservation);
    // The rejection is that of the spec, which may need fewer GPUs than a paused object has reserved.
    if (rejection === undefined)
      this.#decide(request, isChanged ? reservation : inPoolOf(candidate, reservation));
    else if (isFixed) this.#decide(request, reservation, rejection);
    else return false;
    return true;
  }

  /** Adapts the reservation of a running job to its changed spec, if the node has what the spec asks for. */
  #extend({ request, reservation }: Held): void {
    const candidate = this.#nodes.get(reservation.node);
    if (candidate === undefined) return;
    const wanted = this.#observed(request.uid, this.#extended(request, reservation));
    if (wanted.ended !== undefined) {
      this.#decide(request, wanted); // it was shortened to less than the time that has passed
      return;
    }
    const rejection = this.#rejectionOf(request, candidate, wanted);
    if (rejection === undefined) this.#decide(request, inPoolOf(candidate, wanted));
    else this.#decide(request, reservation, rejection);
  }

  /** Returns the reservation of a running job for its changed spec. */
  #extended({ generation, gpus, hours }: Request, reservation: Reservation): Reservation {
    const { until: _, ...rest } = reservation;
    const { end } = windowOf({ hours }, reservation.from);
    return { ...rest, generation, gpus, ...(hours > 0 && { until: end }) };
  }

  /**
   * Makes the reservation that the status shows again, for example after a person has deleted its entry. The job may rely on it, so
   * it comes before requests that wait, but takes nothing from a reservation that is stored.
   * @returns whether it was restored: its node is suitable, and its GPUs are free
   */
  #restore(request: Request): boolean {
    const { uid, key } = request;
    const reported = this.#input.reservations.has(uid) ? undefined : this.#input.reported?.get(uid);
    const restored = reported && restoredFrom(reported, request, this.#now);
    if (restored === undefined || !this.#space.hasRoom(uid, key)) return false;
    const candidate = this.#nodes.get(restored.node);
    if (candidate === undefined) return false;
    if (this.#rejectionOf(request, candidate, restored) !== undefined) return false;
    this.#reserve(request, candidate, restored);
    return true;
  }

  /** Reserves the best suitable node, if there is one. */
  #choose(request: Request): void {
    const { uid, key, generation, gpus, hours, mayReserve } = request;
    const node = mayReserve ? this.#found(request) : undefined;
    if (node === undefined) {
      this.#decide(request, undefined);
      return;
    }
    if (!this.#space.hasRoom(uid, key)) {
      this.#verdicts.set(uid, {
        ...{ request, reservation: undefined, degradedBy: undefined, refusedBy: 'TooManyReservations' },
      });
      return;
    }
    this.#reserve(request, node, {
      ...{ key, generation, node: node.name, gpus, from: this.#now },
      ...(hours > 0 && { until: windowOf(request, this.#now).end }),
    });
  }

  /** Makes a reservation in the pool of its node, with what is known about jobs of the request. */
  #reserve(request: Request, { gpus }: Candidate, reservation: Reservation): void {
    const { uid } = request;
    const { ended, inUse = false, isRepeated = false } = this.#input.reservations.get(uid) ?? {};
    const job = this.#jobOf(uid);
    const hadJob = isRepeated || inUse || ended !== undefined || job?.state === 'Ended';
    const isActive = job?.state === 'Active';
    this.#decide(request, {
      ...reservation,
      ...(gpus && { pool: gpus.pool }),
      ...(isActive && { inUse: true }),
      ...(isActive && job.mayRestart && { mayRestart: true }),
      ...(hadJob && { isRepeated: true }),
    });
  }

  /** Returns the best suitable node. Equal requests without one are evaluated once, unless their own pods use GPUs. */
  #found(request: Request): Candidate | undefined {
    if (this.#occupancy.isInUseBy(request.uid)) return this.#best(request); // its own GPUs are free for it alone
    const shape = shapeOf(request);
    if (this.#hopeless.has(shape)) return undefined;
    const node = this.#best(request);
    if (node === undefined) this.#hopeless.add(shape);
    return node;
  }

  #best(request: Request): Candidate | undefined {
    const suitability = new Suitability(request, this.#input.horizonMs);
    const window = windowOf(request, this.#now);
    const isSuitable = (node: Candidate) =>
      suitability.rejection(node, this.#occupancy, window) === undefined;
    // Pods that run already cannot move, for example after a manual edit of the stored reservation.
    const own = this.#jobOf(request.uid)?.boundTo.map((name) => this.#nodes.get(name)) ?? [];
    const current = own.find((node) => node !== undefined && isSuitable(node));
    if (current !== undefined) return current;
    return this.#order.best(request, this.#occupancy, isSuitable);
  }

  /** Returns why a reserved node is no longer suitable. A time that was promised is not beyond the horizon. */
  #rejectionOf(request: Request, candidate: Candidate, { until }: Reservation): Rejection | undefined {
    const window: Window = { start: this.#now, end: Math.max(this.#now, until ?? this.#now) };
    const suitability = new Suitability(request, this.#input.horizonMs);
    const rejection = suitability.rejection(candidate, this.#occupancy, window);
    return rejection === 'BeyondHorizon' ? undefined : rejection;
  }

  #decide(request: Request, reservation: Reservation | undefined, degradedBy?: Verdict['degradedBy']): void {
    const { uid } = request;
    const isElsewhere = reservation !== undefined && this.#isElsewhere(uid, reservation);
    const worst = degradedBy ?? (isElsewhere ? 'PodsOnOtherNode' : undefined);
    this.#verdicts.set(uid, { request, reservation, degradedBy: worst });
    if (reservation !== undefined) this.#store(request.uid, reservation);
  }

  #store(uid: string, reservation: Reservation): void {
    this.#reservations.set(uid, reservation);
    this.#space.add(uid, reservation);
    if (reservation.ended === undefined) this.#occupancy.add(uid, reservation);
    else this.#occupancy.remove(uid);
  }

  /** Returns the earliest end of a reservation, or start or end of maintenance, that is to come. */
  #nextAt(): number | undefined {
    let next = Number.POSITIVE_INFINITY;
    const consider = (time: number) => {
      if (time > this.#now && time < next) next = time;
    };
    for (const { ended, until, idleSince } of this.#reservations.values()) {
      if (ended !== undefined) continue;
      if (until !== undefined) consider(until);
      if (idleSince !== undefined) consider(idleSince + IDLE_MS);
    }
    for (const { maintenance } of this.#input.facts.candidates)
      for (const each of maintenance) {
        consider(each.startsAt);
        consider(endOf(each));
      }
    return Number.isFinite(next) ? next : undefined;
  }
}

/** Returns a reservation in the pool of its node, which is another one after the machine of the node has moved to another host. */
function inPoolOf({ gpus }: Candidate, reservation: Reservation): Reservation {
  return gpus?.pool === reservation.pool ? reservation : { ...reservation, pool: gpus?.pool };
}
