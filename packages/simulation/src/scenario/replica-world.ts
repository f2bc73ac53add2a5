import type { ServerAddress, Timer, Transport, World } from '@vmwright/runtime';
import type { WorkTracker } from '../world/work-tracker.ts';
import type { SimulatedWorld } from '../world/world.ts';
import type { Traffic } from './traffic.ts';

/** Clock, randomness and network of a replica's program. */
export class ReplicaWorld implements World {
  /** Name and incarnation of the replica, unique per process start: `alpha.2`. */
  readonly identity: string;
  /** Aborts when the program must end, as on SIGTERM. */
  readonly stopping: AbortSignal;
  readonly #world: SimulatedWorld;
  readonly #traffic: Traffic;

  constructor(identity: string, world: SimulatedWorld, stopping: AbortSignal, traffic: Traffic) {
    this.identity = identity;
    this.stopping = stopping;
    this.#world = world;
    this.#traffic = traffic;
  }

  get work(): WorkTracker {
    return this.#world.work;
  }

  now(): number {
    return this.#world.now();
  }

  monotonic(): number {
    return this.#world.monotonic();
  }

  after(ms: number, callback: () => void): Timer {
    return this.#world.after(ms, callback);
  }

  random(): number {
    return this.#world.random();
  }

  uuid(): string {
    return this.#world.uuid();
  }

  connect(server: ServerAddress): Transport {
    return this.#traffic.observe(this.#world.connect(server), this.identity, server.origin);
  }
}
