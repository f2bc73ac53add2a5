import type { Manager } from '@vmwright/runtime';
import { API_SERVER } from '../apiserver/simulated.ts';
import type { Simulation } from '../world/simulation.ts';
import { Life } from './life.ts';
import type { Wire } from './wire.ts';

export interface ReplicasOptions {
  readonly simulation: Simulation;
  readonly wire: Wire<Life>;
  /** Makes the program of one life. */
  readonly program: (life: Life) => Manager;
  readonly count: number;
  /** Told why one has ended by itself. */
  readonly onEnd?: (life: Life, why: string) => void;
}

/** How long one that has ended by itself stays away. */
const RESTART_MS = 1_000;
/** One request about a lease in so many is an ambush, in lives that are to have one. */
const AMBUSH_ONE_IN = 8;
/** How one ends that was asked to. */
export const IN_ORDER = 'in order';

/** The replicas of a program, and what befalls them. */
export class Replicas {
  readonly count: number;
  readonly #options: ReplicasOptions;
  readonly #lives: (Life | undefined)[] = [];
  readonly #births: number[] = [];
  #healed = false;

  constructor(options: ReplicasOptions) {
    this.#options = options;
    this.count = options.count;
    options.wire.onSend = ({ sender, path }) => this.#sends(sender, path);
    for (let which = 0; which < options.count; which++) this.#start(which);
  }

  /** Those that have neither ended nor crashed. */
  get alive(): readonly Life[] {
    return this.#lives.flatMap((life) => (life?.isAlive ? [life] : []));
  }

  /** Something befalls one of them, for a while. */
  trouble(which: number): void {
    const { choices, schedule } = this.#options.simulation;
    const life = this.#lives[which];
    if (this.#healed || !life?.isAlive) return;
    switch (choices.pick(5)) {
      case 0:
        this.#tell(life, 'a replica crashed');
        this.#end(life);
        schedule.after(choices.delay(5_000, 50_000), () => this.#start(which));
        break;
      case 1:
        this.#tell(life, 'a replica was stopped');
        life.stop.abort(new Error('asked to stop'));
        break;
      case 2:
        this.#pause(life);
        break;
      case 3:
        this.#part(which);
        break;
      case 4:
        this.#tell(life, "a replica's clock jumped");
        life.disturb();
        life.simulated.process.skewMs += choices.pick(600_000) - 300_000;
        break;
    }
  }

  /** All are there again, and nothing befalls them any more. */
  heal(): void {
    this.#healed = true;
    for (let which = 0; which < this.count; which++) {
      this.#mend(which);
      const life = this.#lives[which];
      if (life === undefined || !life.isAlive) this.#start(which);
      else {
        life.isBlind = false;
        life.isMute = false;
        this.#resume(life);
      }
    }
  }

  /** Asks one to end in order, also in calm times; it comes back. */
  stop(life: Life): void {
    this.#tell(life, 'a replica was stopped without faults');
    life.stop.abort(new Error('asked to stop'));
  }

  #start(which: number): void {
    if (this.#lives[which]?.isAlive) return;
    const { simulation, wire, program, onEnd } = this.#options;
    const { choices, schedule } = simulation;
    const birth = (this.#births[which] ?? 0) + 1;
    this.#births[which] = birth;
    const simulated = simulation.start(`r${which}`);
    if (choices.oneIn(3)) simulated.process.skewMs = choices.pick(7_200_000) - 3_600_000;
    const life = new Life(`r${which}.${birth}`, simulated, simulation, wire);
    this.#lives[which] = life;
    life.ambush = choices.one([undefined, 'token', 'lease', 'peers']);
    life.onSlowToken = (ms) => {
      if (life.ambush === 'token' && life.working.size > 0) this.#pause(life);
      if (life.ambush === 'peers' && choices.oneIn(4)) schedule.after(ms + 60, () => this.#partOthers(life));
    };
    life.note('starts');
    const over = (why: string) => {
      if (!life.isAlive) return;
      // The process goes on until nothing of it is under way.
      if (why === IN_ORDER && life.working.size > 0) {
        schedule.after(RESTART_MS, () => over(why));
        return;
      }
      life.note(`ends: ${why}`);
      onEnd?.(life, why);
      this.#end(life);
      schedule.after(RESTART_MS, () => this.#start(which));
    };
    program(life)
      .run(life.stop.signal)
      .then(
        () => over(IN_ORDER),
        (error) => over(String(error)),
      );
  }

  #end(life: Life): void {
    life.ended = true;
    life.simulated.process.crash();
  }

  #part(which: number): void {
    const { choices, schedule, network } = this.#options.simulation;
    const life = this.#lives[which];
    if (this.#healed || !life?.isAlive) return;
    this.#tell(life, 'a replica was partitioned');
    life.disturb();
    network.part(`r${which}`, API_SERVER);
    schedule.after(choices.pick(45_000), () => this.#mend(which));
  }

  #partOthers(life: Life): void {
    for (const [which, other] of this.#lives.entries()) if (other !== life) this.#part(which);
  }

  /** One cannot look at the leases for a while, though it can renew its own. */
  blind(which: number): void {
    const { choices, schedule } = this.#options.simulation;
    const life = this.#lives[which];
    if (this.#healed || !life?.isAlive) return;
    this.#tell(life, 'a replica could not list leases');
    life.isBlind = true;
    schedule.after(20_000 + choices.pick(25_000), () => {
      life.isBlind = false;
    });
  }

  /** One cannot renew its lease for a while, though it can look at those of all. */
  mute(which: number): void {
    const { choices, schedule } = this.#options.simulation;
    const life = this.#lives[which];
    if (this.#healed || !life?.isAlive) return;
    this.#tell(life, 'a replica could not renew its lease');
    life.isMute = true;
    schedule.after(20_000 + choices.pick(10_000), () => {
      life.isMute = false;
    });
  }

  /** Stops one for so long. */
  freeze(which: number, ms: number): void {
    const life = this.#lives[which];
    if (life?.isAlive) this.#pause(life, ms);
  }

  /** A process that is stopped between a request and its answer takes the answer for news when it goes on. */
  #sends(life: Life, path: string): void {
    const { choices, schedule } = this.#options.simulation;
    if (life.ambush !== 'lease' || this.#healed || !path.includes('/leases')) return;
    if (choices.oneIn(AMBUSH_ONE_IN)) schedule.after(choices.pick(80), () => this.#pause(life));
  }

  #pause(life: Life, ms?: number): void {
    if (this.#healed || life.simulated.process.state !== 'running') return;
    const { choices, schedule } = this.#options.simulation;
    this.#tell(life, 'a replica was paused');
    life.disturb();
    for (const working of life.working) working.disturbed = true;
    life.simulated.process.pause();
    schedule.after(ms ?? choices.pick(40_000), () => this.#resume(life));
  }

  #resume(life: Life): void {
    if (life.simulated.process.state !== 'paused') return;
    life.note('goes on');
    life.disturb();
    life.resumedAt = this.#options.simulation.schedule.now;
    life.simulated.process.resume();
  }

  #mend(which: number): void {
    this.#options.simulation.network.mend(`r${which}`, API_SERVER);
    this.#lives[which]?.disturb();
  }

  #tell(life: Life, what: string): void {
    life.note(what);
    this.#options.simulation.counts.add(what);
  }
}
