import type { Entries } from '../ledger/entry-store.ts';
import { Ledger, type LedgerOperation } from '../ledger/ledger.ts';
import { allocate } from './allocate.ts';
import type { Allocation } from './allocation.ts';
import type { Facts } from './candidate.ts';
import { Confirmations, RECHECK_MS, type Unconfirmed } from './confirmations.ts';
import { changesTo, type ReservationStore, reservationsIn } from './ledger.ts';
import type { Requests } from './requests.ts';
import { type UnwatchedReservation, unwatchedIn } from './unwatched.ts';

export interface AllocationsOptions {
  readonly requests: Requests;
  /** Returns the current facts. */
  readonly facts: () => Facts;
  readonly horizonMs: number;
  /** Namespaces that the operator watches. @default all */
  readonly namespaces?: readonly string[] | undefined;
  /** Called after stored reservations have changed, with the keys of the GPUInfos whose status may have to change. */
  readonly onStored: (keys: readonly string[]) => void;
}

/** An allocation whose reservations are stored, and the facts that it is based on. */
export interface StoredAllocation {
  readonly facts: Facts;
  readonly allocation: Allocation;
  readonly unwatched: readonly UnwatchedReservation[];
}

interface Latest extends StoredAllocation {
  readonly requestsVersion: number;
  readonly entries: Entries;
}

/**
 * The current allocation of nodes and GPUs to all requests. It is computed once per change of facts, requests or
 * reservations, and when `nextAt` is reached. The reconciles of all objects share it.
 *
 * Guarantees:
 * - An allocation is returned only after its reservations are stored. The write fails if the stored reservations have
 *   changed since the allocation read them (resourceVersion). So a GPU is never promised twice, even if two replicas
 *   run, or if one crashes before it writes a status.
 * - If the caches lack the object of a reservation, the reservation is dropped only after the API server has confirmed
 *   that the object does not exist. If they lack its job, the reservation is ended only after the same confirmation.
 */
export class Allocations {
  readonly #options: AllocationsOptions;
  readonly #ledger = new Ledger();
  readonly #confirmations = new Confirmations();
  /** Lookups in the API server that are in progress. All reconciles that wait for an allocation share them. */
  #lookups: Promise<unknown> | undefined;
  #latest: Latest | undefined;
  /** Stored reservations after the last allocation, to find those that have changed since. */
  #entries: Entries | undefined;

  constructor(options: AllocationsOptions) {
    this.#options = options;
  }

  /** Forgets what is known about the stored reservations, at the start of a leadership term. */
  reset(): void {
    this.#ledger.reset();
    this.#confirmations.reset();
    this.#latest = undefined;
    this.#entries = undefined;
  }

  /** Latest allocation; undefined before the first one of a leadership term. */
  get latest(): StoredAllocation | undefined {
    return this.#latest;
  }

  /** Returns the allocation for the current facts and requests. @param now returns milliseconds since 1970 */
  async current(store: ReservationStore, now: () => number): Promise<StoredAllocation> {
    const known = this.#known(now());
    if (known !== undefined) return known;
    try {
      await this.#lookUp(store, now);
      return await this.#ledger.decide(store, (operation) => this.#update(operation, store, now));
    } catch (error) {
      this.#confirmations.reset(); // the next attempt asks the API server again
      throw error;
    }
  }

  /**
   * Drops reservations of objects that were deleted before the cache had them. Restores reservations that a person
   * has deleted from the ConfigMap.
   */
  async sweep(store: ReservationStore, now: () => number): Promise<void> {
    await this.#ledger.refresh(store);
    const { reservations, verdicts } = this.#latest?.allocation ?? {};
    if (reservations?.keys().some((uid) => !verdicts?.has(uid))) this.#latest = undefined;
    await this.current(store, now);
  }

  /**
   * Looks up objects and jobs that the caches lack. Must be called before `Ledger.decide`. The calls of `decide` run
   * one after the other, so lookups inside one call would delay all other calls.
   */
  async #lookUp(store: ReservationStore, now: () => number): Promise<void> {
    const entries = await this.#ledger.read(store);
    this.#lookups ??= this.#confirmations
      .ask(this.#unconfirmed(entries), store, now())
      .finally(() => (this.#lookups = undefined));
    await this.#lookups;
  }

  #unconfirmed(entries: Entries): Unconfirmed {
    const { requests, facts } = this.#options;
    return { reservations: reservationsIn(entries), requests: requests.all, facts: facts() };
  }

  /** Returns the latest allocation if nothing that it depends on has changed. */
  #known(now: number): StoredAllocation | undefined {
    const { requests, facts } = this.#options;
    const latest = this.#latest;
    if (latest === undefined || latest.entries !== this.#ledger.known) return undefined;
    if (latest.requestsVersion !== requests.version) return undefined;
    if (latest.facts.version !== facts().version) return undefined;
    return now >= (latest.allocation.nextAt ?? Number.POSITIVE_INFINITY) ? undefined : latest;
  }

  async #update(
    operation: LedgerOperation,
    store: ReservationStore,
    now: () => number,
  ): Promise<StoredAllocation> {
    const known = this.#known(now()); // another reconcile may have computed the allocation while this one waited
    if (known !== undefined) return known;
    const { requests, facts: currentFacts, horizonMs, namespaces, onStored } = this.#options;
    const confirmations = this.#confirmations;
    while (await confirmations.ask(this.#unconfirmed(operation.entries), store, now()));
    // No await from here to the write: the allocation must be based on the newest facts and requests.
    const facts = currentFacts();
    const { all, version, reported } = requests;
    const unconfirmed = this.#unconfirmed(operation.entries);
    const unobserved = confirmations.unobserved(unconfirmed);
    const jobs = new Map([...facts.jobs, ...unobserved]);
    const reservations = confirmations.existing(unconfirmed);
    const input = { requests: all, facts: { ...facts, jobs }, reservations, reported, horizonMs };
    const computed = allocate(input, now());
    const allocation = unobserved.size === 0 ? computed : dueWithin(computed, now() + RECHECK_MS);
    confirmations.settle(computed.reservations);
    const before = this.#entries ?? operation.entries;
    const changes = changesTo(operation.entries, allocation.reservations);
    if (changes !== undefined) await operation.write(changes);
    const unwatched = unwatchedIn(allocation.reservations, namespaces, (uid) => confirmations.stateOf(uid));
    this.#latest = { facts, allocation, unwatched, requestsVersion: version, entries: operation.entries };
    this.#entries = operation.entries;
    const changed = changedEntries(before, operation.entries); // includes entries that a person has changed
    if (changed.size > 0) onStored(affected(allocation, changed));
    return this.#latest;
  }
}

/** Returns the allocation with a `nextAt` of at most `at`, so that it is computed again by then. */
function dueWithin(allocation: Allocation, at: number): Allocation {
  return { ...allocation, nextAt: Math.min(allocation.nextAt ?? at, at) };
}

/** Returns the UIDs of the GPUInfos whose entries differ. */
function changedEntries({ values: before }: Entries, { values: after }: Entries): ReadonlySet<string> {
  const changed = new Set<string>();
  if (before === after) return changed;
  for (const [uid, text] of after) if (before.get(uid) !== text) changed.add(uid);
  for (const uid of before.keys()) if (!after.has(uid)) changed.add(uid);
  return changed;
}

/** Returns the keys of the objects with a changed reservation, and of the objects that wait for a reservation. */
function affected({ verdicts }: Allocation, changed: ReadonlySet<string>): readonly string[] {
  const keys: string[] = [];
  for (const [uid, { request, reservation }] of verdicts)
    if (reservation === undefined || changed.has(uid)) keys.push(request.key);
  return keys;
}
