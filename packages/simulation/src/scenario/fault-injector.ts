import type { Simulation } from '../world/simulation.ts';
import { atRandomTimes } from './random-times.ts';
import type { Replicas } from './replicas.ts';

export interface FaultInjectorOptions {
  readonly simulation: Simulation;
  readonly replicas: Replicas;
  /** Servers from which a replica can be partitioned. Each partition affects the connection to only one server. */
  readonly origins: readonly [string, ...string[]];
  /** Functions that inject additional faults, by the name under which each fault is counted. */
  readonly more?: Readonly<Record<string, () => void>>;
  /** Maximum clock skew in milliseconds. @default one hour, which is longer than any lease and most timeouts */
  readonly skewMs?: number;
}

/** Maximum number of faults per run, in addition to those of the network. */
const MAX_FAULTS = 6;
/** Maximum duration of a pause or partition: longer than a lease, so that another replica becomes leader. */
const LASTING_MS = 45_000;
const SKEW_MS = 3_600_000;

/**
 * Injects faults into processes and into their connections to servers, in addition to the network's own
 * faults.
 */
export class FaultInjector {
  readonly #options: FaultInjectorOptions;
  #lasting = new Set<() => void>();

  constructor(options: FaultInjectorOptions) {
    this.#options = options;
  }

  /** Schedules faults within the given number of milliseconds. */
  begin(ms: number): void {
    const { simulation, replicas } = this.#options;
    simulation.network.faulty = true;
    atRandomTimes(simulation, MAX_FAULTS, ms, () => this.injectFault(simulation.choices.one(replicas.names)));
  }

  /** Ends all faults. Requests in flight can still be late. */
  heal(): void {
    this.#options.simulation.note('world', 'heals');
    this.#options.simulation.network.faulty = false;
    for (const end of this.#lasting) end();
    this.#lasting.clear();
  }

  /**
   * Injects a random fault: either a fault of this replica, or one of `more`. Does nothing after the faults have
   * stopped.
   */
  injectFault(name: string): void {
    const { simulation, replicas, origins, more = {}, skewMs = SKEW_MS } = this.#options;
    const { choices, network, counts } = simulation;
    if (!network.faulty) return;
    const others = Object.entries(more).map(([what, act]) => () => {
      counts.add(what);
      simulation.note('world', what);
      act();
    });
    const part = () => {
      const origin = choices.one(origins);
      counts.add(`a replica was partitioned from ${origin}`);
      simulation.note(name, `is partitioned from ${origin}`);
      network.partition(name, origin);
      this.#last(() => network.heal(name, origin));
    };
    choices.one([
      () => replicas.crash(name),
      () => replicas.stop(name),
      () => this.pause(name),
      part,
      () => {
        counts.add('a clock jumped');
        replicas.setClock(name, choices.pick(2 * skewMs) - skewMs);
      },
      ...others,
    ])();
  }

  /** Pauses a replica, usually for longer than a leader may act without renewing its lease. */
  pause(name: string): void {
    const { simulation, replicas } = this.#options;
    if (!simulation.network.faulty) return;
    simulation.counts.add('a replica was paused');
    replicas.pause(name);
    this.#last(() => replicas.resume(name));
  }

  /** Ends a lasting fault after a random time, or when all faults stop, whichever is first. */
  #last(end: () => void): void {
    const { schedule, choices } = this.#options.simulation;
    const once = () => {
      if (this.#lasting.delete(once)) end();
    };
    this.#lasting.add(once);
    schedule.after(1_000 + choices.pick(LASTING_MS), once);
  }
}
