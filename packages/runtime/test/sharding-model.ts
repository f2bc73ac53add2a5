import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '@vmwright/core';
import { AlreadyExistsError, ConflictError, ConnectionError, NotFoundError } from '../src/client/errors.ts';
import type { Lease, LeaseSpec } from '../src/kind/builtin/lease.ts';
import type { ObjectMeta } from '../src/kind/object.ts';
import { shardOf } from '../src/sharding/assignment.ts';
import type { ShardingClient } from '../src/sharding/lease-store.ts';
import type { ShardingOptions } from '../src/sharding/options.ts';
import { SHARD_MAP_ANNOTATION } from '../src/sharding/shard-map.ts';
import { Sharding } from '../src/sharding/sharding.ts';
import { Host, type HostOptions } from './host.ts';

/*
 * Model of one API server and several replicas that share a few shards. The replicas run on machines with inaccurate
 * clocks and unreliable networks.
 */

export const SHARDS = 6;
/** One namespace per shard. */
export const NAMESPACES: readonly string[] = Array.from({ length: SHARDS }, (_, shard) => {
  let at = 0;
  while (shardOf(`n${at}`, SHARDS) !== shard) at += 1;
  return `n${at}`;
});
const KEYS = NAMESPACES.map((namespace) => `${namespace}/object`);

const SHARD_MAP_NAME = 'x-shards';
const TIMES = { leaseMs: 15_000, renewMs: 10_000, retryMs: 2_000 };

type MetadataPatch = Partial<Pick<ObjectMeta, 'uid' | 'resourceVersion' | 'labels'>> & {
  readonly annotations?: Readonly<Record<string, string | null>>;
};

/** Merge patch of a Lease. */
export interface LeasePatch {
  readonly metadata?: MetadataPatch;
  readonly spec?: LeaseSpec;
}

/** Leases stored in the simulated API server. */
export class LeaseTable {
  readonly leases = new Map<string, Lease>();
  /** Writes other than renewals of a member's Lease. */
  otherWrites = 0;
  writes = 0;
  #version = 0;

  get(name: string): Lease {
    const lease = this.leases.get(name);
    if (lease === undefined) throw new NotFoundError('no such lease', { status: 404 });
    return lease;
  }

  get shardMap(): Lease | undefined {
    return this.leases.get(SHARD_MAP_NAME);
  }

  create(name: string, { labels }: MetadataPatch, spec: LeaseSpec = {}): Lease {
    if (this.leases.has(name)) throw new AlreadyExistsError('already exists', { status: 409 });
    const uid = String(this.#version + 1);
    return this.#store({ name, namespace: 'test', uid, ...(labels && { labels }) }, spec, true);
  }

  patch(name: string, { uid, resourceVersion, annotations }: MetadataPatch, changes: LeaseSpec = {}): Lease {
    const before = this.get(name);
    this.#checkPreconditions(before, uid, resourceVersion);
    const merged = { ...before.metadata.annotations };
    for (const [key, value] of Object.entries(annotations ?? {})) {
      if (value === null) delete merged[key];
      else merged[key] = value;
    }
    const { holderIdentity, ...rest } = { ...before.spec, ...changes };
    const spec = { ...rest, ...(holderIdentity && { holderIdentity }) };
    if (isDeepStrictEqual([spec, merged], [before.spec, before.metadata.annotations ?? {}])) return before;
    const renews = name !== SHARD_MAP_NAME && before.spec?.holderIdentity === spec.holderIdentity;
    return this.#store({ ...before.metadata, annotations: merged }, spec, !renews);
  }

  delete(name: string, uid?: string, resourceVersion?: string): void {
    this.#checkPreconditions(this.get(name), uid, resourceVersion);
    this.leases.delete(name);
    this.otherWrites += 1;
  }

  list(): Lease[] {
    return [...this.leases.values()];
  }

  #checkPreconditions(
    { metadata }: Lease,
    uid: string | undefined,
    resourceVersion: string | undefined,
  ): void {
    if ((uid ?? metadata.uid) !== metadata.uid) throw new ConflictError('uid differs', { status: 409 });
    if ((resourceVersion ?? metadata.resourceVersion) !== metadata.resourceVersion)
      throw new ConflictError('resourceVersion differs', { status: 409 });
  }

  #store(metadata: ObjectMeta, spec: LeaseSpec, other: boolean): Lease {
    this.#version += 1;
    this.writes += 1;
    if (other) this.otherWrites += 1;
    const lease = { metadata: { ...metadata, resourceVersion: String(this.#version) }, spec };
    this.leases.set(metadata.name, lease);
    return lease;
  }
}

export interface ReplicaOptions extends HostOptions {
  readonly name: string;
  readonly server: LeaseTable;
  /** Configured number of shards. */
  readonly shards: number;
  /** Changes the options of the sharding, to create a mutant. */
  readonly mutate?: (options: ShardingOptions) => ShardingOptions;
  /** Creates a mutant that immediately reports aborted work as ended, although the work continues. */
  readonly endsEarly?: boolean;
}

/** Replica that works in random namespaces. Each replica runs on its own machine. */
export class Replica {
  readonly host: Host;
  readonly #options: ReplicaOptions;
  #starts = 0;
  #ids = 0;
  #stop: AbortController | undefined;
  #acting: AbortSignal | undefined;
  #gained = new Set<number>();
  /** Number of reconciles in progress by index in `NAMESPACES`. */
  readonly #inProgress = new Map<number, number>();
  sharding: Sharding | undefined;
  /** Whether list requests fail while all others succeed. */
  failsReads = false;
  /** Numbers of events, to show that the test covers them. */
  readonly counts = { memberships: 0, lostMemberships: 0, gained: 0, work: 0, aborted: 0 };

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.host = new Host(options);
  }

  get runs(): boolean {
    return this.sharding !== undefined;
  }

  /** Returns whether the replica may act at this instant, even if it is suspended. @param at index in `NAMESPACES` */
  acts(at: number): boolean {
    const { sharding } = this;
    if (sharding === undefined) return false;
    return sharding.holds(KEYS[at] ?? '') || (this.#inProgress.has(at) && sharding.isMember());
  }

  /** Returns whether a mutant that checks only its abort signal acts at this time. @param at index in `NAMESPACES` */
  actsBySignal(at: number): boolean {
    // The mutant releases shards as the replica does: if a member may not act on a shard, it has released the shard.
    // After the membership is lost, the mutant still acts until its signal aborts.
    if (this.sharding?.isMember() && !this.acts(at)) this.#gained.delete(at);
    return this.#gained.has(at) && this.#acting !== undefined && !this.#acting.aborted;
  }

  start(): void {
    const { name, random, server, shards, mutate = (options) => options } = this.#options;
    this.#starts += 1;
    const clock = this.host.clock();
    const options: ShardingOptions = {
      world: { ...clock, random: () => random.next(), uuid: () => `${name}.${this.#starts}.${this.#ids++}` },
      client: clientOf(server, this.host.sender(), () => this.failsReads),
      namespace: 'test',
      name: 'x',
      identity: name,
      shards,
      ...TIMES,
    };
    const sharding = new Sharding(mutate(options));
    sharding.onGained((isGained) => {
      for (const [at, key] of KEYS.entries()) {
        if (!isGained(key)) continue;
        this.counts.gained += 1;
        this.#gained.add(at);
      }
    });
    const stop = new AbortController();
    this.sharding = sharding;
    this.#stop = stop;
    const ended = sharding.run(stop.signal, (acting) => this.#act(sharding, clock, acting));
    void ended.then(() => {
      if (this.sharding === sharding) this.sharding = undefined;
    });
  }

  stop(): void {
    this.#stop?.abort(new Error('stop requested'));
  }

  kill(): void {
    this.host.crash();
    this.sharding = undefined;
    this.#acting = undefined;
    this.#inProgress.clear();
  }

  /** Works until the signal aborts. Work in progress then ends within three seconds. */
  async #act(sharding: Sharding, clock: Clock, acting: AbortSignal): Promise<void> {
    const { random, endsEarly } = this.#options;
    this.counts.memberships += 1;
    this.#acting = acting;
    this.#gained = new Set();
    const inProgress = new Set<Promise<void>>();
    const work = () => {
      if (acting.aborted) return;
      const at = Math.floor(random.next() * SHARDS);
      const begun = sharding.begin(KEYS[at] ?? '');
      if (begun !== undefined) {
        this.counts.work += 1;
        this.#inProgress.set(at, (this.#inProgress.get(at) ?? 0) + 1);
        const { promise, resolve } = Promise.withResolvers<void>();
        inProgress.add(promise);
        const end = () => {
          begun.signal.removeEventListener('abort', onAbort);
          const left = (this.#inProgress.get(at) ?? 1) - 1;
          if (left > 0) this.#inProgress.set(at, left);
          else this.#inProgress.delete(at);
          begun.end();
          resolve();
        };
        const timer = clock.after(8_000 * random.next(), end);
        const onAbort = () => {
          this.counts.aborted += 1;
          timer.cancel();
          if (endsEarly) begun.end();
          clock.after(3_000 * random.next(), end);
        };
        begun.signal.addEventListener('abort', onAbort, { once: true });
      }
      clock.after(100 + 3_000 * random.next(), work);
    };
    work();
    await new Promise<void>((resolve) => {
      acting.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.all(inProgress);
    if (!this.#stop?.signal.aborted) this.counts.lostMemberships += 1;
  }
}

function clientOf(
  server: LeaseTable,
  send: ReturnType<Host['sender']>,
  failsReads: () => boolean,
): ShardingClient {
  return {
    get: (_kind, { name }, { signal }) => send(signal, () => server.get(name)),
    create: (_kind, { metadata, spec }, { signal }) =>
      send(signal, () => server.create(metadata.name, metadata, spec)),
    mergePatch: (_kind, { name }, patch, { signal }) => {
      const { spec = {}, metadata = {} }: LeasePatch = patch;
      return send(signal, () => server.patch(name, metadata, spec));
    },
    list: (_kind, { signal }) =>
      send(signal, () => {
        if (failsReads()) throw new ConnectionError('reset');
        return { items: server.list(), resourceVersion: '', continue: undefined };
      }),
    delete: (_kind, { name }, { signal, uid, resourceVersion }) =>
      send(signal, () => server.delete(name, uid, resourceVersion)),
  };
}

/** Manual edits of the shard map that users might make. */
export const MANUAL_EDITS = {
  delete: (server: LeaseTable) => void server.leases.delete(SHARD_MAP_NAME),
  blank: (server: LeaseTable) => annotate(server, null),
  corrupt: (server: LeaseTable) => annotate(server, '{"shards":'),
  /** Swaps the shards of two members. */
  swapOwners: (server: LeaseTable) => {
    const text = server.shardMap?.metadata.annotations?.[SHARD_MAP_ANNOTATION];
    const names = [...new Set(text?.match(/x-[^"]+/g))];
    const [one, other] = names;
    if (text === undefined || one === undefined || other === undefined) return;
    annotate(server, text.replaceAll(one, '?').replaceAll(other, one).replaceAll('?', other));
  },
} as const;

export function annotate(server: LeaseTable, text: string | null): void {
  if (server.shardMap !== undefined)
    server.patch(SHARD_MAP_NAME, { annotations: { [SHARD_MAP_ANNOTATION]: text } });
}
