import { DatabaseSync } from 'node:sqlite';
import { budget, Random } from '@vmwright/testbed';
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

const ROUNDS = budget(8, 20);
const WORKERS = 6;

/** A server as its client knows it. */
interface TrackedServer {
  readonly key: string;
  readonly name: string;
  /** Id of the server; known after the first response. */
  id?: string;
  deletion?: 'requested' | 'confirmed';
}

/** Clients that keep working while the cloud is killed and restarted. */
class Chaos {
  readonly cloud: CloudProcess;
  readonly tracked: TrackedServer[] = [];
  readonly random: Random;
  sent = 0;
  stopped = false;
  #available = Promise.withResolvers<void>();
  #killAt = Number.POSITIVE_INFINITY;
  #onKillPoint = () => undefined as void;

  constructor(cloud: CloudProcess, seed: number) {
    this.cloud = cloud;
    this.random = new Random(seed);
    this.#available.resolve();
  }

  /** Kills the cloud shortly after a randomly chosen request, and restarts it. */
  async round(): Promise<void> {
    const killPoint = Promise.withResolvers<void>();
    this.#onKillPoint = killPoint.resolve;
    this.#killAt = this.sent + 1 + this.random.below(60);
    const delay = this.random.below(4);
    await killPoint.promise;
    this.#available = Promise.withResolvers();
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
    await this.cloud.kill();
    await this.cloud.start();
    this.#available.resolve();
  }

  /** Retries a call until the cloud responds. */
  async withRetries<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      await this.#available.promise;
      this.sent += 1;
      if (this.sent >= this.#killAt) this.#onKillPoint();
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof ConnectionError || error instanceof UnavailableError)) throw error;
      }
    }
  }

  async create(server: TrackedServer): Promise<void> {
    try {
      const { id } = await this.withRetries(() =>
        this.cloud.client.create({ name: server.name }, server.key),
      );
      if (server.deletion === 'confirmed') throw new Error(`${server.name} was recreated after its deletion`);
      if (server.id !== undefined && server.id !== id)
        throw new Error(`${server.name} was created twice: ${server.id} and ${id}`);
      server.id = id;
    } catch (error) {
      if (!(error instanceof GoneError) || server.deletion === undefined) throw error;
    }
  }

  async delete(server: TrackedServer): Promise<void> {
    const { id } = server;
    if (id === undefined) return;
    server.deletion ??= 'requested';
    try {
      await this.withRetries(() => this.cloud.client.delete(id));
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
    }
    server.deletion = 'confirmed';
  }

  async work(worker: number): Promise<void> {
    for (let at = 0; !this.stopped; at++) {
      const own = this.tracked.filter(({ name }) => name.startsWith(`w${worker}-`));
      const choice = this.random.next();
      if (choice < 0.5 || own.length === 0) {
        const server = { key: `key-${worker}-${at}`, name: `w${worker}-${at}` };
        this.tracked.push(server);
        await this.create(server);
      } else if (choice < 0.7) await this.create(this.random.pick(own));
      else if (choice < 0.95) await this.delete(this.random.pick(own));
      else {
        const server = this.random.pick(own);
        const foreignCreate = this.withRetries(() =>
          this.cloud.client.create({ name: server.name }, undefined),
        );
        // A create with the name of the tracked server fails with NameTakenError, unless that server has been removed.
        await foreignCreate.then(
          ({ id }) => this.withRetries(() => this.cloud.client.delete(id)).catch(() => undefined),
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

describe('kill -9', () => {
  test(`kill -9 at any moment neither loses acknowledged changes nor creates servers twice: ${ROUNDS} kills under load`, async () => {
    await using cloud = await CloudProcess.start();
    const chaos = new Chaos(cloud, 6);
    const working = Array.from({ length: WORKERS }, (_, worker) => chaos.work(worker));
    const failed = Promise.all(working).then(() => undefined);
    for (let round = 0; round < ROUNDS; round++) await Promise.race([chaos.round(), failed]);
    chaos.stopped = true;
    await failed;
    expect(cloud.failedRequests).toBeGreaterThan(ROUNDS); // at least one request per kill got no response

    const deleted = chaos.tracked.filter(({ deletion }) => deletion === 'confirmed');
    const wanted = chaos.tracked.filter(({ deletion }) => deletion === undefined);
    expect(deleted.length).toBeGreaterThan(10);
    expect(wanted.length).toBeGreaterThan(10);
    for (const { id = '' } of deleted) await cloud.audited('deleted', id);
    const deleting = async () => (await all(cloud)).filter(({ state }) => state === 'deleting');
    await expect.poll(deleting).toEqual([]);

    const existing = await all(cloud);
    const ids = new Set(wanted.map(({ id }) => id));
    const others = existing.filter(({ id, state }) => !ids.has(id) && state !== 'deleting');
    // Servers without a key are ignored: their create may have succeeded although the response was lost.
    expect(others.filter(({ id }) => cloud.audit.find((line) => line.id === id)?.key !== undefined)).toEqual(
      [],
    );
    expect([...ids].filter((id) => !existing.some((server) => server.id === id))).toEqual([]);

    // Machines that were booting during a kill are running.
    for (const { id } of existing) await cloud.audited('running', id);
    // Waits until the test has read the whole audit log: until every server that no longer exists has a `deleted` line.
    const remaining = () => {
      const ids = (event: string) => cloud.audit.flatMap((line) => (line.event === event ? [line.id] : []));
      return new Set(ids('created')).difference(new Set(ids('deleted')));
    };
    await expect.poll(() => remaining().size).toBe(existing.length);
    // According to the audit log, each key created one server, and each server was created once and deleted at most
    // once.
    const lines = [...new Map(cloud.audit.map((line) => [line.audit, line])).values()];
    for (const line of cloud.audit) expect(lines.find(({ audit }) => audit === line.audit)).toEqual(line);
    const created = lines.filter(({ event }) => event === 'created');
    const keyed = created.filter(({ key }) => key !== undefined);
    expect(new Set(keyed.map(({ key }) => key)).size).toBe(keyed.length);
    expect(new Set(created.map(({ id }) => id)).size).toBe(created.length);
    const gone = lines.filter(({ event }) => event === 'deleted').map(({ id }) => id);
    expect(new Set(gone).size).toBe(gone.length);
    // The database, the audit log and the API agree on which servers exist.
    const reader = new DatabaseSync(cloud.data, { readOnly: true });
    const rows = reader.prepare('SELECT id FROM servers').all();
    reader.close();
    expect(new Set(rows.map(({ id }) => id))).toEqual(new Set(existing.map(({ id }) => id)));
    expect(new Set(created.map(({ id }) => id).filter((id) => !gone.includes(id)))).toEqual(
      new Set(existing.map(({ id }) => id)),
    );
  });
});

describe('lost responses', () => {
  test('each idempotency key creates exactly one server although responses are lost', async () => {
    await using cloud = await CloudProcess.start({ args: ['--enable-faults'] });
    const faults = { seed: 11, loseAnswersAfterEffect: 0.3, loseBefore: 0.2, errorRate: 0.1 };
    const headers = { 'content-type': 'application/json' };
    await cloud.fetch('/faults', { method: 'PUT', headers, body: JSON.stringify(faults) });
    const chaos = new Chaos(cloud, 1);
    const tracked: TrackedServer[] = Array.from({ length: 60 }, (_, at) => ({
      key: `key-${at}`,
      name: `vm-${at}`,
    }));
    await Promise.all(tracked.map((server) => chaos.create(server)));
    const report = record(await (await cloud.fetch('/faults')).json());
    expect(report).toMatchObject({ settings: faults });
    for (const count of [report.lostAfter, report.lostBefore, report.refused])
      expect(count).toBeGreaterThan(3);
    const existing = (await Array.fromAsync(retried(cloud))).flat();
    expect(new Set(existing.map(({ id }) => id))).toEqual(new Set(tracked.map(({ id }) => id)));
    await Promise.all(tracked.map((server) => chaos.delete(server)));
    for (const { id = '' } of tracked) await cloud.audited('deleted', id);
    // Repeats all create requests with their keys, as if duplicates of the requests arrived after the deletion.
    await Promise.all(tracked.map((server) => chaos.create(server)));
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
