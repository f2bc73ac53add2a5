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
interface Process {
  readonly world: SimulatedWorld;
  readonly stop: AbortController;
}

/** A replica: processes that run one after another under the same name and with the same clock. */
interface Slot {
  readonly name: string;
  starts: number;
  current: Process | undefined;
  skewMs: number;
}

/** Several replicas of the same program. */
export class Replicas {
  readonly names: readonly [string, ...string[]];
  readonly #options: ReplicasOptions;
  readonly #slots: ReadonlyMap<string, Slot>;
  #passedMs = 0;

  constructor(options: ReplicasOptions) {
    this.#options = options;
    this.names = options.names;
    this.#slots = new Map(
      options.names.map((name) => [name, { name, starts: 0, current: undefined, skewMs: 0 }]),
    );
  }

  start(): void {
    for (const slot of this.#slots.values()) this.#begin(slot);
  }

  /** Crashes a replica. Requests that it has sent still arrive. */
  crash(name: string): void {
    const slot = this.#slots.get(name);
    if (slot?.current !== undefined) this.#end(slot, slot.current, 'crashed');
  }

  /** Stops a replica gracefully. */
  stop(name: string): void {
    const slot = this.#slots.get(name);
    const running = slot?.current;
    if (slot === undefined || running === undefined || running.stop.signal.aborted) return;
    const { simulation } = this.#options;
    simulation.note(name, 'receives a stop request');
    const { process } = running.world;
    process.enter(() => running.stop.abort(new Error('the program must stop')));
    simulation.schedule.after(GRACE_MS, () => this.#end(slot, running, 'was killed'), process);
  }

  pause(name: string): void {
    this.#note(name, 'is paused');
    this.#slots.get(name)?.current?.world.process.pause();
  }

  resume(name: string): void {
    const process = this.#slots.get(name)?.current?.world.process;
    if (process?.state !== 'paused') return;
    this.#note(name, 'resumes');
    process.resume();
  }

  /** Total time by which `pass` has moved the clocks of all replicas forward, in milliseconds. */
  get passedMs(): number {
    return this.#passedMs;
  }

  /** Moves the clocks of all replicas forward, as if time passed without events. Does not affect timers. */
  pass(ms: number): void {
    this.#passedMs += ms;
    this.#options.simulation.note('world', `lets ${ms} ms pass`);
    for (const { current, skewMs } of this.#slots.values())
      if (current !== undefined) current.world.process.skewMs = skewMs + this.#passedMs;
  }

  /** Sets the clock skew of a replica. Its next processes keep the skew. */
  setClock(name: string, skewMs: number): void {
    const slot = this.#slots.get(name);
    if (slot === undefined) return;
    this.#note(name, `has a clock skew of ${skewMs} ms`);
    slot.skewMs = skewMs;
    if (slot.current !== undefined) slot.current.world.process.skewMs = skewMs + this.#passedMs;
  }

  #begin(slot: Slot): void {
    const { simulation, traffic, program } = this.#options;
    const world = simulation.start(slot.name);
    slot.starts += 1;
    const running: Process = { world, stop: new AbortController() };
    slot.current = running;
    world.process.skewMs = slot.skewMs + this.#passedMs;
    this.#note(slot.name, 'starts');
    const identity = `${slot.name}.${slot.starts}`;
    program(new ReplicaWorld(identity, world, running.stop.signal, traffic)).then(
      () => this.#end(slot, running, 'ended'),
      (error) =>
        this.#end(slot, running, `failed: ${error instanceof Error ? error.message : String(error)}`),
    );
  }

  #end(slot: Slot, running: Process, how: string): void {
    if (slot.current !== running) return;
    const { schedule, choices, counts } = this.#options.simulation;
    this.#note(slot.name, how);
    counts.add(`a replica ${how.replace(/:.*/, '')}`);
    running.world.process.crash();
    slot.current = undefined;
    schedule.after(500 + choices.pick(RESTART_MS), () => this.#begin(slot));
  }

  #note(name: string, what: string): void {
    this.#options.simulation.note(name, what);
  }
}
