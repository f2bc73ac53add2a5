import type { Access, Credentials, Logger, World } from '@vmwright/runtime';
import { API_SERVER } from '../apiserver/simulated.ts';
import type { Simulation } from '../world/simulation.ts';
import type { SimulatedWorld } from '../world/world.ts';
import type { Wire } from './wire.ts';

/** A piece of work under way. */
export interface Working {
  readonly key: string;
  readonly namespace: string;
  /** The process was stopped meanwhile: whether it may still act is told by the fence alone. */
  disturbed: boolean;
}

/** A token that takes its time to come: one in so many, by up to so many milliseconds. */
const SLOW_TOKEN = { oneIn: 12, ms: 9_000 };

/** One run of the program, from its start until it ends or crashes. */
export class Life {
  /** `r0.2`: the second life of replica r0. */
  readonly name: string;
  readonly simulated: SimulatedWorld;
  /** As the program sees it. */
  readonly world: World;
  readonly access: Access;
  readonly log: Logger;
  readonly stop = new AbortController();
  readonly working = new Set<Working>();
  /** The newest version of each object that an answer has told this process, by uid. */
  readonly wrote = new Map<string, number>();
  /** Of objects that this process has deleted, and knows it. */
  readonly deleted = new Set<string>();
  readonly #simulation: Simulation;
  /** When something last kept it from acting as it should, or it last began or ceased to lead. */
  disturbedAt: number;
  /**
   * Where trouble comes: stopped while a write waits for its token, or while the answer about a lease is on its way; or all
   * others are cut off just when a request that has waited for its token arrives.
   */
  ambush: 'token' | 'lease' | 'peers' | undefined;
  onSlowToken: (ms: number) => void = () => undefined;
  /** All it sends arrives, but for its looks at the leases of a sharding. */
  isBlind = false;
  /** The other way round: its looks arrive, and what it writes into leases does not. */
  isMute = false;
  resumedAt = Number.NEGATIVE_INFINITY;
  leading = false;
  /** How often it has come to lead. */
  terms = 0;
  ended = false;

  constructor(name: string, simulated: SimulatedWorld, simulation: Simulation, wire: Wire<Life>) {
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

  /** Since it last went on after a stop. */
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
    const tell = (fields: object, message: string) => {
      this.note(`${message} ${JSON.stringify(fields)}`);
      if ('leading' in fields) {
        this.leading = fields.leading === true;
        this.disturb();
        if (this.leading && this.terms++ > 0) this.#simulation.counts.add('a replica became leader again');
      }
    };
    const logger: Logger = { debug: tell, info: tell, warn: tell, error: tell, child: () => logger };
    return logger;
  }
}
