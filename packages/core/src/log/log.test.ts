import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { collectingLogger } from './collecting-logger.ts';
import { jsonLogger } from './json-logger.ts';
import { silentLogger } from './logger.ts';
import { textLine } from './text-line.ts';

describe('log lines', () => {
  test('a log line is one JSON object with level, time, message and fields, in this order', () => {
    let written = '';
    const write = (line: string) => {
      written += line;
    };
    const logger = jsonLogger({ clock: { now: () => Date.UTC(2026, 0, 2) }, write });
    logger.child({ controller: 'vm' }).info({ object: 'team/a', none: undefined }, 'first\nsecond');
    expect(written).toBe(
      '{"level":"info","time":"2026-01-02T00:00:00.000Z","msg":"first\\nsecond","controller":"vm","object":"team/a"}\n',
    );
  });

  test('a log line has unique field names, even if fields are named twice or named like level, time or msg', () => {
    let written = '';
    const write = (line: string) => {
      written += line;
    };
    const logger = jsonLogger({ clock: { now: () => 0 }, write }).child({ a: 1, level: 'x' });
    logger.warn({ a: 2, msg: 'y' }, 'z');
    expect(written.match(/"a":/g)).toHaveLength(1);
    expect(JSON.parse(written)).toMatchObject({ level: 'warn', msg: 'z', a: 2, level_: 'x', msg_: 'y' });
  });
});

test('a text line has the time of day, the level, the message and the fields on one line', () => {
  let written = '';
  const write = (line: string) => {
    written += line;
  };
  const logger = jsonLogger({ clock: { now: () => Date.UTC(2026, 0, 2, 3, 4, 5) }, write, format: textLine });
  logger.warn({ vm: 'team/a', error: 'timed out', count: 2, password: 's3cret' }, 'Failed\u001b[31m\nagain');
  expect(written).toBe(
    '03:04:05 WARN  Failed\\u001b[31m\\nagain  vm=team/a  error="timed out"  count=2  password=[redacted]\n',
  );
});

test('a changed log level applies to all existing and future child loggers', () => {
  const { logger, lines } = collectingLogger('info');
  const child = logger.child({ controller: 'vm' });
  child.debug({}, 'dropped');
  logger.level = 'debug';
  child.debug({}, 'logged');
  child.child({ deeper: true }).debug({}, 'logged by a grandchild');
  logger.level = 'error';
  child.warn({}, 'dropped');
  child.error({}, 'logged as an error');
  expect(lines.map(({ msg }) => msg)).toEqual(['logged', 'logged by a grandchild', 'logged as an error']);
});

test('an audit line has the level info and is written at every minimum level', () => {
  const { logger, lines } = collectingLogger('error');
  logger.child({ controller: 'vm' }).audit({ audit: 'delete', token: 's3cret' }, 'Deleting machine');
  expect(lines).toMatchObject([
    { level: 'info', msg: 'Deleting machine', controller: 'vm', audit: 'delete', token: '[redacted]' },
  ]);
});

describe('secrets', () => {
  test.for([
    'authorization',
    'Authorization',
    'token',
    'refresh_token',
    'accessToken',
    'password',
    'client-secret',
    'key',
    'tls.key',
    'privateKey',
  ])('the field %s is redacted at any depth', (name) => {
    const { logger, lines } = collectingLogger();
    logger.child({ [name]: 's3cret' }).info({ request: { headers: [{ [name]: 's3cret' }] } }, 'x');
    logger.info({ [name]: { inner: 's3cret' } }, 'x');
    expect(JSON.stringify(lines)).not.toContain('s3cret');
    expect(lines[0]?.[name]).toBe('[redacted]');
  });

  test('the content of a Secret is redacted, its name is not', () => {
    const { logger, lines } = collectingLogger();
    const secret = {
      kind: 'Secret',
      metadata: {
        name: 'x',
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"a":"s3cret"}}' },
      },
      data: { a: 's3cret' },
      stringData: { b: 's3cret' },
    };
    logger.info({ object: secret }, 'x');
    expect(JSON.stringify(lines)).not.toContain('s3cret');
    expect(lines[0]?.object).toMatchObject({ metadata: { name: 'x' } });
  });

  test('a field is not redacted if its name only resembles the name of a secret', () => {
    const { logger, lines } = collectingLogger();
    logger.info({ keys: 3, monkey: 'ape', tokens: ['a'], hasToken: true }, 'x');
    expect(lines[0]).toMatchObject({ keys: 3, monkey: 'ape', tokens: ['a'], hasToken: true });
  });
});

describe('values of any type can be logged', () => {
  test('an error is logged with its cause, and with its stack only if the error has no code', () => {
    const { logger, lines } = collectingLogger();
    const coded = Object.assign(new Error('no such VM'), { code: 'NOT_FOUND' });
    logger.error({ error: new TypeError('oops', { cause: coded }) }, 'x');
    expect(lines[0]?.error).toEqual({
      type: 'TypeError',
      message: 'oops',
      stack: expect.stringContaining('log.test.ts'),
      cause: { type: 'Error', message: 'no such VM', code: 'NOT_FOUND' },
    });
  });

  test('values that are cyclic, throw when read or have no JSON form can be logged', () => {
    const { logger, lines } = collectingLogger();
    const endless: Record<string, unknown> = {};
    endless.self = endless;
    const throwing = {
      get bad(): never {
        throw new Error('no');
      },
    };
    logger.info(
      {
        endless,
        throwing,
        big: 10n,
        nothing: Number.NaN,
        when: new Date(0),
        map: new Map([['token', 's3cret']]),
        set: new Set([1]),
        bytes: new Uint8Array(3),
        call: Symbol('s'),
      },
      'x',
    );
    expect(lines[0]).toMatchObject({
      throwing: '[unreadable]',
      big: '10',
      nothing: 'NaN',
      when: '1970-01-01T00:00:00.000Z',
      map: { token: '[redacted]' },
      set: [1],
      bytes: '[3 bytes]',
      call: 'Symbol(s)',
    });
  });
});

describe('no line is lost when the process exits right after logging to a slow reader', () => {
  test.for([
    ['in a blocking pipe', ''],
    ['in a pipe that a use of console has made non-blocking', "console.error('{}');"],
  ] as const)('no line is lost %s', async ([, first]) => {
    const module = join(import.meta.dirname, 'json-logger.ts');
    const program = `
      import { jsonLogger } from ${JSON.stringify(module)};
      ${first}
      const logger = jsonLogger({ clock: { now: () => 0 } });
      for (let i = 0; i < 5000; i++) logger.info({ i, filling: 'é'.repeat(100) }, 'line');
      process.exit(3);`;
    const node = '"$0" --disable-warning=ExperimentalWarning --input-type=module -e "$1"';
    const script = `${node} 2>&1 >/dev/null | (sleep 0.3; cat)`;
    const { stdout } = await promisify(execFile)('sh', ['-c', script, process.execPath, program], {
      maxBuffer: 1 << 24,
    });
    const seen = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).i)
      .filter((i) => i !== undefined);
    expect(seen).toHaveLength(5000);
    expect(seen.every((i, at) => i === at)).toBe(true);
  });
});

test('the process continues when the reader of its log has exited', async () => {
  const module = join(import.meta.dirname, 'json-logger.ts');
  const program = `
    import { jsonLogger } from ${JSON.stringify(module)};
    const logger = jsonLogger({ clock: { now: () => 0 } });
    for (let i = 0; i < 2000; i++) { logger.info({ filling: 'x'.repeat(100) }, 'line'); await new Promise(setImmediate); }
    console.log('alive');`;
  // The log goes to a pipe, and the reader of the pipe exits immediately. Standard output bypasses the pipe, so that it
  // can be read here.
  const script = `{ "$0" --disable-warning=ExperimentalWarning --input-type=module -e "$1" 2>&1 >&3 | true; } 3>&1`;
  const { stdout } = await promisify(execFile)('sh', ['-c', script, process.execPath, program]);
  expect(stdout).toBe('alive\n');
});

test('the child of the silent logger is the silent logger itself', () => {
  expect(silentLogger.child({ a: 1 })).toBe(silentLogger);
  silentLogger.error({}, 'dropped');
});
