import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { SettingsError } from '../settings/values.ts';
import { DEFAULT_MAPPING } from './mapping.ts';
import { mirrorSettings } from './settings.ts';

const USER = { SSVIRT_DATABASE_USERNAME: 'ssvirt' };

/** Creates a temporary folder. @returns a function that writes a file to the folder and returns the path of the file */
function folder() {
  const dir = mkdtempSync(join(tmpdir(), 'mirror-settings-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return (name: string, content: string) => {
    const path = join(dir, name);
    writeFileSync(path, content);
    return path;
  };
}

const configOf = (content: unknown) => folder()('config.yaml', stringify(content));

/** Reads settings from a file with these sections. */
function read(controller: object = {}, database: object = {}, environment: Record<string, string> = {}) {
  return mirrorSettings(configOf({ controller, database }), { ...USER, ...environment });
}

test('a setting has its default if neither the config file nor the environment sets it', () => {
  const { database, ...rest } = mirrorSettings(configOf({}), USER);
  expect(rest).toEqual({
    isEnabled: true,
    workers: 5,
    baseMs: 1_000,
    maxMs: 300_000,
    resyncMs: 600_000,
    settlingMs: 3_000,
    replicas: 'election',
    leaseMs: 15_000,
    namespace: 'ssvirt-system',
    namespaces: undefined,
    metrics: { host: '', port: 8080 },
    mapping: DEFAULT_MAPPING,
    statusEvents: true,
    logLevel: 'info',
  });
  expect(database).toMatchObject({
    host: 'localhost',
    port: 5432,
    user: 'ssvirt',
    database: 'ssvirt',
    sslMode: 'prefer',
    caFile: undefined,
    fence: 'session',
  });
});

test('the default config file may be missing, but a config file that --config names must exist', () => {
  expect(mirrorSettings(undefined, USER).workers).toBe(5);
  expect(() => mirrorSettings('/no/such/config.yaml', USER)).toThrow(
    'the config file /no/such/config.yaml cannot be read; check --config',
  );
});

describe('the environment takes precedence over the file, and the file over the default', () => {
  type Read = (settings: ReturnType<typeof mirrorSettings>) => unknown;
  test.each<[string, string, unknown, unknown, string, unknown, Read]>([
    ['enabled', 'CONTROLLER_ENABLED', false, false, 'true', true, (s) => s.isEnabled],
    ['maxConcurrentReconciles', 'CONTROLLER_MAX_CONCURRENT', 7, 7, '9', 9, (s) => s.workers],
    ['baseDelay', 'CONTROLLER_BASE_DELAY', '2s', 2_000, '500ms', 500, (s) => s.baseMs],
    ['maxDelay', 'CONTROLLER_MAX_DELAY', '1m', 60_000, '2m', 120_000, (s) => s.maxMs],
    ['resyncPeriod', 'CONTROLLER_RESYNC_PERIOD', '1h', 3_600_000, '5m', 300_000, (s) => s.resyncMs],
    [
      'enableLeaderElection',
      'CONTROLLER_LEADER_ELECTION',
      false,
      'single',
      'true',
      'election',
      (s) => s.replicas,
    ],
    ['leaseDuration', 'CONTROLLER_LEASE_DURATION', '30s', 30_000, '2s', 2_000, (s) => s.leaseMs],
    ['namespace', 'CONTROLLER_NAMESPACE', 'a', 'a', 'b', 'b', (s) => s.namespace],
    ['metricsAddr', 'CONTROLLER_METRICS_ADDR', '127.0.0.1:1', 1, '[::1]:2', 2, (s) => s.metrics.port],
    [
      'watchNamespaces',
      'CONTROLLER_WATCH_NAMESPACES',
      ['a', 'b'],
      ['a', 'b'],
      'c, d',
      ['c', 'd'],
      (s) => s.namespaces,
    ],
    ['settlingTime', 'CONTROLLER_SETTLING_TIME', '0s', 0, '10s', 10_000, (s) => s.settlingMs],
    ['fence', 'CONTROLLER_FENCE', 'table', 'table', 'session', 'session', (s) => s.database.fence],
    ['sharding', 'CONTROLLER_SHARDING', true, 'sharding', 'false', 'election', (s) => s.replicas],
    ['statusEvents', 'CONTROLLER_STATUS_EVENTS', 'off', false, 'on', true, (s) => s.statusEvents],
    ['logLevel', 'CONTROLLER_LOG_LEVEL', 'debug', 'debug', 'warn', 'warn', (s) => s.logLevel],
  ])(
    'controller.%s is read from the file, and %s takes precedence',
    (key, variable, inFile, fromFile, inEnvironment, fromEnvironment, value) => {
      expect(value(read({ [key]: inFile }))).toEqual(fromFile);
      expect(value(read({ [key]: inFile }, {}, { [variable]: inEnvironment }))).toEqual(fromEnvironment);
      expect(value(read({ [key]: inFile }, {}, { [variable]: '' }))).toEqual(fromFile);
    },
  );

  type ReadDatabase = (settings: ReturnType<typeof mirrorSettings>['database']) => unknown;
  test.each<[string, string, unknown, unknown, string, unknown, ReadDatabase]>([
    ['host', 'HOST', 'a', 'a', 'b', 'b', (s) => s.host],
    ['port', 'PORT', 6432, 6432, '7432', 7432, (s) => s.port],
    ['username', 'USERNAME', 'a', 'a', 'b', 'b', (s) => s.user],
    ['database', 'DATABASE', 'a', 'a', 'b', 'b', (s) => s.database],
    ['sslmode', 'SSLMODE', 'verify-ca', 'verify-ca', 'verify-full', 'verify-full', (s) => s.sslMode],
    ['sslrootcert', 'SSLROOTCERT', '/a', '/a', '/b', '/b', (s) => s.caFile],
    ['password', 'PASSWORD', 'a', 'a', 'b', 'b', (s) => s.password()],
    ['maxConnections', 'MAX_CONNECTIONS', 20, 'localhost', '30', 'localhost', (s) => s.host],
  ])(
    'database.%s is read from the file, and SSVIRT_DATABASE_%s takes precedence',
    async (key, name, inFile, fromFile, inEnvironment, fromEnvironment, value) => {
      const variable = `SSVIRT_DATABASE_${name}`;
      const settings = (environment: Record<string, string>) =>
        mirrorSettings(configOf({ database: { username: 'ssvirt', [key]: inFile } }), environment).database;
      expect(await value(settings({}))).toEqual(fromFile);
      expect(await value(settings({ [variable]: inEnvironment }))).toEqual(fromEnvironment);
    },
  );

  test('SSVIRT_DATABASE_PASSWORD_FILE takes precedence over database.passwordFile', async () => {
    const write = folder();
    const [inFile, inEnvironment] = [write('a', 'from a\n'), write('b', 'from b')];
    const file = { passwordFile: inFile, password: 'ignored' };
    expect(await read({}, file).database.password()).toBe('from a');
    const environment = { SSVIRT_DATABASE_PASSWORD_FILE: inEnvironment };
    expect(await read({}, file, environment).database.password()).toBe('from b');
  });
});

describe('the section "database"', () => {
  test('the keys in the section database may be written in snake_case', async () => {
    const passwordFile = folder()('password', 's3cret');
    const settings = read({}, { max_connections: 3, password_file: passwordFile });
    expect(await settings.database.password()).toBe('s3cret');
    expect(() => read({}, { max_connections: 0 })).toThrow(
      'database.maxConnections is "0"; it must be a whole number from 1 to 10000',
    );
  });

  test('settings of the SSVirt API server in the config file are ignored', () => {
    const config = configOf({
      auth: { secret: 'x' },
      database: { username: 'ssvirt', log_queries: { slow: true }, maxIdle: [1] },
    });
    expect(mirrorSettings(config, {}).database.user).toBe('ssvirt');
  });

  test('without a password in the settings, no password is returned', async () => {
    expect(await read().database.password()).toBeUndefined();
  });
});

describe('the connection URL', () => {
  const single = {
    SSVIRT_DATABASE_HOST: 'single',
    SSVIRT_DATABASE_PORT: '1',
    SSVIRT_DATABASE_DATABASE: 'single',
    SSVIRT_DATABASE_PASSWORD: 'single',
    SSVIRT_DATABASE_SSLMODE: 'disable',
    SSVIRT_DATABASE_SSLROOTCERT: '/single',
  };

  test('DATABASE_URL takes precedence over the separate settings', async () => {
    const url = 'postgres://u%40ser:p%2Fw@db.example:6432/ss%20virt?sslmode=verify-full&sslrootcert=/ca.crt';
    const { database } = read({}, {}, { ...single, DATABASE_URL: url });
    expect(database).toMatchObject({
      host: 'db.example',
      port: 6432,
      user: 'u@ser',
      database: 'ss virt',
      sslMode: 'verify-full',
      caFile: '/ca.crt',
    });
    expect(await database.password()).toBe('p/w');
  });

  test('parts that DATABASE_URL lacks, except the port, come from the separate settings', async () => {
    const { database } = read({}, {}, { ...single, DATABASE_URL: 'postgresql://db.example' });
    expect(database).toMatchObject({
      host: 'db.example',
      port: 5432,
      user: 'ssvirt',
      database: 'single',
      sslMode: 'disable',
      caFile: '/single',
    });
    expect(await database.password()).toBe('single');
  });

  test('the connection URL may be set in the config file, and its host may be an IPv6 address', () => {
    expect(read({}, { url: 'postgres://[::1]:7/x' }).database).toMatchObject({ host: '::1', port: 7 });
  });
});

describe('password rotation', () => {
  test('the password in the config file is read again for each connection', async () => {
    const write = folder();
    const config = (password: string) =>
      write('config.yaml', stringify({ database: { username: 'ssvirt', password } }));
    const { database } = mirrorSettings(config('old'), {});
    expect(await database.password()).toBe('old');
    config('new');
    expect(await database.password()).toBe('new');
  });

  test('the password file is read again for each connection', async () => {
    const write = folder();
    const { database } = read({}, { passwordFile: write('password', 'old\n') });
    expect(await database.password()).toBe('old');
    write('password', 'new\n');
    expect(await database.password()).toBe('new');
  });

  test('the password in the URL of the config file is read again for each connection', async () => {
    const write = folder();
    const config = (password: string) =>
      write('config.yaml', stringify({ database: { url: `postgres://u:${password}@db/x` } }));
    const { database } = mirrorSettings(config('old'), {});
    expect(await database.password()).toBe('old');
    config('new');
    expect(await database.password()).toBe('new');
  });

  test('a password file that has disappeared is reported with its path', async () => {
    const path = folder()('password', 'old');
    const { database } = read({}, { passwordFile: path });
    rmSync(path);
    await expect(database.password()).rejects.toThrow(`the password file ${path} cannot be read`);
  });
});

describe('changes of the status mapping', () => {
  test('statusMapping can change individual values', () => {
    expect(read({ statusMapping: { Running: 'DEPLOYED', CrashLoopBackOff: 'FAILED' } }).mapping).toEqual({
      ...DEFAULT_MAPPING,
      Running: 'DEPLOYED',
      CrashLoopBackOff: 'FAILED',
    });
  });

  test('statusMapping can change the status that is written for deleted VMs', () => {
    expect(read({ statusMapping: { Deleted: 'GONE' } }).mapping.Deleted).toBe('GONE');
  });
});

describe('an invalid setting is rejected with an error that names the setting and the valid values', () => {
  test.each<[object, object, Record<string, string>, string]>([
    [{ enabled: 'maybe' }, {}, {}, 'controller.enabled is "maybe"; it must be one of true, false'],
    [{}, {}, { CONTROLLER_ENABLED: '1' }, 'CONTROLLER_ENABLED is "1"; it must be one of true, false'],
    [
      { maxConcurrentReconciles: 0 },
      {},
      {},
      'controller.maxConcurrentReconciles is "0"; it must be a whole number from 1 to 100',
    ],
    [
      {},
      {},
      { CONTROLLER_MAX_CONCURRENT: '2.5' },
      'CONTROLLER_MAX_CONCURRENT is "2.5"; it must be a whole number from 1 to 100',
    ],
    [
      {},
      {},
      { CONTROLLER_MAX_CONCURRENT: '0x10' },
      'CONTROLLER_MAX_CONCURRENT is "0x10"; it must be a whole number from 1 to 100',
    ],
    [
      {},
      {},
      { CONTROLLER_BASE_DELAY: '5' },
      'CONTROLLER_BASE_DELAY is "5"; it must be a time such as 500ms, 15s or 2m',
    ],
    [{ baseDelay: '0s' }, {}, {}, 'controller.baseDelay is "0s"; it must be a time such as 500ms, 15s or 2m'],
    [
      { maxDelay: 'long' },
      {},
      {},
      'controller.maxDelay is "long"; it must be a time such as 500ms, 15s or 2m',
    ],
    [
      { baseDelay: '1m' },
      {},
      { CONTROLLER_MAX_DELAY: '1s' },
      'CONTROLLER_MAX_DELAY is "1s"; it must be at least controller.baseDelay, which is 1m',
    ],
    [
      { resyncPeriod: '0s' },
      {},
      {},
      'controller.resyncPeriod is "0s"; it must be a time such as 500ms, 15s or 2m',
    ],
    [
      { leaseDuration: '1s' },
      {},
      {},
      'controller.leaseDuration is "1s"; it must be whole seconds, at least 2s',
    ],
    [
      { leaseDuration: '2500ms' },
      {},
      {},
      'controller.leaseDuration is "2500ms"; it must be whole seconds, at least 2s',
    ],
    [
      { settlingTime: '-1s' },
      {},
      {},
      'controller.settlingTime is "-1s"; it must be a time such as 500ms, 15s or 2m',
    ],
    [
      { enableLeaderElection: 'no' },
      {},
      {},
      'controller.enableLeaderElection is "no"; it must be one of true, false',
    ],
    [{ sharding: 'no' }, {}, {}, 'controller.sharding is "no"; it must be one of true, false'],
    [{ fence: 'none' }, {}, {}, 'controller.fence is "none"; it must be one of session, table'],
    [
      { enableLeaderElection: false },
      {},
      { CONTROLLER_FENCE: 'table' },
      'CONTROLLER_FENCE is "table", which needs controller.enableLeaderElection or sharding: without either, replicas would take the fence from each other',
    ],
    [{ statusEvents: true }, {}, {}, 'controller.statusEvents is "true"; it must be one of on, off'],
    [
      { logLevel: 'loud' },
      {},
      {},
      'controller.logLevel is "loud"; it must be one of debug, info, warn, error',
    ],
    [
      { metricsAddr: '8080' },
      {},
      {},
      'controller.metricsAddr is "8080"; it must be a port such as :8080, or an address with a port',
    ],
    [
      { metricsAddr: ':70000' },
      {},
      {},
      'controller.metricsAddr is ":70000"; it must be a port such as :8080, or an address with a port',
    ],
    [{ namespace: { a: 1 } }, {}, {}, 'controller.namespace in the config file must be a single value'],
    [{ statusMapping: [] }, {}, {}, 'must be a map from states to statuses'],
    [
      { statusMapping: { Flying: 'X' } },
      {},
      {},
      'is not a state of a VM; the states are Running, Migrating, Stopped',
    ],
    [{ statusMapping: { constructor: 'X' } }, {}, {}, 'controller.statusMapping.constructor in'],
    [{ statusMapping: { Running: '' } }, {}, {}, 'must be a text such as POWERED_ON'],
    [{ statusMapping: { Running: [1] } }, {}, {}, 'must be a text such as POWERED_ON'],
    [
      { statusMapping: { Stopped: 'DELETED' } },
      {},
      {},
      'is "DELETED", which is the status of VMs that do not exist; choose another text',
    ],
    [{ retries: 3 }, {}, {}, 'is not a setting; the settings are enabled, maxConcurrentReconciles'],
    [{}, { port: 0 }, {}, 'database.port is "0"; it must be a whole number from 1 to 65535'],
    [
      {},
      {},
      { SSVIRT_DATABASE_PORT: 'tcp://10.0.0.1:5432' },
      'SSVIRT_DATABASE_PORT is "tcp://10.0.0.1:5432"; it must be a whole number from 1 to 65535',
    ],
    [
      {},
      { sslmode: 'on' },
      {},
      'database.sslmode is "on"; it must be one of disable, allow, prefer, require, verify-ca, verify-full',
    ],
    [
      {},
      {},
      { SSVIRT_DATABASE_MAX_CONNECTIONS: 'many' },
      'SSVIRT_DATABASE_MAX_CONNECTIONS is "many"; it must be a whole number from 1 to 10000',
    ],
    [
      {},
      {},
      { DATABASE_URL: 'mysql://u:p@h/d' },
      'DATABASE_URL must be a URL such as postgres://user:password@host:5432/ssvirt',
    ],
    [{}, {}, { DATABASE_URL: 'postgres:///d' }, 'DATABASE_URL must be a URL such as'],
    [{}, { url: 'db.example' }, {}, 'database.url must be a URL such as'],
    [{}, {}, { DATABASE_URL: 'postgres://u:%zz@h/d' }, 'DATABASE_URL must be a URL such as'],
    [
      {},
      {},
      { DATABASE_URL: 'postgres://u:p@h/d?sslmode=on' },
      'sslmode of DATABASE_URL is "on"; it must be one of disable',
    ],
  ])(
    'the section controller %j with the section database %j and the environment %j is rejected',
    (controller, database, environment, message) => {
      const reading = () => read(controller, database, environment);
      expect(reading).toThrow(SettingsError);
      expect(reading).toThrow(message);
    },
  );

  test('a missing user name is rejected', () => {
    const config = configOf({});
    expect(() => mirrorSettings(config, {})).toThrow(
      `SSVIRT_DATABASE_USERNAME is not set; set it, or database.username in ${config}`,
    );
  });

  test('a disabled controller needs no user name, unless the command is verify', () => {
    const config = configOf({});
    const disabled = { CONTROLLER_ENABLED: 'false' };
    expect(mirrorSettings(config, disabled).isEnabled).toBe(false);
    expect(() => mirrorSettings(config, disabled, 'verify')).toThrow('SSVIRT_DATABASE_USERNAME is not set');
  });

  test.each([
    ['a list', '- a\n- b\n', 'must contain sections such as "database:" and "controller:"'],
    ['a text', 'hello', 'must contain sections such as'],
    ['a section that is a list', 'controller: [a]', '"controller:" in the config file must be a section'],
    ['a section that is a text', 'database: postgres', '"database:" in the config file must be a section'],
    ['invalid YAML', 'database: {', 'is not valid YAML'],
  ])('a config file with %s is rejected', (_, content, message) => {
    expect(() => mirrorSettings(folder()('config.yaml', content), USER)).toThrow(message);
  });

  test.each(['', '# only a comment\n', 'controller:\ndatabase:\n'])(
    'a config file without settings, "%s", is accepted',
    (content) => {
      expect(mirrorSettings(folder()('config.yaml', content), USER).workers).toBe(5);
    },
  );
});

describe('no message contains a secret', () => {
  const SECRET = 's3cret';
  test.each<[string, Record<string, string>]>([
    [`database:\n  password: "${SECRET}\n`, {}],
    [`database:\n  password: ${SECRET}\n  password: ${SECRET}\n`, {}],
    [`database:\n  password: ${SECRET}\n  port: x\n`, {}],
    [`database:\n  password: {a: ${SECRET}}\n`, {}],
    [`database:\n  url: postgres://u:${SECRET}@h:port/x\n`, {}],
    [`database:\n  url: {postgres: ${SECRET}}\n`, {}],
    ['', { DATABASE_URL: `postgres//u:${SECRET}@h` }],
    ['', { DATABASE_URL: `postgres://u:%zz${SECRET}@h/x` }],
    ['', { DATABASE_URL: `postgres://u:${SECRET}@h/x?sslmode=on` }],
    ['', { SSVIRT_DATABASE_PASSWORD: SECRET, SSVIRT_DATABASE_PORT: 'x' }],
  ])('the error for the config file %j and the environment %j contains no secret', (content, environment) => {
    const config = folder()('config.yaml', content);
    let message = '';
    try {
      mirrorSettings(config, { ...USER, ...environment });
    } catch (error) {
      expect(error).toBeInstanceOf(SettingsError);
      message = String(error);
    }
    expect(message).not.toBe('');
    expect(message).not.toContain(SECRET);
  });
});
