import type { Facts, GpuPool } from './candidate.ts';
import type { Reservation } from './reservation.ts';

/** Number of GPUs of a pool that are expected to be free from the time `at` on. */
interface Step {
  readonly at: number;
  readonly free: number;
}

type Reserved = Pick<Reservation, 'gpus' | 'until'>;

interface PoolState {
  readonly total: number;
  /**
   * Number of GPUs in use, by UID of the GPUInfo that the pods refer to. The key `NO_HOLDER` stands for VMs and for
   * pods without a GPUInfo.
   */
  readonly used: ReadonlyMap<string, number>;
  /** GPUs that are reserved or in use. For each holder, the larger of its reserved and its used GPUs counts. */
  occupied: number;
  readonly reserved: Map<string, Reserved>;
  steps: readonly Step[] | undefined;
}

/**
 * Number of GPUs of every pool: in total, in use, and reserved. A GPU that is reserved for a holder (UID of a GPUInfo)
 * and used by pods of this holder counts once.
 */
export class Occupancy {
  readonly #pools = new Map<string, PoolState>();
  readonly #users = new Set<string>();
  /** Node and pool of each counted reservation, by UID of the GPUInfo. */
  readonly #counted = new Map<string, Pick<Reservation, 'node' | 'pool'>>();
  /** Number of reservations of each node. */
  readonly #onNode = new Map<string, number>();

  constructor({ pools }: Pick<Facts, 'pools'>) {
    for (const [id, pool] of pools) {
      const state = stateOf(pool);
      this.#pools.set(id, state);
      for (const holder of state.used.keys()) this.#users.add(holder);
    }
  }

  /** Counts a reservation that has not ended. It replaces an earlier reservation of the same holder. */
  add(uid: string, { node, pool, gpus, until }: Reservation): void {
    this.remove(uid);
    this.#counted.set(uid, { node, pool });
    this.#onNode.set(node, this.reservationsOn(node) + 1);
    this.#reserve(uid, pool, { gpus, until });
  }

  /** Stops counting the reservation of a holder. */
  remove(uid: string): void {
    const before = this.#counted.get(uid);
    if (before === undefined) return;
    this.#counted.delete(uid);
    this.#onNode.set(before.node, this.reservationsOn(before.node) - 1);
    this.#reserve(uid, before.pool, undefined);
  }

  #reserve(uid: string, pool: string | undefined, reserved: Reserved | undefined): void {
    const state = pool === undefined ? undefined : this.#pools.get(pool);
    if (state === undefined) return;
    state.occupied -= shareOf(state, uid);
    if (reserved === undefined) state.reserved.delete(uid);
    else state.reserved.set(uid, reserved);
    state.occupied += shareOf(state, uid);
    state.steps = undefined;
  }

  reservationsOn(node: string): number {
    return this.#onNode.get(node) ?? 0;
  }

  total(pool: string): number {
    return this.#pools.get(pool)?.total ?? 0;
  }

  /** Returns how many GPUs of a pool a holder can use: the free ones and its own. */
  freeFor(uid: string, pool: string): number {
    const state = this.#pools.get(pool);
    return state === undefined ? 0 : state.total - state.occupied + shareOf(state, uid);
  }

  /** Whether pods of a holder use GPUs of any pool. */
  isInUseBy(uid: string): boolean {
    return this.#users.has(uid);
  }

  /**
   * Whether enough GPUs would be free if only pods occupied GPUs. If so, a shortage is caused by reservations,
   * otherwise by pods.
   */
  wouldFitWithoutReservations(uid: string, pool: string, gpus: number): boolean {
    const state = this.#pools.get(pool);
    if (state === undefined) return false;
    let used = 0;
    for (const [holder, count] of state.used) if (holder !== uid) used += count;
    return state.total - used >= gpus;
  }

  /**
   * Returns the times at which reservations of a pool end, in order, each with the number of free GPUs from then on.
   * Assumes that the pods of a reservation end with the reservation, and that all other pods continue to run.
   */
  steps(pool: string): readonly Step[] {
    const state = this.#pools.get(pool);
    if (state === undefined) return [];
    state.steps ??= stepsOf(state);
    return state.steps;
  }

  /** Returns the GPUs of all pools, for metrics. */
  totals(): { readonly total: number; readonly free: number } {
    let [total, free] = [0, 0];
    for (const state of this.#pools.values()) {
      total += state.total;
      free += Math.max(0, state.total - state.occupied);
    }
    return { total, free };
  }
}

/** Holder of GPUs that VMs, or pods without a GPUInfo, use. It differs from every UID. */
const NO_HOLDER = '';

function stateOf({ total, uses }: GpuPool): PoolState {
  const used = new Map<string, number>();
  let occupied = 0;
  for (const { holder = NO_HOLDER, gpus } of uses) {
    used.set(holder, (used.get(holder) ?? 0) + gpus);
    occupied += gpus;
  }
  return { total, used, occupied, reserved: new Map(), steps: undefined };
}

function usedBy({ used }: PoolState, uid: string): number {
  return used.get(uid) ?? 0;
}

/** Returns the occupied GPUs that belong to a holder. */
function shareOf(state: PoolState, uid: string): number {
  return Math.max(state.reserved.get(uid)?.gpus ?? 0, usedBy(state, uid));
}

function stepsOf(state: PoolState): readonly Step[] {
  const ending = [...state.reserved].flatMap(([uid, { until }]) =>
    until === undefined ? [] : [{ at: until, gpus: shareOf(state, uid) }],
  );
  let free = state.total - state.occupied;
  return ending
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, gpus }) => {
      free += gpus;
      return { at, free };
    });
}
