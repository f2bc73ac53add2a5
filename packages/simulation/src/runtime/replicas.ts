import type { Manager } from '@vmwright/runtime';
import { API_SERVER } from '../apiserver/simulated.ts';
import type { Simulation } from '../world/simulation.ts';
import { Replica } from './replica.ts';
import type { Wire } from './wire.ts';

export interface ReplicasOptions {
  readonly simulation: Simulation;
  readonly wire: Wire<Replica>;
  /** Creates the program of one process. */
  readonly program: (replica: Replica) => Manager;
  readonly count: number;
  /** Called with the reason when the program of a process returns or fails. */
  readonly onEnd?: (replica: Replica, why: string) => void;
}

/** Time until a process is restarted after its program has returned or failed. */
const RESTART_MS = 1_000;
/** If `faultAt` of a process is `lease`, the process is paused at one in this many of its lease requests. */
const PAUSE_ONE_IN = 8;
/** Exit reason of a process that was stopped on request. */
export const STOPPED = 'stopped on request';

/** The replicas of a program, and the faults that are injected into them. */
export class Replicas {
  readonly count: number;
  readonly #options: ReplicasOptions;
  readonly #processes: (Replica | undefined)[] = [];
  readonly #starts: number[] = [];
  #healed = false;

  constructor(options: ReplicasOptions) {
    this.#options = options;
    this.count = options.count;
    options.wire.onSend = ({ sender, path }) => this.#sends(sender, path);
    for (let which = 0; which < options.count; which++) this.#start(which);
  }

  /** Processes that have neither ended nor crashed. */
  get alive(): readonly Replica[] {
    return this.#processes.flatMap((replica) => (replica?.isAlive ? [replica] : []));
  }

  /** Injects a random fault into a replica. */
  injectFault(which: number): void {
    const { choices, schedule } = this.#options.simulation;
    const replica = this.#processes[which];
    if (this.#healed || !replica?.isAlive) return;
    switch (choices.pick(5)) {
      case 0:
        this.#note(replica, 'a replica crashed');
        this.#end(replica);
        schedule.after(choices.delay(5_000, 50_000), () => this.#start(which));
        break;
      case 1:
        this.#note(replica, 'a replica was stopped');
        replica.stop.abort(new Error('stop requested'));
        break;
      case 2:
        this.#pause(replica);
        break;
      case 3:
        this.#partition(which);
        break;
      case 4:
        this.#note(replica, "a replica's clock jumped");
        replica.disturb();
        replica.simulated.process.skewMs += choices.pick(600_000) - 300_000;
        break;
    }
  }

  /** Ends all faults and restarts missing replicas. */
  heal(): void {
    this.#healed = true;
    for (let which = 0; which < this.count; which++) {
      this.#reconnect(which);
      const replica = this.#processes[which];
      if (replica === undefined || !replica.isAlive) this.#start(which);
      else {
        replica.dropsLists = false;
        replica.dropsRenewals = false;
        this.#resume(replica);
      }
    }
  }

  /** Stops a replica gracefully and restarts it. Unlike the injected faults, this also works after `heal`. */
  stop(replica: Replica): void {
    this.#note(replica, 'a replica was stopped without faults');
    replica.stop.abort(new Error('stop requested'));
  }

  #start(which: number): void {
    if (this.#processes[which]?.isAlive) return;
    const { simulation, wire, program, onEnd } = this.#options;
    const { choices, schedule } = simulation;
    const start = (this.#starts[which] ?? 0) + 1;
    this.#starts[which] = start;
    const simulated = simulation.start(`r${which}`);
    if (choices.oneIn(3)) simulated.process.skewMs = choices.pick(7_200_000) - 3_600_000;
    const replica = new Replica(`r${which}.${start}`, simulated, simulation, wire);
    this.#processes[which] = replica;
    replica.faultAt = choices.one([undefined, 'token', 'lease', 'peers']);
    replica.onSlowToken = (ms) => {
      if (replica.faultAt === 'token' && replica.working.size > 0) this.#pause(replica);
      if (replica.faultAt === 'peers' && choices.oneIn(4))
        schedule.after(ms + 60, () => this.#partitionOthers(replica));
    };
    replica.note('starts');
    const over = (why: string) => {
      if (!replica.isAlive) return;
      // A process that was stopped on request exits only when its running work has ended.
      if (why === STOPPED && replica.working.size > 0) {
        schedule.after(RESTART_MS, () => over(why));
        return;
      }
      replica.note(`exits: ${why}`);
      onEnd?.(replica, why);
      this.#end(replica);
      schedule.after(RESTART_MS, () => this.#start(which));
    };
    program(replica)
      .run(replica.stop.signal)
      .then(
        () => over(STOPPED),
        (error) => over(String(error)),
      );
  }

  #end(replica: Replica): void {
    replica.ended = true;
    replica.simulated.process.crash();
  }

  #partition(which: number): void {
    const { choices, schedule, network } = this.#options.simulation;
    const replica = this.#processes[which];
    if (this.#healed || !replica?.isAlive) return;
    this.#note(replica, 'a replica was partitioned');
    replica.disturb();
    network.partition(`r${which}`, API_SERVER);
    schedule.after(choices.pick(45_000), () => this.#reconnect(which));
  }

  #partitionOthers(replica: Replica): void {
    for (const [which, other] of this.#processes.entries()) if (other !== replica) this.#partition(which);
  }

  /** For some time, keeps a replica from listing leases. The replica can still renew its own lease. */
  dropLists(which: number): void {
    const { choices, schedule } = this.#options.simulation;
    const replica = this.#processes[which];
    if (this.#healed || !replica?.isAlive) return;
    this.#note(replica, 'a replica could not list leases');
    replica.dropsLists = true;
    schedule.after(20_000 + choices.pick(25_000), () => {
      replica.dropsLists = false;
    });
  }

  /** For some time, keeps a replica from renewing its lease. The replica can still list all leases. */
  dropRenewals(which: number): void {
    const { choices, schedule } = this.#options.simulation;
    const replica = this.#processes[which];
    if (this.#healed || !replica?.isAlive) return;
    this.#note(replica, 'a replica could not renew its lease');
    replica.dropsRenewals = true;
    schedule.after(20_000 + choices.pick(10_000), () => {
      replica.dropsRenewals = false;
    });
  }

  /** Pauses a replica for the given number of milliseconds. */
  pauseFor(which: number, ms: number): void {
    const replica = this.#processes[which];
    if (replica?.isAlive) this.#pause(replica, ms);
  }

  /**
   * Sometimes pauses a process shortly after it has sent a lease request, usually before the response arrives. When the
   * process resumes, it receives a response that is outdated.
   */
  #sends(replica: Replica, path: string): void {
    const { choices, schedule } = this.#options.simulation;
    if (replica.faultAt !== 'lease' || this.#healed || !path.includes('/leases')) return;
    if (choices.oneIn(PAUSE_ONE_IN)) schedule.after(choices.pick(80), () => this.#pause(replica));
  }

  #pause(replica: Replica, ms?: number): void {
    if (this.#healed || replica.simulated.process.state !== 'running') return;
    const { choices, schedule } = this.#options.simulation;
    this.#note(replica, 'a replica was paused');
    replica.disturb();
    for (const working of replica.working) working.disturbed = true;
    replica.simulated.process.pause();
    schedule.after(ms ?? choices.pick(40_000), () => this.#resume(replica));
  }

  #resume(replica: Replica): void {
    if (replica.simulated.process.state !== 'paused') return;
    replica.note('resumes');
    replica.disturb();
    replica.resumedAt = this.#options.simulation.schedule.now;
    replica.simulated.process.resume();
  }

  #reconnect(which: number): void {
    this.#options.simulation.network.heal(`r${which}`, API_SERVER);
    this.#processes[which]?.disturb();
  }

  #note(replica: Replica, what: string): void {
    replica.note(what);
    this.#options.simulation.counts.add(what);
  }
}
