import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../process/ports.ts';
import { processIdentity } from '../process/process-identity.ts';
import { run } from '../process/run.ts';
import { until } from '../process/until.ts';
import { type Postgres, startPostgres } from './postgres.ts';

async function query(url: string, text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

describe('PostgreSQL', { timeout: 60_000 }, () => {
  let postgres: Postgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  }, 60_000);
  afterAll(() => postgres[Symbol.asyncDispose]());

  test('the PostgreSQL server serves PostgreSQL 18 at its URL', async () => {
    const { host, port, user, password, database, url } = postgres;
    expect(url).toBe(`postgres://${user}:${password}@${host}:${port}/${database}`);
    const [row] = await query(url, 'select version()');
    expect(row?.version).toMatch(/^PostgreSQL 18\./);
  });

  test('the PostgreSQL server uses UTF-8 and the C collation', async () => {
    const [row] = await query(
      postgres.url,
      `select current_setting('server_encoding') as encoding, 'é' > 'z' and 'a' > 'Z' as by_bytes`,
    );
    expect(row).toEqual({ encoding: 'UTF8', by_bytes: true });
  });

  test('the PostgreSQL server rejects a wrong password', async () => {
    const url = new URL(postgres.url);
    url.password = 'wrong';
    await expect(query(url.href, 'select 1')).rejects.toMatchObject({ code: '28P01' });
  });

  test('the PostgreSQL server listens only on its port on 127.0.0.1', async () => {
    const [row] = await query(
      postgres.url,
      `select current_setting('listen_addresses') as addresses, current_setting('unix_socket_directories') as sockets`,
    );
    expect(row).toEqual({ addresses: '127.0.0.1', sockets: '' });
  });

  test('the PostgreSQL server keeps committed data when killed', async () => {
    await query(postgres.url, `create table kept as select 'committed' as value`);
    const connected = new pg.Client(postgres.url);
    const disconnected = new Promise((resolve) => connected.on('error', resolve));
    await connected.connect();
    await postgres.part.kill();
    await disconnected;
    await expect(query(postgres.url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await postgres.part.start();
    expect(await query(postgres.url, 'select value from kept')).toEqual([{ value: 'committed' }]);
  });

  test('the PostgreSQL server restarts gracefully while clients are connected', async () => {
    const connected = new pg.Client(postgres.url);
    const disconnected = new Promise((resolve) => connected.on('error', resolve));
    await connected.connect();
    await postgres.part.restart();
    await disconnected;
    expect(await postgres.part.logTail(100)).toContain('received fast shutdown request');
    expect(await query(postgres.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('the PostgreSQL server starts with the given settings', async () => {
    await using durable = await startPostgres({ settings: { fsync: 'on' } });
    const [row] = await query(durable.url, `select current_setting('fsync') as fsync`);
    expect(row).toEqual({ fsync: 'on' });
  });

  test('the PostgreSQL server leaves no process, folder or shared memory when disposed', async () => {
    const port = await freePort();
    const other = await startPostgres({ port });
    expect(other.port).toBe(port);
    const { pid, dir } = other.part;
    expect(await sharedMemoryOf(pid)).not.toEqual([]);
    await other[Symbol.asyncDispose]();
    expect(processIdentity(pid)).toBeUndefined();
    expect(existsSync(dir)).toBe(false);
    expect(await sharedMemoryOf(pid)).toEqual([]);
    await expect(query(other.url, 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('the PostgreSQL server leaves no process, folder or shared memory when the program that started it is killed', async () => {
    const module = new URL('postgres.ts', import.meta.url).href;
    const program = spawn(process.execPath, ['--input-type=module', '--eval', sourceOfRunner(module)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(createInterface({ input: program.stdout }), 'line');
    const [pid, dir] = String(line).split(' ');
    expect(processIdentity(Number(pid))).toBeDefined();
    program.kill('SIGKILL');
    await until(async () => processIdentity(Number(pid)) === undefined && !existsSync(String(dir)), {
      what: 'process and folder are gone',
    });
    expect(await sharedMemoryOf(Number(pid))).toEqual([]);
  });

  test('the PostgreSQL server fails with PORT_BUSY when its port is in use', async () => {
    const port = await freePort();
    await using holder = createServer().listen(port, '127.0.0.1');
    await once(holder, 'listening');
    await expect(startPostgres({ port })).rejects.toMatchObject({
      code: 'PORT_BUSY',
      message: expect.stringContaining(`port ${port} for PostgreSQL is in use`),
    });
  });
});

/**
 * Source of a program that starts PostgreSQL, prints the pid and folder of the server, and runs until it is killed.
 */
function sourceOfRunner(module: string): string {
  return `
    setInterval(() => undefined, 60_000);
    const { startPostgres } = await import(${JSON.stringify(module)});
    const { part } = await startPostgres();
    console.log(part.pid + ' ' + part.dir);
  `;
}

/** Returns the System V shared memory segments that the process created or used last. */
async function sharedMemoryOf(pid: number): Promise<string[]> {
  const { stdout } = await run('ipcs', ['-m', '-p']);
  // The columns are shmid, owner, cpid and lpid.
  return stdout.split('\n').filter((line) => line.trim().split(/\s+/).slice(2).includes(String(pid)));
}
