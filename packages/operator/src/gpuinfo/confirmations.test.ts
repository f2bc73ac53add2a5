import { describe, expect, test } from 'vitest';
import type { JobFacts } from './candidate.ts';
import { Confirmations, RECHECK_MS, type Unconfirmed } from './confirmations.ts';
import type { ReservationStore } from './ledger.ts';
import type { Request } from './request.ts';
import type { Reservation } from './reservation.ts';
import { facts, job, NOW, request } from './testing.ts';

const held = (fields: Partial<Reservation> = {}): Reservation => ({
  key: 'ml/r',
  generation: 1,
  node: 'n',
  pool: 'n',
  gpus: 1,
  from: NOW,
  ...fields,
});

/** An API server that has the given objects and jobs. Both are identified by the UID of the GPUInfo. */
function apiServer(objects: readonly string[], jobs: Readonly<Record<string, JobFacts>> = {}) {
  const asked: string[] = [];
  const store: Pick<ReservationStore, 'stateOf' | 'findJob'> = {
    stateOf: async (_, uid) => {
      asked.push(`object ${uid}`);
      return objects.includes(uid) ? 'Exists' : 'Gone';
    },
    findJob: async (_, uid) => {
      asked.push(`job ${uid}`);
      return jobs[uid];
    },
  };
  return { asked, store };
}

const none = facts([]);
const given = (
  reservations: Readonly<Record<string, Reservation>>,
  requests: readonly Request[],
  known = none,
): Unconfirmed => ({ reservations: new Map(Object.entries(reservations)), requests, facts: known });

describe('lookups at the API server', () => {
  test('an object that the cache lacks is looked up at most once per RECHECK_MS', async () => {
    const { asked, store } = apiServer(['late']);
    const state = given({ late: held(), gone: held(), cached: held() }, [request('cached')]);
    const confirmations = new Confirmations();
    expect(await confirmations.ask(state, store, NOW)).toBe(true);
    expect(await confirmations.ask(state, store, NOW + RECHECK_MS - 1)).toBe(false);
    expect(asked).toEqual(['object late', 'object gone']);
    expect([...confirmations.existing(state).keys()]).toEqual(['late', 'cached']);
    expect(await confirmations.ask(state, store, NOW + RECHECK_MS)).toBe(true);
  });

  test('an object that leaves the cache is looked up', async () => {
    const { asked, store } = apiServer([]);
    const confirmations = new Confirmations();
    expect(await confirmations.ask(given({ a: held() }, [request('a')]), store, NOW)).toBe(false);
    const state = given({ a: held() }, []);
    expect(await confirmations.ask(state, store, NOW)).toBe(true);
    expect(asked).toEqual(['object a']);
    expect(confirmations.existing(state).size).toBe(0);
  });

  test('a job is looked up if its reservation would end or could move according to the caches', async () => {
    const running = job('Active', ['n']);
    const { asked, store } = apiServer([], { late: running, over: running, unbound: running });
    const inUse = held({ inUse: true });
    const reservations = {
      late: inUse,
      gone: inUse,
      active: inUse,
      over: inUse,
      unbound: inUse,
      unused: held(),
      short: held(),
      repeated: held({ isRepeated: true }),
      ended: held({ inUse: true, ended: { at: NOW, reason: 'JobEnded' } }),
    };
    const jobs = new Map([
      ['active', running],
      ['unbound', job('Active')],
      ...['over', 'short', 'repeated'].map((uid) => [uid, job('Ended')] as const),
    ]);
    const requests = Object.keys(reservations).map((uid) => request(uid));
    const state = given(reservations, requests, { ...none, jobs });
    const confirmations = new Confirmations();
    expect(await confirmations.ask(state, store, NOW)).toBe(true);
    expect(asked).toEqual(['job late', 'job gone', 'job over', 'job unbound', 'job short']);
    expect([...confirmations.unobserved(state).keys()]).toEqual(['late', 'over', 'unbound']);
    const observed = given(reservations, requests, { ...none, jobs: new Map([['late', running]]) });
    expect([...confirmations.unobserved(observed).keys()]).not.toContain('late');
  });

  test('a job is looked up again when its cached state has changed', async () => {
    const { asked, store } = apiServer([], { a: job('Active') });
    const confirmations = new Confirmations();
    const state = (known?: JobFacts) =>
      given({ a: held({ inUse: true }) }, [request('a')], {
        ...none,
        jobs: new Map(known === undefined ? [] : [['a', known]]),
      });
    await confirmations.ask(state(job('Active')), store, NOW);
    expect(await confirmations.ask(state(job('Active')), store, NOW)).toBe(false);
    expect(await confirmations.ask(state(job('Ended')), store, NOW)).toBe(true);
    expect(await confirmations.ask(state(), store, NOW)).toBe(true);
    expect(asked).toHaveLength(3);
  });

  test('`settle` discards the result of a lookup that found no job, so the job is looked up again even within RECHECK_MS', async () => {
    const { asked, store } = apiServer([]);
    const state = given({ a: held({ inUse: true }) }, [request('a')]);
    const confirmations = new Confirmations();
    await confirmations.ask(state, store, NOW);
    confirmations.settle(state.reservations);
    await confirmations.ask(state, store, NOW);
    expect(asked).toEqual(['job a', 'job a']);
  });
});
