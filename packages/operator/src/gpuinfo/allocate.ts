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
 * Guarantees:
 * - The result does not depend on the order of requests, nodes or reservations.
 * - A reservation stays while its node is suitable and the spec is unchanged. It also stays while a pod of its job is
 *   bound to the node, its object is paused, or the facts about the node are unknown.
 * - Free GPUs go to the oldest request that can use them.
 * - A reservation is made only if the GPU pool of the node has enough free GPUs.
 * - A request without a reservation gets one if a suitable node exists, unless its object is paused or the ConfigMap
 *   that stores the reservations is full.
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
  /**
   * Specs (`shapeOf`) for which no node is suitable. No node becomes suitable later in this run, because free GPUs only
   * decrease while nodes are chosen.
   */
  readonly #hopeless = new Set<string>();
  /** Reservations of running jobs that were made for an earlier spec of the GPUInfo; see `#extend`. */
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
    // A request with a changed spec is served first if it needs no more GPUs than it has reserved. Otherwise, waiting
    // requests could take these GPUs.
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
   * Returns the reservations in the order in which `#keep` judges them. Each has the pool that `followPools` chose.
   *
   * There are two groups. The second group has the reservations for which the node now belongs to another GPU pool that
   * has no room for them. They come second, so that they take no GPU from the first group. In each group, reservations
   * that cannot move come first, because they keep their GPUs in any case.
   */
  #ordered(held: readonly Held[]): readonly Held[] {
    const fixed = held.filter((each) => this.#isFixed(each));
    const movable = held.filter((each) => !this.#isFixed(each));
    const moved = followPools([...fixed, ...movable], this.#occupancy, (each) => this.#newPool(each));
    for (const { request } of movable) this.#occupancy.remove(request.uid); // `#keep` adds the reservations that stay
    const isInPlace = (each: Held) => this.#newPool(each) === undefined;
    return [...moved.filter(isInPlace), ...moved.filter((each) => !isInPlace(each))];
  }

  /**
   * Returns the current pool of the reserved node if it differs from the pool of the reservation. Returns undefined if
   * the pools are equal, if the reservation cannot be judged, or if a changed spec causes a new choice of the node.
   */
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

  /** Whether pods of the job are bound to, or wait for, a node other than the reserved one. */
  #isElsewhere(uid: string, { node, ended }: Reservation): boolean {
    const { state, boundTo = [], pinnedTo = [] } = this.#jobOf(uid) ?? {};
    return (
      ended === undefined && state === 'Active' && [...boundTo, ...pinnedTo].some((each) => each !== node)
    );
  }

  /**
   * Whether a reservation stays even if its node is not suitable, because its job runs, its object is paused, or the
   * reservation cannot be judged now.
   */
  #isFixed({ request, reservation }: Held): boolean {
    const held = { request, reservation };
    return this.#isRunning(held) || !request.mayReserve || this.#isUndecided(held);
  }

  /**
   * Whether a reservation cannot be judged, because the facts about its node are unknown, or because the reservation
   * was made for a newer spec than the cached one.
   */
  #isUndecided({ request, reservation }: Held): boolean {
    const { blocker } = this.#nodes.get(reservation.node) ?? {};
    return blocker?.reason === 'FactsUnknown' || reservation.generation > request.generation;
  }

  /**
   * Keeps a reservation if the spec of its GPUInfo is unchanged and its node is suitable, or if the reservation must
   * not be moved.
   * @returns whether the reservation is kept
   */
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
    if (isChanged && !isFixed) return false; // a node is chosen again for the changed spec
    if (isChanged && request.mayReserve) {
      this.#changed.push(held);
      this.#decide(request, reservation); // `#extend` adapts it when all kept reservations are counted
      return true;
    }
    const rejection = this.#rejectionOf(request, candidate, reservation);
    // If `isChanged` is true here, `mayReserve` is false, for example because the object is paused. The reservation
    // then stays in its pool, because the node's current pool may be too small for it. `rejection` does not show this:
    // it was computed for the new spec, which may need fewer GPUs than are reserved.
    if (rejection === undefined)
      this.#decide(request, isChanged ? reservation : inPoolOf(candidate, reservation));
    else if (isFixed) this.#decide(request, reservation, rejection);
    else return false;
    return true;
  }

  /**
   * Adapts the reservation of a running job to the changed spec. If the node does not have what the spec asks for, the
   * reservation stays as it is, and the verdict says why.
   */
  #extend({ request, reservation }: Held): void {
    const candidate = this.#nodes.get(reservation.node);
    if (candidate === undefined) return;
    const wanted = this.#observed(request.uid, this.#extended(request, reservation));
    if (wanted.ended !== undefined) {
      this.#decide(request, wanted); // the spec now asks for less time than has passed
      return;
    }
    const rejection = this.#rejectionOf(request, candidate, wanted);
    if (rejection === undefined) this.#decide(request, inPoolOf(candidate, wanted));
    else this.#decide(request, reservation, rejection);
  }

  /** Returns the reservation of a running job as the changed spec asks for it, with the same node and start. */
  #extended({ generation, gpus, hours }: Request, reservation: Reservation): Reservation {
    const { until: _, ...rest } = reservation;
    const { end } = windowOf({ hours }, reservation.from);
    return { ...rest, generation, gpus, ...(hours > 0 && { until: end }) };
  }

  /**
   * Restores a reservation that the status shows but the ledger (the ConfigMap with all reservations) lacks, for
   * example after a person has deleted it there. The job may rely on the reservation, so it is restored before waiting
   * requests get nodes. The restored reservation takes no GPU from a stored one.
   * @returns false if there is nothing to restore, the status is not plausible, the node is not suitable, or the ledger
   * has no space
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

  /** Reserves the best suitable node, unless there is none, the object is paused or the ConfigMap is full. */
  #choose(request: Request): void {
    const { uid, key, generation, gpus, hours, mayReserve } = request;
    const node = mayReserve ? this.#found(request) : undefined;
    if (node === undefined) {
      this.#decide(request, undefined);
      return;
    }
    if (!this.#space.hasRoom(uid, key)) {
      this.#verdicts.set(uid, {
        request,
        reservation: undefined,
        degradedBy: undefined,
        refusedBy: 'TooManyReservations',
      });
      return;
    }
    this.#reserve(request, node, {
      key,
      generation,
      node: node.name,
      gpus,
      from: this.#now,
      ...(hours > 0 && { until: windowOf(request, this.#now).end }),
    });
  }

  /** Makes a reservation in the pool of its node, and records the state of the request's job. */
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

  /**
   * Returns the best suitable node. If there is none, remembers this, so that the nodes are not searched again for
   * equal requests.
   */
  #found(request: Request): Candidate | undefined {
    // This result is not remembered, because it does not apply to equal requests: only this request can also use the
    // GPUs that its own pods use.
    if (this.#occupancy.isInUseBy(request.uid)) return this.#best(request);
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
    // Prefers a node on which pods of the job already run, because running pods cannot move. The job of these pods may
    // have no reservation, for example after a person has deleted it from the ConfigMap.
    const own = this.#jobOf(request.uid)?.boundTo.map((name) => this.#nodes.get(name)) ?? [];
    const current = own.find((node) => node !== undefined && isSuitable(node));
    if (current !== undefined) return current;
    return this.#order.best(request, this.#occupancy, isSuitable);
  }

  /**
   * Returns why a reserved node is no longer suitable; undefined if it is suitable. `BeyondHorizon` does not count,
   * because the node is already promised for the whole time of the reservation.
   */
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

  /** Returns the earliest future time at which a reservation ends, or maintenance starts or ends. */
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

/**
 * Returns a reservation with the current pool of its node. The pool changes when the node's machine moves to another
 * host.
 */
function inPoolOf({ gpus }: Candidate, reservation: Reservation): Reservation {
  return gpus?.pool === reservation.pool ? reservation : { ...reservation, pool: gpus?.pool };
}
