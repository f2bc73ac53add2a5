import { isDeepStrictEqual } from 'node:util';
import { AlreadyExistsError, ConflictError, NotFoundError } from '../src/client/errors.ts';
import { LeaderElection } from '../src/election/leader-election.ts';
import type { LeaseClient } from '../src/election/lease-lock.ts';
import type { LeaderElectionOptions } from '../src/election/options.ts';
import type { Lease, LeaseSpec } from '../src/kind/builtin/lease.ts';
import { Host, type HostOptions, type Network } from './host.ts';

/*
 * Model of several machines and one API server with a Lease, in virtual time. The machines have inaccurate clocks and
 * can be suspended, put to sleep, disconnected and killed.
 */

/** True time of the simulation, with its scheduled events. */
export class Timeline {
  #now = 0;
  #order = 0;
  readonly #events: { readonly at: number; readonly order: number; readonly act: () => void }[] = [];

  get now(): number {
    return this.#now;
  }

  at(time: number, act: () => void): void {
    this.#events.push({ at: Math.max(time, this.#now), order: this.#order++, act });
  }

  /** Runs all events up to a time. @param after called after each event and its immediate consequences */
  async run(until: number, after: () => void): Promise<void> {
    await settled(); // runs the callbacks of promises that were resolved since the last call
    for (;;) {
      let next = -1;
      for (const [index, event] of this.#events.entries()) {
        const best = this.#events[next];
        if (event.at > until) continue;
        if (best === undefined || event.at < best.at || (event.at === best.at && event.order < best.order))
          next = index;
      }
      const [event] = next === -1 ? [] : this.#events.splice(next, 1);
      if (event === undefined) break;
      this.#now = event.at;
      event.act();
      await settled();
      after();
    }
    this.#now = until;
    after();
  }
}

/** Waits until no promise callback is pending. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** Returns a number in [0, 1) (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}

/** Simulated API server with one Lease and optimistic locking. */
export class LeaseServer {
  lease: Lease | undefined;
  #version = 0;

  get(): Lease {
    if (this.lease === undefined) throw new NotFoundError('no such lease', { status: 404 });
    return this.lease;
  }

  create(spec: LeaseSpec | undefined): Lease {
    if (this.lease !== undefined) throw new AlreadyExistsError('already exists', { status: 409 });
    return this.#store(spec ?? {});
  }

  patch(spec: LeaseSpec, resourceVersion: string | undefined): Lease {
    const { metadata, spec: before } = this.get();
    if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
      throw new ConflictError('resourceVersion differs', { status: 409 });
    return this.#store({ ...before, ...spec });
  }

  #store({ holderIdentity, ...spec }: LeaseSpec): Lease {
    const stored = { ...spec, ...(holderIdentity && { holderIdentity }) };
    // A write without a change keeps the resourceVersion.
    if (this.lease !== undefined && isDeepStrictEqual(stored, this.lease.spec)) return this.lease;
    this.#version += 1;
    const resourceVersion = String(this.#version);
    this.lease = { metadata: { name: 'lease', namespace: 'test', resourceVersion }, spec: stored };
    return this.lease;
  }
}

export interface MachineOptions extends HostOptions {
  readonly name: string;
  readonly server: LeaseServer;
  /** Changes the options of the election, to create a mutant. */
  readonly plant?: (options: LeaderElectionOptions) => LeaderElectionOptions;
}

const TIMES = { leaseMs: 15_000, renewMs: 10_000, retryMs: 2_000 };

/** Machine with one process that takes part in the election. */
export class Machine {
  readonly #options: MachineOptions;
  readonly #host: Host;
  #starts = 0;
  #ids = 0;
  #stop: AbortController | undefined;
  #leaderSignal: AbortSignal | undefined;
  readonly #counts = { terms: 0, lostTerms: 0 };
  election: LeaderElection | undefined;

  constructor(options: MachineOptions) {
    this.#options = options;
    this.#host = new Host(options);
  }

  /** Numbers of events, to show that the test covers them. */
  get counts() {
    const { lostRequests, lostResponses } = this.#host.counts;
    return { ...this.#counts, lostRequests, lostAnswers: lostResponses };
  }

  /** Whether the process may act at this instant, even if it is suspended. */
  get leads(): boolean {
    return this.election?.isLeading() ?? false;
  }

  /** Whether a mutant would act as leader now: one that checks only the leader's abort signal, but not the clock. */
  get leadsBySignal(): boolean {
    return this.#leaderSignal !== undefined && !this.#leaderSignal.aborted;
  }

  get runs(): boolean {
    return this.election !== undefined;
  }

  start(): void {
    const { name, server, random, plant = (options) => options } = this.#options;
    this.#starts += 1;
    const options = {
      world: {
        ...this.#host.clock(),
        random: () => random.next(),
        uuid: () => `${this.#starts}-${this.#ids++}`,
      },
      client: clientOf(server, this.#host.sender()),
      lease: { namespace: 'test', name: 'lease' },
      identity: name,
      ...TIMES,
    };
    const election = new LeaderElection(plant(options));
    const stop = new AbortController();
    this.election = election;
    this.#stop = stop;
    const ended = election.run(stop.signal, (leading) => this.#act(leading));
    void ended.then(() => {
      if (this.election === election) this.election = undefined;
    });
  }

  /** Requests a graceful stop. */
  stop(): void {
    this.#stop?.abort(new Error('stop requested'));
  }

  /** Ends the process without notice. */
  kill(): void {
    this.#host.crash();
    this.election = undefined;
    this.#leaderSignal = undefined;
  }

  /** Suspends the process; the clocks continue (SIGSTOP, a long garbage collection). */
  pause(ms: number): void {
    this.#host.pause(ms);
  }

  /** Suspends the whole machine; its monotonic clock stands still. */
  sleep(ms: number): void {
    this.#host.sleep(ms);
  }

  jumpWallClock(ms: number): void {
    this.#host.jumpWallClock(ms);
  }

  set network(network: Network) {
    this.#host.network = network;
  }

  async #act(leading: AbortSignal): Promise<void> {
    this.#counts.terms += 1;
    this.#leaderSignal = leading;
    await new Promise<void>((resolve) => {
      leading.addEventListener('abort', () => resolve(), { once: true });
    });
    if (!this.#stop?.signal.aborted) this.#counts.lostTerms += 1;
  }
}

function clientOf(server: LeaseServer, send: ReturnType<Host['sender']>): LeaseClient {
  return {
    get: (_kind, _ref, { signal }) => send(signal, () => server.get()),
    create: (_kind, { spec }, { signal }) => send(signal, () => server.create(spec)),
    mergePatch: (_kind, _ref, patch, { signal }) => {
      const { spec = {}, metadata }: Partial<Lease> = patch;
      return send(signal, () => server.patch(spec, metadata?.resourceVersion));
    },
  };
}
