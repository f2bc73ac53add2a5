import { collectingLogger } from '@vmwright/core';
import { VirtualClock } from '@vmwright/core/testing';
import { nodeWorld, type World } from '@vmwright/runtime';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Database, DatabaseError, type Session } from './database.ts';
import { DatabaseLink } from './database-link.ts';

const BACKOFF = { baseMs: 1_000, maxMs: 300_000 };
const CHECK_MS = 5_000;
const REFUSED = new DatabaseError('connect ECONNREFUSED', 'ECONNREFUSED', 'session');
const TERMINATED = new DatabaseError('terminating connection', '57P01', 'session');

/** Lets the callbacks of all settled promises run. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}

/** Behaviour of the fake database. */
interface Fake {
  open: () => Promise<void>;
  prepare: (session: Session) => Promise<void>;
  check: () => Promise<void>;
}

const isDown = () => Promise.reject(REFUSED);

/** Starts a link to a fake database with sessions that do nothing. A test can change `fake` at any time. */
function start(overrides: Partial<Fake> = {}) {
  const clock = new VirtualClock();
  const world: World = {
    ...nodeWorld,
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, callback) => clock.after(ms, callback),
    random: () => 0.5,
  };
  const works = async () => undefined;
  const fake: Fake = { open: works, prepare: works, check: works, ...overrides };
  const openedAt: number[] = [];
  const closed = new Set<Session>();
  const sessions: Session[] = [];
  const checks: Session[] = [];
  const database: Database = {
    open: async () => {
      openedAt.push(clock.monotonic());
      await fake.open();
      const session: Session = {
        acquire: async () => undefined,
        release: async () => undefined,
        async *rows() {},
        find: async () => [],
        check: () => {
          checks.push(session);
          return fake.check();
        },
        write: async () => ({ written: [], skipped: [] }),
        [Symbol.asyncDispose]: async () => void closed.add(session),
      };
      sessions.push(session);
      return session;
    },
  };
  const { logger, lines } = collectingLogger();
  const failures: string[] = [];
  const link = new DatabaseLink({
    world,
    log: logger,
    database,
    backoff: BACKOFF,
    prepare: (session) => fake.prepare(session),
    onFailure: ({ code }) => failures.push(code),
  });
  const stop = new AbortController();
  const running = link.run(stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  /** Advances the time in steps, and lets the link react after each step. */
  const advance = async (ms: number, stepMs = 500) => {
    await settle();
    for (let passed = 0; passed < ms; passed += stepMs) {
      clock.advance(Math.min(stepMs, ms - passed));
      await settle();
    }
  };
  const messages = () => lines.filter(({ level }) => level !== 'debug').map(({ msg }) => msg);
  const never = new AbortController().signal;
  return {
    clock,
    link,
    fake,
    sessions,
    closed,
    checks,
    openedAt,
    failures,
    lines,
    messages,
    advance,
    never,
    stop,
    running,
  };
}

const DOWN = 'Database is unavailable; changes are kept and written after the reconnect';
const UP = 'Database is available again';

describe('opening', () => {
  test('callers that wait for a session get it when `prepare` has succeeded', async () => {
    const { link, sessions, never, messages } = start();
    expect([link.isConnected, link.current]).toEqual([false, undefined]);
    const session = await link.session(never);
    expect(session).toBe(sessions[0]);
    expect([link.isConnected, link.current]).toEqual([true, session]);
    expect(messages()).toEqual([]);
  });

  test('callers do not get a session before `prepare` has succeeded', async () => {
    const { link, fake, sessions, advance, never } = start();
    const prepared = Promise.withResolvers<void>();
    fake.prepare = () => prepared.promise;
    let given: Session | undefined;
    const waiting = link.session(never).then((session) => (given = session));
    await advance(60_000);
    expect([sessions.length, given, link.isConnected]).toEqual([1, undefined, false]);
    prepared.resolve();
    expect(await waiting).toBe(sessions[0]);
  });

  test('a call that waits for a session is rejected when its signal aborts', async () => {
    const { link } = start({ open: isDown });
    const waiting = new AbortController();
    const session = link.session(waiting.signal);
    waiting.abort(new Error('the term has ended'));
    await expect(session).rejects.toThrow('the term has ended');
  });
});

describe('outages', () => {
  test('during an outage, opening a session is retried with back-off from the base delay to the maximum delay', async () => {
    const { openedAt, advance, failures } = start({ open: isDown });
    await advance(1_600_000);
    const gaps = openedAt.slice(1).map((at, index) => (at - (openedAt[index] ?? 0)) / 1_000);
    expect(gaps).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    expect(failures).toHaveLength(openedAt.length);
  });

  test('an outage is logged once when it begins and once when it ends', async () => {
    const { link, fake, messages, lines, advance, never } = start({ open: isDown });
    await advance(100_000);
    expect(messages()).toEqual([DOWN]);
    expect(lines[0]).toMatchObject({ level: 'warn', code: 'ECONNREFUSED', error: 'connect ECONNREFUSED' });
    fake.open = async () => undefined;
    await advance(100_000);
    await link.session(never);
    expect(messages()).toEqual([DOWN, UP]);
  });

  test('if a session fails after it has passed a periodic check, the failure is a new outage with its own log and back-off', async () => {
    const { link, fake, openedAt, messages, advance, never } = start({ open: isDown });
    await advance(60_000);
    fake.open = async () => undefined;
    await advance(100_000);
    const opened = openedAt.length;
    link.failed(await link.session(never), TERMINATED);
    await advance(1_500);
    expect(openedAt.length).toBe(opened + 1);
    await advance(10_000);
    expect(messages()).toEqual([DOWN, UP, DOWN, UP]);
  });

  test('if each session fails before its first periodic check, all failures belong to one outage', async () => {
    // If the database is read-only, the table can be read, but each batch fails.
    const { link, sessions, messages, failures, advance } = start();
    const readOnly = new DatabaseError('cannot execute UPDATE', '25006', 'session');
    const writable = new AbortController();
    const failing = (async () => {
      for (;;) link.failed(await link.session(writable.signal), readOnly);
    })();
    await advance(120_000);
    expect(sessions.length).toBe(7); // after 0, 1, 3, 7, 15, 31 and 63 s
    expect(failures).toHaveLength(7);
    expect(messages()).toEqual([DOWN]);
    writable.abort(new Error('writable again'));
    await expect(failing).rejects.toThrow('writable again');
    await advance(120_000);
    expect(messages()).toEqual([DOWN, UP]);
  });
});

describe('failed sessions', () => {
  test('a session that fails is closed and replaced, and waiting callers get the new session', async () => {
    const { link, sessions, closed, failures, advance, never } = start();
    const first = await link.session(never);
    link.failed(first, TERMINATED);
    expect([link.isConnected, link.current]).toEqual([false, undefined]);
    const waiting = link.session(never);
    await advance(2_000);
    expect(await waiting).toBe(sessions[1]);
    expect([closed.has(first), sessions.length, failures]).toEqual([true, 2, ['57P01']]);
  });

  test('a session that fails is replaced once, however many calls report the failure', async () => {
    const { link, sessions, failures, advance, never } = start();
    const first = await link.session(never);
    for (let call = 0; call < 5; call++) link.failed(first, TERMINATED);
    await advance(2_000);
    link.failed(first, TERMINATED); // a call on the old session fails late
    await advance(2_000);
    expect([sessions.length, failures.length, link.current === sessions[1]]).toEqual([2, 1, true]);
  });

  test('a session that fails is detected by the periodic check, even if nothing is written', async () => {
    const { link, fake, sessions, closed, failures, advance, never } = start();
    const first = await link.session(never);
    await advance(CHECK_MS * 3);
    expect(sessions).toHaveLength(1);
    fake.check = () => Promise.reject(new DatabaseError('taken over', 'FENCE_LOST', 'fence'));
    await advance(CHECK_MS);
    fake.check = async () => undefined;
    await advance(2_000);
    expect([closed.has(first), failures, link.current]).toEqual([true, ['FENCE_LOST'], sessions[1]]);
  });

  test('a session that fails is not checked any more', async () => {
    const { link, sessions, checks, advance, never } = start();
    link.failed(await link.session(never), TERMINATED);
    await advance(CHECK_MS * 4);
    expect(new Set(checks)).toEqual(new Set([sessions[1]]));
  });

  test('a session that fails is replaced, even if a periodic check of it never returns', async () => {
    const { link, fake, sessions, closed, advance, never } = start();
    const first = await link.session(never);
    fake.check = () => new Promise(() => undefined);
    await advance(CHECK_MS);
    link.failed(first, TERMINATED);
    await advance(2_000);
    expect([closed.has(first), link.current]).toEqual([true, sessions[1]]);
  });

  test('a session failure that does not come from the database has the code UNKNOWN', async () => {
    const { link, fake, failures, advance, never } = start();
    await link.session(never);
    fake.check = () => Promise.reject(new TypeError('a bug'));
    await advance(CHECK_MS);
    expect(failures).toEqual(['UNKNOWN']);
  });
});

describe('sessions for which `prepare` fails', () => {
  test('a session for which `prepare` fails is closed, and the next one is opened after a delay', async () => {
    const { link, fake, sessions, closed, failures, advance, messages } = start();
    fake.prepare = () => Promise.reject(new Error('the cluster cannot be listed'));
    await advance(2_500);
    expect([sessions.length, closed.size, failures]).toEqual([2, 2, ['UNKNOWN', 'UNKNOWN']]);
    expect([link.isConnected, messages()]).toEqual([
      false,
      ['Preparing the mirror for a new database session failed, retrying'],
    ]);
    fake.prepare = async () => undefined;
    await advance(20_000);
    expect([link.current, closed.size]).toEqual([sessions[2], 2]);
  });
});

describe('stopping the link', () => {
  test('stopping the link closes the session and counts no failure', async () => {
    const { link, sessions, closed, failures, clock, stop, running, never, messages } = start();
    const session = await link.session(never);
    stop.abort(new Error('SIGTERM'));
    await running;
    expect([closed.has(session), link.isConnected, sessions.length]).toEqual([true, false, 1]);
    expect([failures, messages(), clock.timers]).toEqual([[], [], 0]);
  });

  test('stopping the link during a back-off ends the wait immediately', async () => {
    const { advance, stop, running, clock } = start({ open: isDown });
    await advance(300_000);
    stop.abort(new Error('SIGTERM'));
    await running;
    expect(clock.timers).toBe(0);
  });
});
