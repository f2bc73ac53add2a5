import { isDeepStrictEqual } from 'node:util';
import type { Clock, Timer } from '@vmwright/core';
import { AlreadyExistsError, ConflictError, ConnectionError, NotFoundError } from '../src/client/errors.ts';
import { LeaderElection } from '../src/election/leader-election.ts';
import type { LeaseClient } from '../src/election/lease-lock.ts';
import type { LeaderElectionOptions } from '../src/election/options.ts';
import type { Lease, LeaseSpec } from '../src/kind/builtin/lease.ts';

/*
 * Several machines, a network between them and one server with a Lease, all in one virtual time that the test owns
 * ("true time"). Machines have clocks that are wrong, and can be stopped, put to sleep, cut off and killed.
 */

/** True time, and what is to happen in it. */
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

  /** @param after each event, once all that it has caused at this instant is done */
  async run(until: number, after: () => void): Promise<void> {
    await settled(); // what was asked for since the last time
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

/** All promises that can go on have done so. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** From 0 up to, but not including, 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}

/** The Lease as the API server keeps it: whoever writes says which version he has seen. */
export class LeaseServer {
  lease: Lease | undefined;
  #version = 0;

  get(): Lease {
    if (this.lease === undefined) throw new NotFoundError('no such lease', { status: 404 });
    return this.lease;
  }

  create(spec: LeaseSpec | undefined): Lease {
    if (this.lease !== undefined) throw new AlreadyExistsError('there is one', { status: 409 });
    return this.#store(spec ?? {});
  }

  patch(spec: LeaseSpec, resourceVersion: string | undefined): Lease {
    const { metadata, spec: before } = this.get();
    if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
      throw new ConflictError('it has changed', { status: 409 });
    return this.#store({ ...before, ...spec });
  }

  #store({ holderIdentity, ...spec }: LeaseSpec): Lease {
    const stored = { ...spec, ...(holderIdentity && { holderIdentity }) };
    // A write that changes nothing is none.
    if (this.lease !== undefined && isDeepStrictEqual(stored, this.lease.spec)) return this.lease;
    this.#version += 1;
    const resourceVersion = String(this.#version);
    this.lease = { metadata: { name: 'lease', namespace: 'test', resourceVersion }, spec: stored };
    return this.lease;
  }
}

export interface MachineOptions {
  readonly name: string;
  readonly timeline: Timeline;
  readonly server: LeaseServer;
  readonly random: SeededRandom;
  /** How fast its clocks run. */
  readonly speed: number;
  readonly wallOffsetMs: number;
  /** Replaces options of the election, to plant a bug. */
  readonly plant?: (options: LeaderElectionOptions) => LeaderElectionOptions;
}

/** How requests fare on the way there, or answers on the way back. */
export type Network = 'good' | 'slow' | 'lossy' | 'down';

const TIMES = { leaseMs: 15_000, renewMs: 10_000, retryMs: 2_000 };

/** A machine with one process on it that stands for election, and acts while it leads. */
export class Machine {
  readonly #options: MachineOptions;
  #network: Network = 'good';
  #resumesAt = 0;
  /** While it sleeps, its monotonic clock stands still. */
  #sleptMs = 0;
  #sleep: { readonly from: number; readonly until: number } | undefined;
  #wallJumpMs = 0;
  #life = 0;
  #ids = 0;
  #stop: AbortController | undefined;
  #leaderSignal: AbortSignal | undefined;
  election: LeaderElection | undefined;
  /** How often something happened, to show that the test is about something. */
  readonly counts = { terms: 0, lostRequests: 0, lostAnswers: 0, lostTerms: 0 };

  constructor(options: MachineOptions) {
    this.#options = options;
  }

  /** What an observer that could look into the machine at this instant would see, be it stopped or not. */
  get leads(): boolean {
    return this.election?.isLeading() ?? false;
  }

  /** The same, by one who trusts the signal alone. */
  get leadsBySignal(): boolean {
    return this.#leaderSignal !== undefined && !this.#leaderSignal.aborted;
  }

  get runs(): boolean {
    return this.election !== undefined;
  }

  start(): void {
    const { name, random, plant = (options) => options } = this.#options;
    this.#life += 1;
    const life = this.#life;
    const options = {
      world: {
        ...this.#clock(life),
        random: () => random.next(),
        uuid: () => `${this.#life}-${this.#ids++}`,
      },
      client: this.#client(life),
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

  /** Asks the process to stop; it does so in its own time. */
  stop(): void {
    this.#stop?.abort(new Error('asked to stop'));
  }

  /** The process is gone without a word. */
  kill(): void {
    this.#life += 1;
    this.election = undefined;
    this.#leaderSignal = undefined;
  }

  /** The process does nothing for a while; the clocks go on (SIGSTOP, a long garbage collection). */
  pause(ms: number): void {
    this.#resumesAt = Math.max(this.#resumesAt, this.#options.timeline.now + ms);
  }

  /** The whole machine does nothing for a while, and its monotonic clock stands still. */
  sleep(ms: number): void {
    const from = this.#options.timeline.now;
    if (this.#sleep !== undefined && from < this.#sleep.until) return;
    this.#sleptMs = this.#slept();
    this.#sleep = { from, until: from + ms };
    this.pause(ms);
  }

  jumpWallClock(ms: number): void {
    this.#wallJumpMs += ms;
  }

  set network(network: Network) {
    this.#network = network;
  }

  async #act(leading: AbortSignal): Promise<void> {
    this.counts.terms += 1;
    this.#leaderSignal = leading;
    await new Promise<void>((resolve) => {
      leading.addEventListener('abort', () => resolve(), { once: true });
    });
    if (!this.#stop?.signal.aborted) this.counts.lostTerms += 1;
  }

  #slept(): number {
    if (this.#sleep === undefined) return this.#sleptMs;
    const { from, until } = this.#sleep;
    return this.#sleptMs + Math.min(this.#options.timeline.now, until) - from;
  }

  #clock(life: number): Clock {
    const { timeline, speed, wallOffsetMs } = this.#options;
    const monotonic = () => (timeline.now - this.#slept()) * speed;
    return {
      monotonic,
      now: () => 1_700_000_000_000 + wallOffsetMs + this.#wallJumpMs + timeline.now * speed,
      after: (ms, callback): Timer => {
        const due = monotonic() + Math.max(ms, 0);
        let cancelled = false;
        const ring = () => {
          if (cancelled) return;
          // Sleep has put it off.
          if (monotonic() < due - 1e-6) timeline.at(timeline.now + (due - monotonic()) / speed, whenAwake);
          else callback();
        };
        const whenAwake = () => this.#whenAwake(life, ring);
        timeline.at(timeline.now + Math.max(ms, 0) / speed, whenAwake);
        return {
          cancel: () => {
            cancelled = true;
          },
        };
      },
    };
  }

  /** Now, or when the machine goes on; in what order is chance, as with timers and sockets after a stop. */
  #whenAwake(life: number, act: () => void): void {
    if (life !== this.#life) return;
    const { timeline, random } = this.#options;
    if (timeline.now < this.#resumesAt)
      timeline.at(this.#resumesAt + random.next() / 1_000, () => this.#whenAwake(life, act));
    else act();
  }

  #client(life: number): LeaseClient {
    const { server } = this.#options;
    return {
      get: (_kind, _ref, { signal }) => this.#request(life, signal, () => server.get()),
      create: (_kind, { spec }, { signal }) => this.#request(life, signal, () => server.create(spec)),
      mergePatch: (_kind, _ref, patch, { signal }) => {
        const { spec = {}, metadata }: Partial<Lease> = patch;
        return this.#request(life, signal, () => server.patch(spec, metadata?.resourceVersion));
      },
    };
  }

  /** Giving up on it calls nothing back: what is on its way arrives. */
  #request(life: number, signal: AbortSignal | undefined, serve: () => Lease): Promise<Lease> {
    const { timeline } = this.#options;
    return new Promise((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      const back = (answer: () => void) => this.#whenAwake(life, answer);
      const there = this.#delay();
      if (there === undefined) {
        this.counts.lostRequests += 1;
        timeline.at(timeline.now + 50, () => back(() => reject(new ConnectionError('reset'))));
        return;
      }
      timeline.at(timeline.now + there, () => {
        let answer: () => void;
        try {
          const lease = serve();
          answer = () => resolve(lease);
        } catch (error) {
          answer = () => reject(error);
        }
        const delay = this.#delay();
        if (delay !== undefined) timeline.at(timeline.now + delay, () => back(answer));
        else this.counts.lostAnswers += 1; // silence: the client has to give up by itself
      });
    });
  }

  /** Undefined: never arrives. */
  #delay(): number | undefined {
    const { random } = this.#options;
    const chance = random.next();
    switch (this.#network) {
      case 'good':
        return 1 + 20 * chance;
      case 'slow': // heavy-tailed: sometimes longer than a lease
        return 50 / (1 - chance) ** 1.5;
      case 'lossy':
        return chance < 0.4 ? undefined : 1 + 200 * chance;
      case 'down':
        return undefined;
    }
  }
}
