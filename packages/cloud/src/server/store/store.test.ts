import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Random, temporaryFolder } from '@vmwright/testbed';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Database } from './database.ts';
import type { StoredServer } from './rows.ts';
import { Store, type StoreOptions } from './store.ts';

const DAY = 86_400_000;

async function temporaryFile(): Promise<string> {
  return join(await temporaryFolder('store'), 'cloud.sqlite');
}

class Clock {
  time = 1_000_000;
  readonly now = () => this.time;
}

function open(path: string, options: Partial<StoreOptions> = {}) {
  const clock = new Clock();
  const audit: string[] = [];
  const writeAudit = (line: string) => void audit.push(line);
  const store = new Store({ file: path, clock, keepKeysMs: 7 * DAY, writeAudit, ...options });
  let closed = false;
  const close = () => {
    if (!closed) store[Symbol.dispose]();
    closed = true;
  };
  onTestFinished(close);
  const events = () => audit.map((line): unknown => JSON.parse(line));
  return { store, clock, audit, events, close };
}

let lastId = 0;
function create(store: Store, name: string, options: { key?: string; labels?: Record<string, string> } = {}) {
  lastId += 1;
  return store.create(`id-${lastId}`, { name, labels: options.labels ?? {} }, options.key);
}

describe('idempotency keys', () => {
  test('an idempotency key returns its server only for the same body, in any order of the labels', async () => {
    const { store } = open(await temporaryFile());
    const labels = { b: '1', a: '2' };
    const server = create(store, 'x', { key: 'k', labels });
    expect(store.lookupKey('k', { name: 'x', labels: { a: '2', b: '1' } })).toEqual({
      result: 'same',
      server,
    });
    expect(store.lookupKey('k', { name: 'x', labels: { a: '2' } })).toEqual({ result: 'reused' });
    expect(store.lookupKey('k', { name: 'y', labels })).toEqual({ result: 'reused' });
    expect(store.lookupKey('other', { name: 'x' })).toBeUndefined();
  });

  test('for an idempotency key, a body without labels equals a body with empty labels', async () => {
    const { store } = open(await temporaryFile());
    store.create('1', { name: 'x' }, 'k');
    expect(store.lookupKey('k', { name: 'x', labels: {} })).toMatchObject({ result: 'same' });
  });

  test('once the deletion of a server has begun, its idempotency key is answered with "gone" until the key expires', async () => {
    const { store, clock } = open(await temporaryFile());
    const { id } = create(store, 'x', { key: 'k' });
    const gone = { result: 'gone', serverId: id };
    store.beginDelete(id);
    expect(store.lookupKey('k', { name: 'x' })).toEqual(gone);
    store.remove(id);
    clock.time += 7 * DAY - 1;
    store.deleteExpiredKeys();
    expect(store.lookupKey('k', { name: 'x' })).toEqual(gone);
    expect(store.lookupKey('k', { name: 'y' })).toEqual(gone);
    clock.time += 1;
    expect(store.lookupKey('k', { name: 'x' })).toBeUndefined();
    const recreated = create(store, 'x', { key: 'k' });
    store.deleteExpiredKeys();
    expect(store.lookupKey('k', { name: 'x' })).toEqual({ result: 'same', server: recreated });
  });

  test('an idempotency key does not expire while its server is still being deleted', async () => {
    const { store, clock } = open(await temporaryFile());
    const { id } = create(store, 'x', { key: 'k' });
    store.beginDelete(id);
    clock.time += 100 * DAY;
    store.deleteExpiredKeys();
    expect(store.lookupKey('k', { name: 'x' })).toEqual({ result: 'gone', serverId: id });
  });
});

describe('servers', () => {
  test('each lifecycle event of a server is written to the audit log once', async () => {
    const { store, events } = open(await temporaryFile());
    const { id } = create(store, 'x', { key: 'k' });
    store.updateStates([{ id, state: 'running' }]);
    store.updateStates([{ id, state: 'failed', message: 'no memory' }]);
    store.beginDelete(id);
    store.beginDelete(id);
    store.remove(id);
    const common = { time: '1970-01-01T00:16:40.000Z', id, name: 'x', key: 'k' };
    expect(events()).toEqual([
      { audit: 1, event: 'created', ...common },
      { audit: 2, event: 'running', ...common },
      { audit: 3, event: 'failed', ...common, message: 'no memory' },
      { audit: 4, event: 'deleting', ...common },
      { audit: 5, event: 'deleted', ...common },
    ]);
  });

  test('a server stays in the state deleting when its boot finishes after the delete', async () => {
    const { store, events } = open(await temporaryFile());
    const { id } = create(store, 'x');
    store.beginDelete(id);
    store.updateStates([{ id, state: 'running' }]);
    expect(store.find(id)).toMatchObject({ state: 'deleting', deletingSince: 1_000_000 });
    store.setDeletionMessage(id, 'The disk is busy.');
    expect(store.find(id)?.message).toBe('The disk is busy.');
    expect(events()).toHaveLength(2);
  });

  test('a create with a taken name stores no server, no idempotency key and no audit event', async () => {
    const { store, events } = open(await temporaryFile());
    create(store, 'x');
    expect(() => create(store, 'x', { key: 'k' })).toThrow('UNIQUE constraint failed: servers.name');
    expect(store.lookupKey('k', { name: 'x' })).toBeUndefined();
    expect(store.all()).toHaveLength(1);
    create(store, 'y');
    expect(events()).toMatchObject([{ name: 'x' }, { name: 'y' }]);
  });
});

describe('audit log', () => {
  test('after a crash, the next start writes exactly the audit events that had not been written', async () => {
    const path = await temporaryFile();
    const written: string[] = [];
    let alive = true;
    const crashing = open(path, {
      writeAudit: (line) => {
        if (!alive) throw new Error('killed'); // simulates a crash between the commit and the write
        written.push(line);
      },
    });
    create(crashing.store, 'written');
    alive = false;
    create(crashing.store, 'unwritten');
    crashing.close();
    const next = open(path);
    expect(next.events()).toMatchObject([{ audit: 2, event: 'created', name: 'unwritten' }]);
    expect(next.store.all()).toHaveLength(2);
    next.close();
    expect(open(path).audit).toEqual([]);
  });

  test('audit events that did not fit on a full disk are written before the next event', async () => {
    const written: string[] = [];
    let hasSpace = true;
    const { store } = open(await temporaryFile(), {
      writeAudit: (line) => {
        if (!hasSpace) throw new Error('ENOSPC');
        written.push(line);
      },
    });
    hasSpace = false;
    create(store, 'first');
    create(store, 'second');
    expect(() => create(store, 'second')).toThrow('UNIQUE');
    hasSpace = true;
    create(store, 'third');
    expect(written[0]).toMatch(/^\n\{/);
    const events = written.map((line) => JSON.parse(line));
    expect(events.map(({ audit, name }) => [audit, name])).toEqual([
      [1, 'first'],
      [2, 'second'],
      [3, 'third'],
    ]);
  });

  test('if vmwright-cloud crashes right after it has written an audit event, it writes the event again with the same number', async () => {
    const path = await temporaryFile();
    const { store, audit } = open(path);
    create(store, 'x');
    const reader = new DatabaseSync(path, { readOnly: true });
    const rows = reader.prepare('SELECT seq, event FROM audit').all();
    reader.close();
    // After a crash at this point, the next start would write these rows. They equal the lines already written.
    expect(rows.map(({ seq, event }) => `{"audit":${seq},${String(event).slice(1)}\n`)).toEqual(audit);
  });
});

describe('lists', () => {
  const listAll = (
    store: Store,
    limit: number,
    name?: string,
    labels: { key: string; value?: string }[] = [],
  ) => {
    const seen: StoredServer[] = [];
    for (let page: StoredServer[] = []; ; ) {
      page = store.page({ after: seen.at(-1)?.seq ?? 0, limit, name, labels });
      if (page.length === 0) return seen;
      seen.push(...page);
    }
  };

  test('a list is filtered by name and labels', async () => {
    const { store } = open(await temporaryFile());
    create(store, 'a', { labels: { tier: 'gold', zone: '1' } });
    create(store, 'b', { labels: { tier: 'gold', zone: '2' } });
    create(store, 'c', { labels: { tier: '' } });
    create(store, 'd', { labels: { 'vmwright.dev/uid': 'x=y', constructor: 'x' } });
    const names = (name?: string, ...labels: { key: string; value?: string }[]) =>
      listAll(store, 10, name, labels).map((server) => server.name);
    expect(names()).toEqual(['a', 'b', 'c', 'd']);
    expect(names('b')).toEqual(['b']);
    expect(names(undefined, { key: 'tier' })).toEqual(['a', 'b', 'c']);
    expect(names(undefined, { key: 'tier', value: '' })).toEqual(['c']);
    expect(names(undefined, { key: 'tier', value: 'gold' }, { key: 'zone', value: '2' })).toEqual(['b']);
    expect(names(undefined, { key: 'vmwright.dev/uid', value: 'x=y' })).toEqual(['d']);
    expect(names('a', { key: 'zone', value: '2' })).toEqual([]);
  });

  test('a list has no duplicates and no gaps while servers are created and deleted between pages (200 seeds)', async () => {
    const path = await temporaryFile();
    const { store } = open(path);
    for (let seed = 1; seed <= 200; seed++) {
      const random = new Random(seed);
      for (const { id } of store.all()) {
        store.beginDelete(id);
        store.remove(id);
      }
      const count = random.below(12);
      for (let at = 0; at < count; at++) create(store, `${seed}-${at}`);
      const remaining = new Set(store.all().map(({ id }) => id));
      const seen: StoredServer[] = [];
      for (let page: StoredServer[] | undefined; page === undefined || page.length > 0; ) {
        page = store.page({ after: seen.at(-1)?.seq ?? 0, limit: 1 + random.below(4), labels: [] });
        seen.push(...page);
        if (random.chance(0.4)) create(store, `${seed}-late-${seen.length}-${lastId}`);
        const removed = random.chance(0.4) ? store.all()[random.below(store.all().length)] : undefined;
        if (removed !== undefined) {
          store.remove(removed.id);
          remaining.delete(removed.id);
        }
        if (seen.length > 60) break;
      }
      const ids = seen.map(({ id }) => id);
      expect(new Set(ids).size, `seed ${seed}`).toBe(ids.length);
      expect(
        [...remaining].filter((id) => !ids.includes(id)),
        `seed ${seed}`,
      ).toEqual([]);
    }
  });
});

describe('database file', () => {
  test('the database file keeps servers, idempotency keys and the number of servers per state after it is closed and opened again', async () => {
    const path = await temporaryFile();
    const first = open(path);
    const server = create(first.store, 'x', { key: 'k', labels: { a: 'ü☃' } });
    first.close();
    const { store } = open(path);
    expect(store.all()).toEqual([server]);
    expect(store.lookupKey('k', { name: 'x', labels: { a: 'ü☃' } })).toEqual({ result: 'same', server });
    expect(store.countByState()).toEqual(new Map([['building', 1]]));
  });

  test('the database file uses WAL and synchronous FULL', async () => {
    using database = new Database(await temporaryFile());
    const pragma = (name: string) => Object.values(database.connection.prepare(`PRAGMA ${name}`).get() ?? {});
    expect([pragma('journal_mode'), pragma('synchronous')]).toEqual([['wal'], [2]]);
  });

  test('the database file can be opened only once, even through a symbolic link', async () => {
    const path = await temporaryFile();
    open(path);
    const message = 'is in use by another vmwright-cloud process; use another --data file';
    expect(() => open(path)).toThrow(`${path} ${message}`);
    const link = `${path}-link`;
    symlinkSync(path, link);
    expect(() => open(link)).toThrow(`${link} ${message}`);
  });

  test('the database file can be read by other processes while it is open', async () => {
    const path = await temporaryFile();
    const { store } = open(path);
    create(store, 'x');
    const reader = new DatabaseSync(path, { readOnly: true });
    expect(reader.prepare('SELECT name FROM servers').all()).toMatchObject([{ name: 'x' }]);
    reader.close();
  });

  test('the database file is rejected and not changed if it belongs to another program', async () => {
    const path = await temporaryFile();
    writeFileSync(path, 'not a database, but a text file\n'.repeat(20));
    expect(() => open(path)).toThrow(`cannot use ${path}: file is not a database`);

    const foreign = `${path}-foreign`;
    const database = new DatabaseSync(foreign);
    database.exec('CREATE TABLE foreign_table (a)');
    database.close();
    expect(() => open(foreign)).toThrow(`${foreign} is not a vmwright-cloud database`);

    mkdirSync(`${path}-folder`);
    expect(() => open(`${path}-folder`)).toThrow(`cannot use ${path}-folder: unable to open database file`);
    expect(() => open('/nowhere/x.sqlite')).toThrow(
      'cannot use /nowhere/x.sqlite: unable to open database file; its directory must exist and be writable',
    );
  });

  test('the database file is rejected if its schema version is newer than the supported version', async () => {
    const path = await temporaryFile();
    open(path).close();
    const database = new DatabaseSync(path);
    database.exec('PRAGMA user_version = 7');
    database.close();
    expect(() => open(path)).toThrow(
      `${path} was written by a newer vmwright-cloud (schema version 7; this version supports 1)`,
    );
  });

  test('the database file cannot be used with another driver while it contains servers', async () => {
    const { store } = open(await temporaryFile());
    expect(store.claimDriver('simulated')).toBe('simulated');
    expect(store.claimDriver('qemu')).toBe('qemu');
    const { id } = create(store, 'x');
    expect(store.claimDriver('simulated')).toBe('qemu');
    store.remove(id);
    expect(store.claimDriver('simulated')).toBe('simulated');
  });
});
