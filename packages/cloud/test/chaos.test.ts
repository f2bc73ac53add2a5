import { DatabaseSync } from 'node:sqlite';
import { Random } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import {
  ConnectionError,
  GoneError,
  NameTakenError,
  NotFoundError,
  type Server,
  UnavailableError,
} from '../src/index.ts';
import { CloudProcess } from './cloud-process.ts';
import { record } from './openapi.ts';

const ROUNDS = 20;
const WORKERS = 6;

/** What a client knows of one server. */
interface Wish {
  readonly key: string;
  readonly name: string;
  /** From the first answer on. */
  id?: string;
  deletion?: 'asked' | 'promised';
}

/** A cloud that is killed and started again, and clients that carry on. */
class Chaos {
  readonly cloud: CloudProcess;
  readonly wishes: Wish[] = [];
  readonly random: Random;
  sent = 0;
  stopped = false;
  #serving = Promise.withResolvers<void>();
  #killAt = Number.POSITIVE_INFINITY;
  #kill = () => undefined as void;

  constructor(cloud: CloudProcess, seed: number) {
    this.cloud = cloud;
    this.random = new Random(seed);
    this.#serving.resolve();
  }

  /** Kills it a moment after a request that is a random number of requests away, and starts it again. */
  async round(): Promise<void> {
    const struck = Promise.withResolvers<void>();
    this.#kill = struck.resolve;
    this.#killAt = this.sent + 1 + this.random.below(60);
    const delay = this.random.below(4);
    await struck.promise;
    this.#serving = Promise.withResolvers();
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
    await this.cloud.kill();
    await this.cloud.start();
    this.#serving.resolve();
  }

  /** Sends until there is an answer, however often the cloud dies meanwhile. */
  async insist<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      await this.#serving.promise;
      this.sent += 1;
      if (this.sent >= this.#killAt) this.#kill();
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof ConnectionError || error instanceof UnavailableError)) throw error;
      }
    }
  }

  async create(wish: Wish): Promise<void> {
    try {
      const { id } = await this.insist(() => this.cloud.client.create({ name: wish.name }, wish.key));
      if (wish.deletion === 'promised') throw new Error(`${wish.name} came back after its deletion`);
      if (wish.id !== undefined && wish.id !== id)
        throw new Error(`${wish.name} is two: ${wish.id} and ${id}`);
      wish.id = id;
    } catch (error) {
      if (!(error instanceof GoneError) || wish.deletion === undefined) throw error;
    }
  }

  async delete(wish: Wish): Promise<void> {
    const { id } = wish;
    if (id === undefined) return;
    wish.deletion ??= 'asked';
    try {
      await this.insist(() => this.cloud.client.delete(id));
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
    }
    wish.deletion = 'promised';
  }

  async work(worker: number): Promise<void> {
    for (let at = 0; !this.stopped; at++) {
      const own = this.wishes.filter(({ name }) => name.startsWith(`w${worker}-`));
      const choice = this.random.next();
      if (choice < 0.5 || own.length === 0) {
        const wish = { key: `key-${worker}-${at}`, name: `w${worker}-${at}` };
        this.wishes.push(wish);
        await this.create(wish);
      } else if (choice < 0.7) await this.create(this.random.pick(own));
      else if (choice < 0.95) await this.delete(this.random.pick(own));
      else {
        const wish = this.random.pick(own);
        const stranger = this.insist(() => this.cloud.client.create({ name: wish.name }, undefined));
        // Somebody else wants the name: it is taken, unless its server is gone for good.
        await stranger.then(
          ({ id }) => this.insist(() => this.cloud.client.delete(id)).catch(() => undefined),
          (error) => {
            if (!(error instanceof NameTakenError)) throw error;
          },
        );
      }
    }
  }
}

async function all(cloud: CloudProcess): Promise<Server[]> {
  return (await Array.fromAsync(cloud.client.list({ limit: 7 }))).flat();
}

describe('kill -9 at any moment', () => {
  test(`loses nothing that was acknowledged and doubles nothing: ${ROUNDS} kills under load`, async () => {
    await using cloud = await CloudProcess.start();
    const chaos = new Chaos(cloud, 6);
    const working = Array.from({ length: WORKERS }, (_, worker) => chaos.work(worker));
    const failed = Promise.all(working).then(() => undefined);
    for (let round = 0; round < ROUNDS; round++) await Promise.race([chaos.round(), failed]);
    chaos.stopped = true;
    await failed;
    expect(cloud.unanswered).toBeGreaterThan(ROUNDS); // the kills have struck something

    const deleted = chaos.wishes.filter(({ deletion }) => deletion === 'promised');
    const wanted = chaos.wishes.filter(({ deletion }) => deletion === undefined);
    expect(deleted.length).toBeGreaterThan(10);
    expect(wanted.length).toBeGreaterThan(10);
    for (const { id = '' } of deleted) await cloud.audited('deleted', id);
    const strangers = cloud.audit.filter(({ event, key }) => event === 'deleting' && key === undefined);
    for (const { id } of strangers) await cloud.audited('deleted', id);

    const there = await all(cloud);
    const ids = new Set(wanted.map(({ id }) => id));
    const others = there.filter(({ id, state }) => !ids.has(id) && state !== 'deleting');
    // A create without a key may have been carried out though nobody heard of it: only those have no owner.
    expect(others.filter(({ id }) => cloud.audit.find((line) => line.id === id)?.key !== undefined)).toEqual(
      [],
    );
    expect([...ids].filter((id) => !there.some((server) => server.id === id))).toEqual([]);

    // What the log says, by itself: each key made one server, each server came and went once.
    const lines = [...new Map(cloud.audit.map((line) => [line.audit, line])).values()];
    for (const line of cloud.audit) expect(lines.find(({ audit }) => audit === line.audit)).toEqual(line);
    const created = lines.filter(({ event }) => event === 'created');
    const keyed = created.filter(({ key }) => key !== undefined);
    expect(new Set(keyed.map(({ key }) => key)).size).toBe(keyed.length);
    expect(new Set(created.map(({ id }) => id)).size).toBe(created.length);
    const gone = lines.filter(({ event }) => event === 'deleted').map(({ id }) => id);
    expect(new Set(gone).size).toBe(gone.length);
    // And what the disk says.
    const reader = new DatabaseSync(cloud.data, { readOnly: true });
    const rows = reader.prepare('SELECT id FROM servers').all();
    reader.close();
    expect(new Set(rows.map(({ id }) => id))).toEqual(new Set(there.map(({ id }) => id)));
    expect(new Set(created.map(({ id }) => id).filter((id) => !gone.includes(id)))).toEqual(
      new Set(there.map(({ id }) => id)),
    );
    // Machines that were booting at a kill have come up all the same.
    for (const { id } of there) await cloud.audited('running', id);
  });
});

describe('answers that are lost after the effect', () => {
  test('leave one server for each key, and none after their deletes', async () => {
    await using cloud = await CloudProcess.start({ args: ['--enable-faults'] });
    const faults = { seed: 11, loseAnswersAfterEffect: 0.3, loseBefore: 0.2, errorRate: 0.1 };
    const headers = { 'content-type': 'application/json' };
    await cloud.fetch('/faults', { method: 'PUT', headers, body: JSON.stringify(faults) });
    const chaos = new Chaos(cloud, 1);
    const wishes: Wish[] = Array.from({ length: 60 }, (_, at) => ({ key: `key-${at}`, name: `vm-${at}` }));
    await Promise.all(wishes.map((wish) => chaos.create(wish)));
    const report = record(await (await cloud.fetch('/faults')).json());
    expect(report).toMatchObject({ settings: faults });
    for (const count of [report.lostAfter, report.lostBefore, report.refused])
      expect(count).toBeGreaterThan(3);
    const there = (await Array.fromAsync(retried(cloud))).flat();
    expect(new Set(there.map(({ id }) => id))).toEqual(new Set(wishes.map(({ id }) => id)));
    await Promise.all(wishes.map((wish) => chaos.delete(wish)));
    for (const { id = '' } of wishes) await cloud.audited('deleted', id);
    await Promise.all(wishes.map((wish) => chaos.create(wish))); // late duplicates
    await cloud.fetch('/faults', { method: 'DELETE' });
    expect(await all(cloud)).toEqual([]);
    expect(cloud.audit.filter(({ event }) => event === 'created')).toHaveLength(60);
  });
});

async function* retried(cloud: CloudProcess): AsyncGenerator<readonly Server[], void, undefined> {
  for (;;) {
    try {
      yield await all(cloud);
      return;
    } catch (error) {
      if (!(error instanceof ConnectionError || error instanceof UnavailableError)) throw error;
    }
  }
}
