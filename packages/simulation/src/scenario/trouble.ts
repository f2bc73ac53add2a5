import type { Simulation } from '../world/simulation.ts';
import type { Replicas } from './replicas.ts';

export interface TroubleOptions {
  readonly simulation: Simulation;
  readonly replicas: Replicas;
  /** Servers from which a replica may be cut off, one and not another. */
  readonly origins: readonly [string, ...string[]];
  /** What else may happen, by the name under which it is counted. */
  readonly more?: Readonly<Record<string, () => void>>;
}

/** At most so many troubles in one history, beside those of the network. */
const MOST = 6;
/** How long a pause or a partition lasts: longer than a lease, so that the lead goes to another meanwhile. */
const LASTING_MS = 45_000;
/** By how much clocks are off at most: beyond any lease, and beyond most time-outs. */
const SKEW_MS = 3_600_000;

/** What happens to processes, and to the ways between them and servers; the network's own faults come on top. */
export class Trouble {
  readonly #options: TroubleOptions;
  #lasting = new Set<() => void>();

  constructor(options: TroubleOptions) {
    this.#options = options;
  }

  /** From now on for so long. */
  begin(ms: number): void {
    const { schedule, choices, network } = this.#options.simulation;
    network.faulty = true;
    for (let count = choices.pick(MOST + 1); count > 0; count--)
      schedule.after(choices.pick(ms), () => this.strike(choices.one(this.#options.replicas.names)));
  }

  /** Everything is well from now on, but for what is on the wire. */
  heal(): void {
    this.#options.simulation.note('world', 'heals');
    this.#options.simulation.network.faulty = false;
    for (const end of this.#lasting) end();
    this.#lasting.clear();
  }

  /** Something happens to this replica, or to the world; nothing once all has healed. */
  strike(name: string): void {
    const { simulation, replicas, origins, more = {} } = this.#options;
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
      simulation.note(name, `is cut off from ${origin}`);
      network.part(name, origin);
      this.#last(() => network.mend(name, origin));
    };
    choices.one([
      () => replicas.crash(name),
      () => replicas.stop(name),
      () => this.pause(name),
      part,
      () => {
        counts.add('a clock jumped');
        replicas.setClock(name, choices.pick(2 * SKEW_MS) - SKEW_MS);
      },
      ...others,
    ])();
  }

  /** It does nothing for a while, mostly longer than it may lead without renewing. */
  pause(name: string): void {
    const { simulation, replicas } = this.#options;
    if (!simulation.network.faulty) return;
    simulation.counts.add('a replica was paused');
    replicas.pause(name);
    this.#last(() => replicas.resume(name));
  }

  /** Something that has an end, at the latest when all heals. */
  #last(end: () => void): void {
    const { schedule, choices } = this.#options.simulation;
    const once = () => {
      if (this.#lasting.delete(once)) end();
    };
    this.#lasting.add(once);
    schedule.after(1_000 + choices.pick(LASTING_MS), once);
  }
}
