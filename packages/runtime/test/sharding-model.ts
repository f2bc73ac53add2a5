import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '@vmwright/core';
import { AlreadyExistsError, ConflictError, ConnectionError, NotFoundError } from '../src/client/errors.ts';
import type { Lease, LeaseSpec } from '../src/kind/builtin/lease.ts';
import type { ObjectMeta } from '../src/kind/object.ts';
import { shardOf } from '../src/sharding/assignment.ts';
import type { ShardingClient } from '../src/sharding/lease-store.ts';
import { LEDGER } from '../src/sharding/ledger.ts';
import type { ShardingOptions } from '../src/sharding/options.ts';
import { Sharding } from '../src/sharding/sharding.ts';
import { Host, type HostOptions } from './sharding-host.ts';

/*
 * Several replicas that divide a few shards among them, on machines whose clocks and network are bad, and one server.
 */

export const SHARDS = 6;
/** One in each shard. */
export const NAMESPACES: readonly string[] = Array.from({ length: SHARDS }, (_, shard) => {
  let at = 0;
  while (shardOf(`n${at}`, SHARDS) !== shard) at += 1;
  return `n${at}`;
});
const KEYS = NAMESPACES.map((namespace) => `${namespace}/object`);

const LEDGER_NAME = 'x-shards';
const TIMES = { leaseMs: 15_000, renewMs: 10_000, retryMs: 2_000 };

type Changes = Partial<Pick<ObjectMeta, 'uid' | 'resourceVersion' | 'labels'>> & {
  readonly annotations?: Readonly<Record<string, string | null>>;
};

/** A merge patch. */
export interface Changed {
  readonly metadata?: Changes;
  readonly spec?: LeaseSpec;
}

/** Leases as the API server keeps them. */
export class LeaseTable {
  readonly leases = new Map<string, Lease>();
  /** Writes that were no renewals of a member's lease. */
  otherWrites = 0;
  writes = 0;
  #version = 0;

  get(name: string): Lease {
    const lease = this.leases.get(name);
    if (lease === undefined) throw new NotFoundError('no such lease', { status: 404 });
    return lease;
  }

  get ledger(): Lease | undefined {
    return this.leases.get(LEDGER_NAME);
  }

  create(name: string, { labels }: Changes, spec: LeaseSpec = {}): Lease {
    if (this.leases.has(name)) throw new AlreadyExistsError('there is one', { status: 409 });
    const uid = String(this.#version + 1);
    return this.#store({ name, namespace: 'test', uid, ...(labels && { labels }) }, spec, true);
  }

  patch(name: string, { uid, resourceVersion, annotations }: Changes, changes: LeaseSpec = {}): Lease {
    const before = this.get(name);
    this.#compare(before, uid, resourceVersion);
    const kept = { ...before.metadata.annotations };
    for (const [key, value] of Object.entries(annotations ?? {})) {
      if (value === null) delete kept[key];
      else kept[key] = value;
    }
    const { holderIdentity, ...rest } = { ...before.spec, ...changes };
    const spec = { ...rest, ...(holderIdentity && { holderIdentity }) };
    if (isDeepStrictEqual([spec, kept], [before.spec, before.metadata.annotations ?? {}])) return before;
    const renews = name !== LEDGER_NAME && before.spec?.holderIdentity === spec.holderIdentity;
    return this.#store({ ...before.metadata, annotations: kept }, spec, !renews);
  }

  delete(name: string, uid?: string, resourceVersion?: string): void {
    this.#compare(this.get(name), uid, resourceVersion);
    this.leases.delete(name);
    this.otherWrites += 1;
  }

  list(): Lease[] {
    return [...this.leases.values()];
  }

  #compare({ metadata }: Lease, uid: string | undefined, resourceVersion: string | undefined): void {
    if ((uid ?? metadata.uid) !== metadata.uid) throw new ConflictError('another', { status: 409 });
    if ((resourceVersion ?? metadata.resourceVersion) !== metadata.resourceVersion)
      throw new ConflictError('it has changed', { status: 409 });
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
  /** Into how many shards it would divide the namespaces. */
  readonly shards: number;
  /** Replaces options of the sharding, to plant a bug. */
  readonly plant?: (options: ShardingOptions) => ShardingOptions;
  /** Plants one: says that work has ended when it was asked to. */
  readonly endsEarly?: boolean;
}

/** A replica on a machine of its own, that works now in this namespace, now in that. */
export class Replica {
  readonly host: Host;
  readonly #options: ReplicaOptions;
  #life = 0;
  #ids = 0;
  #stop: AbortController | undefined;
  #acting: AbortSignal | undefined;
  #gained = new Set<number>();
  readonly #under = new Map<number, number>();
  sharding: Sharding | undefined;
  /** Its looks fail, and all else gets through. */
  blind = false;
  /** How often something happened, to show that the test is about something. */
  readonly counts = { lives: 0, lostLives: 0, gained: 0, work: 0, askedToEnd: 0 };

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.host = new Host(options);
  }

  get runs(): boolean {
    return this.sharding !== undefined;
  }

  /** What an observer that could look into the machine at this instant would see, be it stopped or not. @param at in `NAMESPACES` */
  acts(at: number): boolean {
    const { sharding } = this;
    if (sharding === undefined) return false;
    return sharding.holds(KEYS[at] ?? '') || (this.#under.has(at) && sharding.isMember());
  }

  /** The same, by one who trusts the signal alone. */
  actsBySignal(at: number): boolean {
    // Given away in order.
    if (this.sharding?.isMember() && !this.acts(at)) this.#gained.delete(at);
    return this.#gained.has(at) && this.#acting !== undefined && !this.#acting.aborted;
  }

  start(): void {
    const { name, random, server, shards, plant = (options) => options } = this.#options;
    this.#life += 1;
    const clock = this.host.clock();
    const options: ShardingOptions = {
      world: { ...clock, random: () => random.next(), uuid: () => `${name}.${this.#life}.${this.#ids++}` },
      client: clientOf(server, this.host.sender(), () => this.blind),
      namespace: 'test',
      name: 'x',
      identity: name,
      shards,
      ...TIMES,
    };
    const sharding = new Sharding(plant(options));
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
    this.#stop?.abort(new Error('asked to stop'));
  }

  kill(): void {
    this.host.crash();
    this.sharding = undefined;
    this.#acting = undefined;
    this.#under.clear();
  }

  /** Works until asked to stop, and then until what is under way has ended: within three seconds. */
  async #act(sharding: Sharding, clock: Clock, acting: AbortSignal): Promise<void> {
    const { random, endsEarly } = this.#options;
    this.counts.lives += 1;
    this.#acting = acting;
    this.#gained = new Set();
    const under = new Set<Promise<void>>();
    const work = () => {
      if (acting.aborted) return;
      const at = Math.floor(random.next() * SHARDS);
      const piece = sharding.begin(KEYS[at] ?? '');
      if (piece !== undefined) {
        this.counts.work += 1;
        this.#under.set(at, (this.#under.get(at) ?? 0) + 1);
        const { promise, resolve } = Promise.withResolvers<void>();
        under.add(promise);
        const end = () => {
          piece.signal.removeEventListener('abort', ask);
          const left = (this.#under.get(at) ?? 1) - 1;
          if (left > 0) this.#under.set(at, left);
          else this.#under.delete(at);
          piece.end();
          resolve();
        };
        const timer = clock.after(8_000 * random.next(), end);
        const ask = () => {
          this.counts.askedToEnd += 1;
          timer.cancel();
          if (endsEarly) piece.end();
          clock.after(3_000 * random.next(), end);
        };
        piece.signal.addEventListener('abort', ask, { once: true });
      }
      clock.after(100 + 3_000 * random.next(), work);
    };
    work();
    await new Promise<void>((resolve) => {
      acting.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.all(under);
    if (!this.#stop?.signal.aborted) this.counts.lostLives += 1;
  }
}

function clientOf(
  server: LeaseTable,
  send: ReturnType<Host['sender']>,
  isBlind: () => boolean,
): ShardingClient {
  return {
    get: (_kind, { name }, { signal }) => send(signal, () => server.get(name)),
    create: (_kind, { metadata, spec }, { signal }) =>
      send(signal, () => server.create(metadata.name, metadata, spec)),
    mergePatch: (_kind, { name }, patch, { signal }) => {
      const { spec = {}, metadata = {} }: Changed = patch;
      return send(signal, () => server.patch(name, metadata, spec));
    },
    list: (_kind, { signal }) =>
      send(signal, () => {
        if (isBlind()) throw new ConnectionError('reset');
        return { items: server.list(), resourceVersion: '', continue: undefined };
      }),
    delete: (_kind, { name }, { signal, uid, resourceVersion }) =>
      send(signal, () => server.delete(name, uid, resourceVersion)),
  };
}

/** What people do to leases who should not. */
export const MEDDLING = {
  deleteLedger: (server: LeaseTable) => void server.leases.delete(LEDGER_NAME),
  blankLedger: (server: LeaseTable) => annotate(server, null),
  scribble: (server: LeaseTable) => annotate(server, '{"shards":'),
  /** Gives all that one owns to another, by hand. */
  swapOwners: (server: LeaseTable) => {
    const text = server.ledger?.metadata.annotations?.[LEDGER];
    const names = [...new Set(text?.match(/x-[^"]+/g))];
    const [one, other] = names;
    if (text === undefined || one === undefined || other === undefined) return;
    annotate(server, text.replaceAll(one, '?').replaceAll(other, one).replaceAll('?', other));
  },
} as const;

export function annotate(server: LeaseTable, text: string | null): void {
  if (server.ledger !== undefined) server.patch(LEDGER_NAME, { annotations: { [LEDGER]: text } });
}
