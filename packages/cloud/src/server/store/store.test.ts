import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Random, temporaryFolder } from '@vmwright/testbed';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Database } from './database.ts';
import type { StoredServer } from './rows.ts';
import { Store, type StoreOptions } from './store.ts';

const DAY = 86_400_000;

async function file(): Promise<string> {
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

let last = 0;
function create(store: Store, name: string, more: { key?: string; labels?: Record<string, string> } = {}) {
  last += 1;
  return store.create(`id-${last}`, { name, labels: more.labels ?? {} }, more.key);
}

describe('a key', () => {
  test('stands for one server and one body, in whatever order its labels come', async () => {
    const { store } = open(await file());
    const labels = { b: '1', a: '2' };
    const server = create(store, 'x', { key: 'k', labels });
    expect(store.known('k', { name: 'x', labels: { a: '2', b: '1' } })).toEqual({ is: 'same', server });
    expect(store.known('k', { name: 'x', labels: { a: '2' } })).toEqual({ is: 'reused' });
    expect(store.known('k', { name: 'y', labels })).toEqual({ is: 'reused' });
    expect(store.known('other', { name: 'x' })).toBeUndefined();
  });

  test('of a body without labels is the same as of one with none', async () => {
    const { store } = open(await file());
    store.create('1', { name: 'x' }, 'k');
    expect(store.known('k', { name: 'x', labels: {} })).toMatchObject({ is: 'same' });
  });

  test('is gone from the promise of the deletion on, for its time, and free after it', async () => {
    const { store, clock } = open(await file());
    const { id } = create(store, 'x', { key: 'k' });
    const gone = { is: 'gone', serverId: id };
    store.beginDelete(id);
    expect(store.known('k', { name: 'x' })).toEqual(gone);
    store.remove(id);
    clock.time += 7 * DAY - 1;
    store.dropOldKeys();
    expect(store.known('k', { name: 'x' })).toEqual(gone);
    expect(store.known('k', { name: 'y' })).toEqual(gone);
    clock.time += 1;
    expect(store.known('k', { name: 'x' })).toBeUndefined();
    const again = create(store, 'x', { key: 'k' });
    store.dropOldKeys();
    expect(store.known('k', { name: 'x' })).toEqual({ is: 'same', server: again });
  });

  test('is kept while its server is still being deleted, however long that takes', async () => {
    const { store, clock } = open(await file());
    const { id } = create(store, 'x', { key: 'k' });
    store.beginDelete(id);
    clock.time += 100 * DAY;
    store.dropOldKeys();
    expect(store.known('k', { name: 'x' })).toEqual({ is: 'gone', serverId: id });
  });
});

describe('a server', () => {
  test('is told of each thing that happens to it, in the audit log', async () => {
    const { store, events } = open(await file());
    const { id } = create(store, 'x', { key: 'k' });
    store.settle([{ id, state: 'running' }]);
    store.settle([{ id, state: 'failed', message: 'no memory' }]);
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

  test('that is being deleted does not come back when its boot ends', async () => {
    const { store, events } = open(await file());
    const { id } = create(store, 'x');
    store.beginDelete(id);
    store.settle([{ id, state: 'running' }]);
    expect(store.find(id)).toMatchObject({ state: 'deleting', deletingSince: 1_000_000 });
    store.noteWhileDeleting(id, 'It is busy.');
    expect(store.find(id)?.message).toBe('It is busy.');
    expect(events()).toHaveLength(2);
  });

  test('whose name is taken is not stored, nor its key, nor is it told', async () => {
    const { store, events } = open(await file());
    create(store, 'x');
    expect(() => create(store, 'x', { key: 'k' })).toThrow('UNIQUE constraint failed: servers.name');
    expect(store.known('k', { name: 'x' })).toBeUndefined();
    expect(store.all()).toHaveLength(1);
    create(store, 'y');
    expect(events()).toMatchObject([{ name: 'x' }, { name: 'y' }]);
  });
});

describe('the audit log', () => {
  test('is told at the next start what a crash kept back, and only that', async () => {
    const path = await file();
    const told: string[] = [];
    let alive = true;
    const crashing = open(path, {
      writeAudit: (line) => {
        if (!alive) throw new Error('killed'); // between the commit and the writing
        told.push(line);
      },
    });
    create(crashing.store, 'told');
    alive = false;
    create(crashing.store, 'kept-back');
    crashing.close();
    const next = open(path);
    expect(next.events()).toMatchObject([{ audit: 2, event: 'created', name: 'kept-back' }]);
    expect(next.store.all()).toHaveLength(2);
    next.close();
    expect(open(path).audit).toEqual([]);
  });

  test('is told with the next what there was no room for, after what may be half a line', async () => {
    const told: string[] = [];
    let hasRoom = true;
    const { store } = open(await file(), {
      writeAudit: (line) => {
        if (!hasRoom) throw new Error('ENOSPC');
        told.push(line);
      },
    });
    hasRoom = false;
    create(store, 'first');
    create(store, 'second');
    expect(() => create(store, 'second')).toThrow('UNIQUE');
    hasRoom = true;
    create(store, 'third');
    expect(told[0]).toMatch(/^\n\{/);
    const events = told.map((line) => JSON.parse(line));
    expect(events.map(({ audit, name }) => [audit, name])).toEqual([
      [1, 'first'],
      [2, 'second'],
      [3, 'third'],
    ]);
  });

  test('repeats a line under its own number when the crash came right after it', async () => {
    const path = await file();
    const { store, audit } = open(path);
    create(store, 'x');
    const reader = new DatabaseSync(path, { readOnly: true });
    const left = reader.prepare('SELECT seq, event FROM audit').all();
    reader.close();
    // As it lies on the disk at this moment: what a kill would leave.
    expect(left.map(({ seq, event }) => `{"audit":${seq},${String(event).slice(1)}\n`)).toEqual(audit);
  });
});

describe('a list', () => {
  const walk = (
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

  test('is narrowed by name and labels', async () => {
    const { store } = open(await file());
    create(store, 'a', { labels: { tier: 'gold', zone: '1' } });
    create(store, 'b', { labels: { tier: 'gold', zone: '2' } });
    create(store, 'c', { labels: { tier: '' } });
    create(store, 'd', { labels: { 'vmwright.dev/uid': 'x=y', constructor: 'x' } });
    const names = (name?: string, ...labels: { key: string; value?: string }[]) =>
      walk(store, 10, name, labels).map((server) => server.name);
    expect(names()).toEqual(['a', 'b', 'c', 'd']);
    expect(names('b')).toEqual(['b']);
    expect(names(undefined, { key: 'tier' })).toEqual(['a', 'b', 'c']);
    expect(names(undefined, { key: 'tier', value: '' })).toEqual(['c']);
    expect(names(undefined, { key: 'tier', value: 'gold' }, { key: 'zone', value: '2' })).toEqual(['b']);
    expect(names(undefined, { key: 'vmwright.dev/uid', value: 'x=y' })).toEqual(['d']);
    expect(names('a', { key: 'zone', value: '2' })).toEqual([]);
  });

  test('shows who stays exactly once, whatever comes and goes between its pages (200 histories)', async () => {
    const path = await file();
    const { store } = open(path);
    for (let seed = 1; seed <= 200; seed++) {
      const random = new Random(seed);
      for (const { id } of store.all()) {
        store.beginDelete(id);
        store.remove(id);
      }
      const count = random.below(12);
      for (let at = 0; at < count; at++) create(store, `${seed}-${at}`);
      const stay = new Set(store.all().map(({ id }) => id));
      const seen: StoredServer[] = [];
      for (let page: StoredServer[] | undefined; page === undefined || page.length > 0; ) {
        page = store.page({ after: seen.at(-1)?.seq ?? 0, limit: 1 + random.below(4), labels: [] });
        seen.push(...page);
        if (random.chance(0.4)) create(store, `${seed}-late-${seen.length}-${last}`);
        const gone = random.chance(0.4) ? store.all()[random.below(store.all().length)] : undefined;
        if (gone !== undefined) {
          store.remove(gone.id);
          stay.delete(gone.id);
        }
        if (seen.length > 60) break;
      }
      const ids = seen.map(({ id }) => id);
      expect(new Set(ids).size, `seed ${seed}`).toBe(ids.length);
      expect(
        [...stay].filter((id) => !ids.includes(id)),
        `seed ${seed}`,
      ).toEqual([]);
    }
  });
});

describe('the file', () => {
  test('keeps all of it from one process to the next', async () => {
    const path = await file();
    const first = open(path);
    const server = create(first.store, 'x', { key: 'k', labels: { a: 'ü☃' } });
    first.close();
    const { store } = open(path);
    expect(store.all()).toEqual([server]);
    expect(store.known('k', { name: 'x', labels: { a: 'ü☃' } })).toEqual({ is: 'same', server });
    expect(store.countByState()).toEqual(new Map([['building', 1]]));
  });

  test('is on the disk before a method returns', async () => {
    using database = new Database(await file());
    const pragma = (name: string) => Object.values(database.connection.prepare(`PRAGMA ${name}`).get() ?? {});
    expect([pragma('journal_mode'), pragma('synchronous')]).toEqual([['wal'], [2]]);
  });

  test('is served by one process at a time, by whatever path', async () => {
    const path = await file();
    open(path);
    const sentence = 'is in use by another vmwright-cloud; a file is served by one process at a time';
    expect(() => open(path)).toThrow(`${path} ${sentence}`);
    const link = `${path}-link`;
    symlinkSync(path, link);
    expect(() => open(link)).toThrow(`${link} ${sentence}`);
  });

  test('can be read by others meanwhile', async () => {
    const path = await file();
    const { store } = open(path);
    create(store, 'x');
    const reader = new DatabaseSync(path, { readOnly: true });
    expect(reader.prepare('SELECT name FROM servers').all()).toMatchObject([{ name: 'x' }]);
    reader.close();
  });

  test('that is none of ours is left alone', async () => {
    const path = await file();
    writeFileSync(path, 'not a database at all, but something of somebody’s\n'.repeat(20));
    expect(() => open(path)).toThrow(`${path} cannot be used: file is not a database`);

    const foreign = `${path}-foreign`;
    const database = new DatabaseSync(foreign);
    database.exec('CREATE TABLE theirs (a)');
    database.close();
    expect(() => open(foreign)).toThrow(`${foreign} is a database of something else than vmwright-cloud`);

    mkdirSync(`${path}-folder`);
    expect(() => open(`${path}-folder`)).toThrow(
      `${path}-folder cannot be used: unable to open database file`,
    );
    expect(() => open('/nowhere/x.sqlite')).toThrow(
      '/nowhere/x.sqlite cannot be used: unable to open database file; its folder must be there, and ours to write',
    );
  });

  test('of a newer version is refused', async () => {
    const path = await file();
    open(path).close();
    const database = new DatabaseSync(path);
    database.exec('PRAGMA user_version = 7');
    database.close();
    expect(() => open(path)).toThrow(
      `${path} was written by a newer vmwright-cloud (version 7 of the data; this one knows 1)`,
    );
  });

  test('belongs to its driver as long as there are servers', async () => {
    const { store } = open(await file());
    expect(store.driver('simulated')).toBe('simulated');
    expect(store.driver('qemu')).toBe('qemu');
    const { id } = create(store, 'x');
    expect(store.driver('simulated')).toBe('qemu');
    store.remove(id);
    expect(store.driver('simulated')).toBe('simulated');
  });
});
