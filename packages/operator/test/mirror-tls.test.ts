import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CertificateAuthority } from '@vmwright/runtime/testing';
import { type Postgres, startPostgres, temporaryFolder } from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PostgresDatabaseOptions, SslMode } from '../src/mirror/postgres/database.ts';
import { createDatabase, NEVER } from './mirror-database.ts';

const HOUR_MS = 3_600_000;
const VALIDITY = { notBefore: new Date(Date.now() - HOUR_MS), notAfter: new Date(Date.now() + HOUR_MS) };
const authority = (commonName: string) => CertificateAuthority.create({ commonName }, VALIDITY);

/** Result of an attempt to connect: `encrypted`, `plain`, or the code of the error. */
async function attempt(server: Postgres, options: Partial<PostgresDatabaseOptions>) {
  const { name, open, ssvirt } = await createDatabase(server);
  const identity = 'tls-test';
  try {
    await using _ = await open({ ...options, identity });
    const [row] = await ssvirt.query(
      // `datname` excludes the connections of earlier attempts. Each of them used another database, and its server
      // process may still exist.
      `SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = $1 AND datname = $2`,
      [`ssvirt-vm-controller ${identity}`, name],
    );
    return row?.ssl === true ? 'encrypted' : 'plain';
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && 'scope' in error)) throw error;
    expect(error.scope).toBe('session');
    expect(error.message).not.toContain(server.password);
    return `${error.code}: ${error.message}`;
  }
}

const UNTRUSTED = /; check sslrootcert, the file with the CA certificates to trust$/;
const OTHER_NAME = /^ERR_TLS_CERT_ALTNAME_INVALID: .*; check the host name, or use the TLS mode verify-ca$/;

describe('a server with TLS and a certificate for localhost', () => {
  let server: Postgres;
  let caFile: string;
  let otherCaFile: string;
  beforeAll(async () => {
    const ca = authority('test-ca');
    const subject = { commonName: 'postgres' };
    const tls = ca.issue({ ...VALIDITY, subject, usage: ['server'], names: ['localhost'] });
    server = await startPostgres({ tls });
    const dir = await temporaryFolder('mirror-tls');
    caFile = join(dir, 'ca.crt');
    otherCaFile = join(dir, 'other.crt');
    await writeFile(caFile, ca.certificate);
    await writeFile(otherCaFile, authority('other-ca').certificate);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test.each<[SslMode, string, 'no' | 'right' | 'wrong', string | RegExp]>([
    ['disable', 'localhost', 'right', 'plain'],
    ['allow', 'localhost', 'no', 'plain'],
    ['prefer', '127.0.0.1', 'no', 'encrypted'],
    ['prefer', '127.0.0.1', 'wrong', 'encrypted'],
    ['require', '127.0.0.1', 'no', 'encrypted'],
    ['require', '127.0.0.1', 'right', 'encrypted'],
    ['require', '127.0.0.1', 'wrong', UNTRUSTED],
    ['verify-ca', '127.0.0.1', 'right', 'encrypted'],
    ['verify-ca', 'localhost', 'wrong', UNTRUSTED],
    ['verify-ca', 'localhost', 'no', UNTRUSTED],
    ['verify-full', 'localhost', 'right', 'encrypted'],
    ['verify-full', '127.0.0.1', 'right', OTHER_NAME],
    ['verify-full', 'localhost', 'wrong', UNTRUSTED],
    ['verify-full', 'localhost', 'no', UNTRUSTED],
  ])(
    'a connection with sslmode %s to host %s with %s CA file succeeds or fails as documented',
    async (sslMode, host, ca, expected) => {
      const files = { no: undefined, right: caFile, wrong: otherCaFile };
      expect(await attempt(server, { sslMode, host, caFile: files[ca] })).toMatch(expected);
    },
  );

  test('a CA file that cannot be read is reported with its path', async () => {
    expect(await attempt(server, { sslMode: 'verify-full', caFile: '/no/such/ca.crt' })).toMatch(
      /^ENOENT: .*\/no\/such\/ca.crt/,
    );
  });

  test('after the CA file is replaced, the next connection uses the new CA', async () => {
    const changing = join(await temporaryFolder('mirror-ca'), 'ca.crt');
    await writeFile(changing, authority('expired-ca').certificate);
    const options = { sslMode: 'verify-ca', caFile: changing } as const;
    expect(await attempt(server, options)).toMatch(UNTRUSTED);
    await writeFile(changing, await readFile(caFile));
    expect(await attempt(server, options)).toBe('encrypted');
  });

  describe('with pg_hba rules that require or forbid TLS', () => {
    /**
     * Creates a role that must use TLS (`hostssl`) or must not use it (`hostnossl`). Returns the options to connect as
     * this role.
     */
    async function roleWith(rule: 'hostssl' | 'hostnossl') {
      const { ssvirt, role } = await createDatabase(server);
      const options = await role();
      const [row] = await ssvirt.query(`SELECT setting FROM pg_settings WHERE name = 'hba_file'`);
      const rules = [
        `${rule} all ${options.user} all scram-sha-256`,
        `host all ${options.user} all reject`,
        'host all all all scram-sha-256',
      ];
      const lines = rules.map((line) => `('${line}')`).join();
      await ssvirt.query(`COPY (VALUES ${lines}) TO '${row?.setting}'`);
      await ssvirt.query('SELECT pg_reload_conf()');
      await expect
        .poll(() => ssvirt.query('SELECT user_name FROM pg_hba_file_rules WHERE type = $1', [rule]))
        .toEqual([{ user_name: [options.user] }]);
      return options;
    }

    test('a role that must use TLS can connect with sslmode allow, but not with disable', async () => {
      const role = await roleWith('hostssl');
      await expect
        .poll(() => attempt(server, { ...role, sslMode: 'disable' }))
        .toMatch(/^28000: .*; check pg_hba.conf, the user name and the TLS mode$/);
      expect(await attempt(server, { ...role, sslMode: 'allow' })).toBe('encrypted');
      expect(await attempt(server, { ...role, sslMode: 'require' })).toBe('encrypted');
    });

    test('a role that must not use TLS can connect with sslmode prefer, but not with require', async () => {
      const role = await roleWith('hostnossl');
      await expect
        .poll(() => attempt(server, { ...role, sslMode: 'require' }))
        .toMatch(/^28000: .*; check pg_hba.conf, the user name and the TLS mode$/);
      expect(await attempt(server, { ...role, sslMode: 'prefer' })).toBe('plain');
      expect(await attempt(server, { ...role, sslMode: 'disable' })).toBe('plain');
    });
  });
});

describe('a server without TLS', () => {
  let server: Postgres;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const NO_TLS =
    'NO_TLS: The server does not support SSL connections; enable TLS on the server, or change the TLS mode';
  test.each<[SslMode, string]>([
    ['disable', 'plain'],
    ['allow', 'plain'],
    ['prefer', 'plain'],
    ['require', NO_TLS],
    ['verify-ca', NO_TLS],
    ['verify-full', NO_TLS],
  ])('sslmode %s results in %s', async (sslMode, expected) => {
    expect(await attempt(server, { sslMode })).toBe(expected);
  });

  test('with sslmode allow, a wrong password is not retried with TLS', async () => {
    const { access, role } = await createDatabase(server);
    const { user } = await role();
    let reads = 0;
    const password = async () => {
      reads += 1;
      return 'wr0ng';
    };
    const opening = access({ user, password, sslMode: 'allow' }).open(NEVER);
    await expect(opening).rejects.toMatchObject({ code: '28P01' });
    expect(reads).toBe(1);
  });
});
