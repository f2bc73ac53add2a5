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

/** A server, a clock, and candidates that reach the one by the other at once. */
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
  /** Of the last term. */
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

  /** @param endsWithSignal else when `finish` or `fail` says so */
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

describe('a leader', () => {
  test('keeps the lease while its work winds up, and releases it then', async () => {
    using scene = new TestEnv();
    const first = scene.candidate('first').run(false);
    await scene.pass(100);
    const second = scene.candidate('second').run();
    first.stop.abort(new Error('enough'));
    expect(first.signal?.reason).toEqual(new Error('enough'));
    await scene.pass(3 * LEASE_MS);
    expect([first.leads, second.leads]).toEqual([true, false]);
    first.finish();
    await first.ended;
    expect([first.leads, scene.holder]).toEqual([false, '']);
    expect(scene.server.lease?.spec).toMatchObject({ leaseDurationSeconds: 1, leaseTransitions: 0 });
    await scene.pass(2_500);
    expect(second.leads).toBe(true);
    expect(scene.server.lease?.spec).toMatchObject({ leaseDurationSeconds: 15, leaseTransitions: 1 });
    expect(first.transitions).toEqual(['lease false', 'lease true', 'lease false']);
  });

  test('stops in time when calls neither succeed nor fail, not even when given up', async () => {
    using scene = new TestEnv();
    let hangs = false;
    const never = new Promise<never>(() => undefined);
    const open = scene.client();
    const client = scene.client({
      get: (...args) => (hangs ? never : open.get(...args)),
      mergePatch: (...args) => (hangs ? never : open.mergePatch(...args)),
    });
    const candidate = scene.candidate('first', { client }).run();
    await scene.pass(5_000);
    candidate.election.fence.assertOpen();
    hangs = true;
    await scene.pass(RENEW_MS);
    expect(() => candidate.election.fence.assertOpen()).toThrow(NotLeadingError);
    expect(candidate.signal?.reason).toBeInstanceOf(LeadershipLostError);
    hangs = false;
    await scene.pass(LEASE_MS);
    expect(candidate.leads).toBe(true);
    expect(candidate.transitions).toEqual(['lease false', 'lease true', 'lease false', 'lease true']);
  });

  test('the fence of a term that was lost stays closed in the next term of the same process', async () => {
    using scene = new TestEnv();
    let fails = false;
    const open = scene.client();
    const client = scene.client({
      get: (...args) => (fails ? Promise.reject(new Error('away')) : open.get(...args)),
      mergePatch: (...args) => (fails ? Promise.reject(new Error('away')) : open.mergePatch(...args)),
    });
    const candidate = scene.candidate('first', { client }).run();
    const before = candidate.election.fence;
    expect(() => before.assertOpen()).toThrow(NotLeadingError);
    await scene.pass(5_000);
    const first = candidate.election.fence;
    const operation = first.nested();
    operation.assertOpen();
    fails = true;
    await scene.pass(RENEW_MS);
    expect(operation.signal.reason).toBeInstanceOf(LeadershipLostError);
    fails = false;
    await scene.pass(LEASE_MS);
    expect(candidate.leads).toBe(true);
    for (const old of [before, first, operation]) expect(() => old.assertOpen()).toThrow(NotLeadingError);
    const second = candidate.election.fence;
    second.assertOpen();
    candidate.stop.abort(new Error('enough'));
    await candidate.ended;
    expect(second.signal.reason).toBeInstanceOf(NotLeadingError);
    expect(() => second.assertOpen()).toThrow(NotLeadingError);
  });

  test('is none as soon as it sees that another has the lease', async () => {
    using scene = new TestEnv();
    const candidate = scene.candidate('first').run();
    await scene.pass(100);
    scene.server.patch({ holderIdentity: 'somebody' }, undefined);
    await scene.pass(2_500);
    expect(candidate.leads).toBe(false);
    expect(String(candidate.signal?.reason)).toContain('somebody has written over it');
    expect(scene.holder).toBe('somebody');
  });

  test('is seen to renew even if its wall clock stands still', async () => {
    using scene = new TestEnv();
    const world = { ...scene.world, now: () => 1_700_000_000_000 };
    const first = scene.candidate('first', { world }).run();
    await scene.pass(100);
    const second = scene.candidate('second').run();
    await scene.pass(3 * LEASE_MS);
    expect([first.leads, second.leads]).toEqual([true, false]);
  });

  test('survives the deletion of its lease, since those who knew it wait', async () => {
    using scene = new TestEnv();
    const first = scene.candidate('first').run();
    await scene.pass(1_000);
    const second = scene.candidate('second').run();
    await scene.pass(1_950); // both come every 2 s, and the second is next
    scene.server.lease = undefined;
    await scene.pass(3 * LEASE_MS);
    expect([first.leads, second.leads]).toEqual([true, false]);
    expect(scene.holder).toBe(first.election.identity);
    expect(first.transitions).toEqual(['lease false', 'lease true']);
  });

  test('ends with what its work throws, and leaves the lease to run out: something may still be under way', async () => {
    using scene = new TestEnv();
    const candidate = scene.candidate('first').run(false);
    await scene.pass(100);
    candidate.fail(new Error('broken'));
    await expect(candidate.ended).rejects.toThrow('broken');
    expect(scene.holder).toBe(candidate.election.identity);
  });
});

describe('a candidate', () => {
  test('takes a lease that nobody holds at once', async () => {
    using scene = new TestEnv();
    scene.server.create({});
    const candidate = scene.candidate('first').run();
    await scene.pass(0);
    expect(candidate.leads).toBe(true);
  });

  test('waits as long as the holder has said, from when it saw the record, whatever times are in it', async () => {
    using scene = new TestEnv();
    const renewTime = '1999-12-31T23:59:59.000000Z';
    scene.server.create({
      holderIdentity: 'other',
      leaseDurationSeconds: 40,
      renewTime,
      leaseTransitions: 7,
    });
    await scene.pass(100_000);
    const candidate = scene.candidate('first').run();
    await scene.pass(39_999);
    expect(candidate.leads).toBe(false);
    await scene.pass(1);
    expect(candidate.leads).toBe(true);
    expect(scene.server.lease?.spec).toMatchObject({ leaseDurationSeconds: 15, leaseTransitions: 8 });
  });

  test('whose answer got lost finds that it has the lease, and leads', async () => {
    using scene = new TestEnv();
    const open = scene.client();
    let lost = 0;
    const client = scene.client({
      create: async (...args) => {
        await open.create(...args);
        lost += 1;
        throw new ConnectionError('reset');
      },
    });
    const candidate = scene.candidate('first', { client }).run();
    await scene.pass(0);
    expect([candidate.leads, scene.holder]).toEqual([false, candidate.election.identity]);
    await scene.pass(2_500);
    expect([candidate.leads, lost]).toEqual([true, 1]);
    expect(candidate.failures).toEqual([new ConnectionError('reset')]);
    expect(scene.server.lease?.spec?.leaseTransitions).toBe(0);
  });

  test('asked to stop while it takes the lease leaves none behind', async () => {
    using scene = new TestEnv();
    const open = scene.client();
    const client = scene.client({
      create: async (...args) => {
        candidate.stop.abort();
        return await open.create(...args);
      },
    });
    const candidate = scene.candidate('first', { client }).run();
    await candidate.ended;
    expect(scene.server.lease).toBeDefined();
    expect(scene.holder).toBe('');
    expect(candidate.signal).toBeUndefined();
  });

  test('is not taken for another of the same name', async () => {
    using scene = new TestEnv();
    const candidates = [scene.candidate('same').run(), scene.candidate('same').run()];
    await scene.pass(3 * LEASE_MS);
    expect(candidates.filter(({ leads }) => leads)).toHaveLength(1);
  });

  test('is refused times that cannot work', () => {
    using scene = new TestEnv();
    const wrong = [{ leaseMs: 1_500 }, { renewMs: 15_000 }, { retryMs: 6_000 }, { retryMs: 0 }];
    for (const times of wrong) expect(() => scene.candidate('first', times)).toThrow(ElectionOptionsError);
  });
});
