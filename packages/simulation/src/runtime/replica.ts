import type { Access, Credentials, Logger, World } from '@vmwright/runtime';
import { API_SERVER } from '../apiserver/simulated.ts';
import type { Simulation } from '../world/simulation.ts';
import type { SimulatedWorld } from '../world/world.ts';
import type { Wire } from './wire.ts';

/** A reconcile or job that is running. */
export interface Working {
  readonly key: string;
  readonly namespace: string;
  /**
   * Whether the process was paused during this work or shortly before. After a pause, only the fence decides whether
   * the work may still act.
   */
  disturbed: boolean;
}

/** Delay of bearer tokens: one request in `oneIn` waits up to `ms` milliseconds for its token. */
const SLOW_TOKEN = { oneIn: 12, ms: 9_000 };

/** One process of a replica, from its start until it ends or crashes. A restart creates a new `Replica`. */
export class Replica {
  /** Replica and incarnation: `r0.2` is the second process of replica r0. */
  readonly name: string;
  readonly simulated: SimulatedWorld;
  /** Simulated clocks, random source and network that the program uses. */
  readonly world: World;
  readonly access: Access;
  readonly log: Logger;
  readonly stop = new AbortController();
  readonly working = new Set<Working>();
  /** Newest resourceVersion that a write of this process has returned, by UID of the object. */
  readonly wrote = new Map<string, number>();
  /** UIDs of objects that this process has successfully deleted. */
  readonly deleted = new Set<string>();
  readonly #simulation: Simulation;
  /**
   * Virtual time of the last disturbance of this process: its start, a fault, or a gain or loss of leadership.
   */
  disturbedAt: number;
  /**
   * Critical moment at which faults are injected:
   * - `token`: pauses this process during a reconcile while a request waits for its bearer token.
   * - `lease`: pauses this process between a lease request and its response.
   * - `peers`: partitions all other replicas from the API server when a request that has waited for its token arrives.
   */
  faultAt: 'token' | 'lease' | 'peers' | undefined;
  onSlowToken: (ms: number) => void = () => undefined;
  /** Whether the network drops this process's lists of the sharding leases. All its other requests arrive. */
  dropsLists = false;
  /** Whether the network drops this process's writes to leases. Its lists of leases arrive. */
  dropsRenewals = false;
  resumedAt = Number.NEGATIVE_INFINITY;
  leading = false;
  /** Number of times that this process became leader. */
  terms = 0;
  ended = false;

  constructor(name: string, simulated: SimulatedWorld, simulation: Simulation, wire: Wire<Replica>) {
    this.name = name;
    this.simulated = simulated;
    this.#simulation = simulation;
    this.world = wire.worldOf(simulated, this);
    this.disturbedAt = simulation.schedule.now;
    const server = { origin: API_SERVER };
    this.access = { server, credentials: this.#token(), namespace: 'default' };
    this.log = this.#logger();
  }

  get isAlive(): boolean {
    return !this.ended && !this.simulated.process.gone;
  }

  /** Milliseconds since the process's last pause ended; infinite if it was never paused. */
  get runningMs(): number {
    return this.#simulation.schedule.now - this.resumedAt;
  }

  disturb(): void {
    this.disturbedAt = this.#simulation.schedule.now;
  }

  note(what: string): void {
    this.#simulation.note(this.name, what);
  }

  #token(): Credentials {
    const { choices, network } = this.#simulation;
    return {
      authorization: () => {
        if (!network.faulty || !choices.oneIn(SLOW_TOKEN.oneIn)) return undefined;
        const ms = choices.pick(SLOW_TOKEN.ms);
        this.onSlowToken(ms);
        return new Promise((resolve) => {
          this.simulated.after(ms, () => resolve(undefined));
        });
      },
      renew: async () => false,
    };
  }

  #logger(): Logger {
    const log = (fields: object, message: string) => {
      this.note(`${message} ${JSON.stringify(fields)}`);
      if ('leading' in fields) {
        this.leading = fields.leading === true;
        this.disturb();
        if (this.leading && this.terms++ > 0) this.#simulation.counts.add('a replica became leader again');
      }
    };
    const logger: Logger = { debug: log, info: log, warn: log, error: log, audit: log, child: () => logger };
    return logger;
  }
}
