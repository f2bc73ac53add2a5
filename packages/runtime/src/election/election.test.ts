import { describe, expect, test } from 'vitest';
import { LeaseServer, Timeline } from '../../test/election-model.ts';
import { ConnectionError } from '../client/errors.ts';
import { ElectionOptionsError, LeadershipLostError, NotLeadingError } from './errors.ts';
import { LeaderElection } from './leader-election.ts';
import type { LeaseClient } from './lease-lock.ts';
import type { LeaderElectionOptions } from './options.ts';

const LEASE_MS = 15_000;
const RENEW_MS = 10_000;

let ids = 0;

/** A lease server, a virtual clock, and candidates that reach the server without delay. */
class TestEnv implements Disposable {
  readonly timeline = new Timeline();
  readonly server = new LeaseServer();
  readonly world: LeaderElectionOptions['world'] = {
    now: () => 1_700_000_000_000 + this.timeline.now,
    monotonic: () => this.timeline.now,
    after: (ms, callback) => {
      let cancelled = false;
      this.timeline.at(this.timeline.now + ms, () => cancelled || callback());
      return {
        cancel: () => {
          cancelled = true;
        },
      };
    },
    random: () => 0.5,
    uuid: () => String(++ids),
  };
  readonly #candidates: Candidate[] = [];

  client(changes: Partial<LeaseClient> = {}): LeaseClient {
    const { server } = this;
    return {
      get: async () => server.get(),
      create: async (_kind, { spec }) => server.create(spec),
      mergePatch: async (_kind, _ref, patch: { spec?: object; metadata?: { resourceVersion?: string } }) =>
        server.patch(patch.spec ?? {}, patch.metadata?.resourceVersion),
      ...changes,
    };
  }

  candidate(identity: string, options: Partial<LeaderElectionOptions> = {}): Candidate {
    const { world } = this;
    const lease = { namespace: 'test', name: 'lease' };
    const candidate = new Candidate({ world, client: this.client(), lease, identity, ...options });
    this.#candidates.push(candidate);
    return candidate;
  }

  pass(ms: number): Promise<void> {
    return this.timeline.run(this.timeline.now + ms, () => undefined);
  }

  get holder(): string {
    return this.server.lease?.spec?.holderIdentity ?? '';
  }

  [Symbol.dispose](): void {
    for (const { stop } of this.#candidates) stop.abort();
  }
}

class Candidate {
  readonly stop = new AbortController();
  readonly election: LeaderElection;
  readonly transitions: string[] = [];
  readonly failures: unknown[] = [];
  /** Signal of the last leadership term. */
  signal: AbortSignal | undefined;
  #work = Promise.withResolvers<void>();
  ended: Promise<void> | undefined;

  constructor(options: LeaderElectionOptions) {
    this.election = new LeaderElection({
      observer: {
        leading: (is, name) => this.transitions.push(`${name} ${is}`),
        failed: (error) => this.failures.push(error),
      },
      ...options,
    });
  }

  /** @param endsWithSignal whether the leader's work ends when its signal aborts; if not, `finish` or `fail` end it */
  run(endsWithSignal = true): this {
    this.ended = this.election.run(this.stop.signal, (leading) => {
      this.signal = leading;
      this.#work = Promise.withResolvers();
      if (endsWithSignal)
        leading.addEventListener('abort', () => this.#work.reject(leading.reason), { once: true });
      return this.#work.promise;
    });
    return this;
  }

  finish(): void {
    this.#work.resolve();
  }

  fail(error: Error): void {
    this.#work.reject(error);
  }

  get leads(): boolean {
    return this.election.isLeading();
  }
}

describe('leaders', () => {
  test('a leader renews the lease during a graceful shutdown and releases it afterwards', async () => {
    using env = new TestEnv();
    const first = env.candidate('first').run(false);
    await env.pass(100);
    const second = env.candidate('second').run();
    first.stop.abort(new Error('stop'));
    expect(first.signal?.reason).toEqual(new Error('stop'));
    await env.pass(3 * LEASE_MS);
    expect([first.leads, second.leads]).toEqual([true, false]);
    first.finish();
    await first.ended;
    expect([first.leads, env.holder]).toEqual([false, '']);
    expect(env.server.lease?.spec).toMatchObject({ leaseDurationSeconds: 1, leaseTransitions: 0 });
    await env.pass(2_500);
    expect(second.leads).toBe(true);
    expect(env.server.lease?.spec).toMatchObject({ leaseDurationSeconds: 15, leaseTransitions: 1 });
    expect(first.transitions).toEqual(['lease false', 'lease true', 'lease false']);
  });

  test('a leader stops at the renew deadline even if API calls hang and ignore their signal', async () => {
    using env = new TestEnv();
    let hangs = false;
    const never = new Promise<never>(() => undefined);
    const open = env.client();
    const client = env.client({
      get: (...args) => (hangs ? never : open.get(...args)),
      mergePatch: (...args) => (hangs ? never : open.mergePatch(...args)),
    });
    const candidate = env.candidate('first', { client }).run();
    await env.pass(5_000);
    candidate.election.fence.assertOpen();
    hangs = true;
    await env.pass(RENEW_MS);
    expect(() => candidate.election.fence.assertOpen()).toThrow(NotLeadingError);
    expect(candidate.signal?.reason).toBeInstanceOf(LeadershipLostError);
    hangs = false;
    await env.pass(LEASE_MS);
    expect(candidate.leads).toBe(true);
    expect(candidate.transitions).toEqual(['lease false', 'lease true', 'lease false', 'lease true']);
  });

  test('the fence of a lost leadership term still rejects operations when the same process leads again', async () => {
    using env = new TestEnv();
    let fails = false;
    const open = env.client();
    const client = env.client({
      get: (...args) => (fails ? Promise.reject(new Error('unavailable')) : open.get(...args)),
      mergePatch: (...args) => (fails ? Promise.reject(new Error('unavailable')) : open.mergePatch(...args)),
    });
    const candidate = env.candidate('first', { client }).run();
    const before = candidate.election.fence;
    expect(() => before.assertOpen()).toThrow(NotLeadingError);
    await env.pass(5_000);
    const first = candidate.election.fence;
    const operation = first.nested();
    operation.assertOpen();
    fails = true;
    await env.pass(RENEW_MS);
    expect(operation.signal.reason).toBeInstanceOf(LeadershipLostError);
    fails = false;
    await env.pass(LEASE_MS);
    expect(candidate.leads).toBe(true);
    for (const old of [before, first, operation]) expect(() => old.assertOpen()).toThrow(NotLeadingError);
    const second = candidate.election.fence;
    second.assertOpen();
    candidate.stop.abort(new Error('stop'));
    await candidate.ended;
    expect(second.signal.reason).toBeInstanceOf(NotLeadingError);
    expect(() => second.assertOpen()).toThrow(NotLeadingError);
  });

  test('a leader stops leading when it reads another holder in the lease', async () => {
    using env = new TestEnv();
    const candidate = env.candidate('first').run();
    await env.pass(100);
    env.server.patch({ holderIdentity: 'other' }, undefined);
    await env.pass(2_500);
    expect(candidate.leads).toBe(false);
    expect(String(candidate.signal?.reason)).toContain('other has overwritten the lease');
    expect(env.holder).toBe('other');
  });

  test('each renewal changes the lease even if the wall clock of the leader stands still', async () => {
    using env = new TestEnv();
    const world = { ...env.world, now: () => 1_700_000_000_000 };
    const first = env.candidate('first', { world }).run();
    await env.pass(100);
    const second = env.candidate('second').run();
    await env.pass(3 * LEASE_MS);
    expect([first.leads, second.leads]).toEqual([true, false]);
  });

  test('a leader creates its deleted lease again and continues to lead', async () => {
    using env = new TestEnv();
    const first = env.candidate('first').run();
    await env.pass(1_000);
    const second = env.candidate('second').run();
    // Each candidate accesses the lease every 2 s. After this time, the next access is a read by the second candidate.
    await env.pass(1_950);
    env.server.lease = undefined;
    await env.pass(3 * LEASE_MS);
    expect([first.leads, second.leads]).toEqual([true, false]);
    expect(env.holder).toBe(first.election.identity);
    expect(first.transitions).toEqual(['lease false', 'lease true']);
  });

  test('when onLeading fails, run rejects with the same error and does not release the lease', async () => {
    using env = new TestEnv();
    const candidate = env.candidate('first').run(false);
    await env.pass(100);
    candidate.fail(new Error('broken'));
    await expect(candidate.ended).rejects.toThrow('broken');
    expect(env.holder).toBe(candidate.election.identity);
  });
});

describe('candidates', () => {
  test('a candidate acquires a free lease immediately', async () => {
    using env = new TestEnv();
    env.server.create({});
    const candidate = env.candidate('first').run();
    await env.pass(0);
    expect(candidate.leads).toBe(true);
  });

  test('a candidate waits for the lease duration from its own first read of the Lease, whatever renewTime the Lease has', async () => {
    using env = new TestEnv();
    const renewTime = '1999-12-31T23:59:59.000000Z';
    env.server.create({
      holderIdentity: 'other',
      leaseDurationSeconds: 40,
      renewTime,
      leaseTransitions: 7,
    });
    await env.pass(100_000);
    const candidate = env.candidate('first').run();
    await env.pass(39_999);
    expect(candidate.leads).toBe(false);
    await env.pass(1);
    expect(candidate.leads).toBe(true);
    expect(env.server.lease?.spec).toMatchObject({ leaseDurationSeconds: 15, leaseTransitions: 8 });
  });

  test('a candidate becomes the leader even if the response to its create request is lost', async () => {
    using env = new TestEnv();
    const open = env.client();
    let lost = 0;
    const client = env.client({
      create: async (...args) => {
        await open.create(...args);
        lost += 1;
        throw new ConnectionError('reset');
      },
    });
    const candidate = env.candidate('first', { client }).run();
    await env.pass(0);
    expect([candidate.leads, env.holder]).toEqual([false, candidate.election.identity]);
    await env.pass(2_500);
    expect([candidate.leads, lost]).toEqual([true, 1]);
    expect(candidate.failures).toEqual([new ConnectionError('reset')]);
    expect(env.server.lease?.spec?.leaseTransitions).toBe(0);
  });

  test('a candidate that is stopped while it acquires the lease releases the lease', async () => {
    using env = new TestEnv();
    const open = env.client();
    const client = env.client({
      create: async (...args) => {
        candidate.stop.abort();
        return await open.create(...args);
      },
    });
    const candidate = env.candidate('first', { client }).run();
    await candidate.ended;
    expect(env.server.lease).toBeDefined();
    expect(env.holder).toBe('');
    expect(candidate.signal).toBeUndefined();
  });

  test('a candidate does not share leadership with another candidate of the same name', async () => {
    using env = new TestEnv();
    const candidates = [env.candidate('same').run(), env.candidate('same').run()];
    await env.pass(3 * LEASE_MS);
    expect(candidates.filter(({ leads }) => leads)).toHaveLength(1);
  });

  test('a candidate rejects invalid durations', () => {
    using env = new TestEnv();
    const wrong = [{ leaseMs: 1_500 }, { renewMs: 15_000 }, { retryMs: 6_000 }, { retryMs: 0 }];
    for (const times of wrong) expect(() => env.candidate('first', times)).toThrow(ElectionOptionsError);
  });
});
