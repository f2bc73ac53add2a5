import type { Simulation } from '../world/simulation.ts';
import type { SimulatedWorld } from '../world/world.ts';
import { ReplicaWorld } from './replica-world.ts';
import type { Traffic } from './traffic.ts';

/** Program of a replica. It is restarted when its promise settles, like the container of a pod. */
export type Program = (world: ReplicaWorld) => Promise<void>;

export interface ReplicasOptions {
  readonly simulation: Simulation;
  readonly traffic: Traffic;
  readonly names: readonly [string, ...string[]];
  readonly program: Program;
}

/** Maximum time until an ended replica restarts. */
const RESTART_MS = 12_000;
/** Time between the request to stop and the kill, as in Kubernetes. */
const GRACE_MS = 30_000;

/** A running process of a replica. */
interface Life {
  readonly world: SimulatedWorld;
  readonly stop: AbortController;
}

/** A replica: processes that run one after another under the same name and with the same clock. */
interface Place {
  readonly name: string;
  lives: number;
  life: Life | undefined;
  skewMs: number;
}

/** Several replicas of the same program. */
export class Replicas {
  readonly names: readonly [string, ...string[]];
  readonly #options: ReplicasOptions;
  readonly #places: ReadonlyMap<string, Place>;

  constructor(options: ReplicasOptions) {
    this.#options = options;
    this.names = options.names;
    this.#places = new Map(
      options.names.map((name) => [name, { name, lives: 0, life: undefined, skewMs: 0 }]),
    );
  }

  start(): void {
    for (const place of this.#places.values()) this.#begin(place);
  }

  /** Crashes a replica. Requests that it has sent still arrive. */
  crash(name: string): void {
    const place = this.#places.get(name);
    if (place?.life !== undefined) this.#end(place, place.life, 'crashed');
  }

  /** Stops a replica gracefully. */
  stop(name: string): void {
    const place = this.#places.get(name);
    const life = place?.life;
    if (place === undefined || life === undefined || life.stop.signal.aborted) return;
    const { simulation } = this.#options;
    simulation.note(name, 'is reported to stop');
    const { process } = life.world;
    process.enter(() => life.stop.abort(new Error('the program must stop')));
    simulation.schedule.after(GRACE_MS, () => this.#end(place, life, 'was killed'), process);
  }

  pause(name: string): void {
    this.#note(name, 'is paused');
    this.#places.get(name)?.life?.world.process.pause();
  }

  resume(name: string): void {
    const process = this.#places.get(name)?.life?.world.process;
    if (process?.state !== 'paused') return;
    this.#note(name, 'resumes');
    process.resume();
  }

  /** Sets the clock skew of a replica, which its next processes keep. */
  setClock(name: string, skewMs: number): void {
    const place = this.#places.get(name);
    if (place === undefined) return;
    this.#note(name, `has a clock skew of ${skewMs} ms`);
    place.skewMs = skewMs;
    if (place.life !== undefined) place.life.world.process.skewMs = skewMs;
  }

  #begin(place: Place): void {
    const { simulation, traffic, program } = this.#options;
    const world = simulation.start(place.name);
    place.lives += 1;
    const life: Life = { world, stop: new AbortController() };
    place.life = life;
    world.process.skewMs = place.skewMs;
    this.#note(place.name, 'starts');
    const identity = `${place.name}.${place.lives}`;
    program(new ReplicaWorld(identity, world, life.stop.signal, traffic)).then(
      () => this.#end(place, life, 'ended'),
      (error) => this.#end(place, life, `failed: ${error instanceof Error ? error.message : String(error)}`),
    );
  }

  #end(place: Place, life: Life, how: string): void {
    if (place.life !== life) return;
    const { schedule, choices, counts } = this.#options.simulation;
    this.#note(place.name, how);
    counts.add(`a replica ${how.replace(/:.*/, '')}`);
    life.world.process.crash();
    place.life = undefined;
    schedule.after(500 + choices.pick(RESTART_MS), () => this.#begin(place));
  }

  #note(name: string, what: string): void {
    this.#options.simulation.note(name, what);
  }
}
