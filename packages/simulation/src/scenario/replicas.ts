import type { Simulation } from '../world/simulation.ts';
import type { SimulatedWorld } from '../world/world.ts';
import { ReplicaWorld } from './replica-world.ts';
import type { Traffic } from './traffic.ts';

/** What a replica runs. It is started again when its promise settles, as a pod is. */
export type Program = (world: ReplicaWorld) => Promise<void>;

export interface ReplicasOptions {
  readonly simulation: Simulation;
  readonly traffic: Traffic;
  readonly names: readonly [string, ...string[]];
  readonly program: Program;
}

/** How long until a replica that has ended is there again. */
const RESTART_MS = 12_000;
/** How long a program may take to end when it is asked to, as Kubernetes has it. */
const GRACE_MS = 30_000;

/** One life of a replica. */
interface Life {
  readonly world: SimulatedWorld;
  readonly stop: AbortController;
}

/** A place where one replica after another runs, under the same name and by the same clock. */
interface Place {
  readonly name: string;
  lives: number;
  life: Life | undefined;
  skewMs: number;
}

/** Several processes that run the same program. */
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

  /** It is gone at once; what it has sent still lands. */
  crash(name: string): void {
    const place = this.#places.get(name);
    if (place?.life !== undefined) this.#end(place, place.life, 'crashes');
  }

  /** Asks it to end in good order. */
  stop(name: string): void {
    const place = this.#places.get(name);
    const life = place?.life;
    if (place === undefined || life === undefined || life.stop.signal.aborted) return;
    const { simulation } = this.#options;
    simulation.note(name, 'is asked to end');
    const { process } = life.world;
    process.enter(() => life.stop.abort(new Error('the program is asked to end')));
    simulation.schedule.after(GRACE_MS, () => this.#end(place, life, 'is killed'), process);
  }

  pause(name: string): void {
    this.#tell(name, 'is paused');
    this.#places.get(name)?.life?.world.process.pause();
  }

  resume(name: string): void {
    const process = this.#places.get(name)?.life?.world.process;
    if (process?.state !== 'paused') return;
    this.#tell(name, 'goes on');
    process.resume();
  }

  /** Its wall clock jumps; the next process there has the same clock. */
  setClock(name: string, skewMs: number): void {
    const place = this.#places.get(name);
    if (place === undefined) return;
    this.#tell(name, `has a clock that is off by ${skewMs} ms`);
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
    this.#tell(place.name, 'starts');
    const identity = `${place.name}.${place.lives}`;
    program(new ReplicaWorld(identity, world, life.stop.signal, traffic)).then(
      () => this.#end(place, life, 'has ended'),
      (error) => this.#end(place, life, `fails: ${error instanceof Error ? error.message : String(error)}`),
    );
  }

  #end(place: Place, life: Life, how: string): void {
    if (place.life !== life) return;
    const { schedule, choices, counts } = this.#options.simulation;
    this.#tell(place.name, how);
    counts.add(`a replica ${how.replace(/:.*/, '')}`);
    life.world.process.crash();
    place.life = undefined;
    schedule.after(500 + choices.pick(RESTART_MS), () => this.#begin(place));
  }

  #tell(name: string, what: string): void {
    this.#options.simulation.note(name, what);
  }
}
