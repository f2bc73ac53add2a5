import { apiError, collectingLogger } from '@vmwright/runtime';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EntryServer } from '../ledger/testing.ts';
import { Allocations, type StoredAllocation } from './allocations.ts';
import type { Facts } from './candidate.ts';
import { type ReservationStore, reservationsIn } from './ledger.ts';
import { HOUR_MS } from './maintenance.ts';
import { Requests } from './requests.ts';
import { parseReservation } from './reservation.ts';
import type { GPUInfo } from './resource.ts';
import { facts, gpuNode, job, NOW, pool } from './testing.ts';
import { UnwatchedLog } from './unwatched.ts';

const now = () => NOW;

class Server extends EntryServer {
  /** UIDs of the GPUInfos that have a job. */
  readonly jobs = new Set<string>();
  readonly reservations: ReservationStore = {
    ...this.store,
    findJob: async (_, uid) => (this.jobs.has(uid) ? job('Active', ['n']) : undefined),
  };
}

/** A replica of the operator with its own cache of requests and its own facts. */
class Replica {
  readonly requests = new Requests();
  readonly enqueued: string[] = [];
  facts: Facts;
  readonly allocations: Allocations;

  constructor(known: Facts, namespaces?: readonly string[]) {
    this.facts = known;
    this.allocations = new Allocations({
      requests: this.requests,
      facts: () => this.facts,
      horizonMs: 8_760 * HOUR_MS,
      namespaces,
      onStored: (keys) => this.enqueued.push(...keys),
    });
  }

  see(...seen: readonly (string | { readonly name: string; readonly status: GPUInfo['status'] })[]): void {
    for (const each of seen) {
      const { name, status } = typeof each === 'string' ? { name: each, status: undefined } : each;
      const object = { ...info(name), ...(status && { status }) };
      this.requests.update({ type: 'added', key: `ml/${name}`, object });
    }
  }

  forget(name: string): void {
    this.requests.update({ type: 'removed', key: `ml/${name}`, object: info(name) });
  }
}

function info(name: string): GPUInfo {
  return {
    metadata: {
      namespace: 'ml',
      name,
      uid: name,
      generation: 1,
      creationTimestamp: `2026-01-01T00:00:0${name.length}Z`,
    },
    spec: { desAccTime: 10, gpuRequired: true },
  };
}

const reserved = { phase: 'Reserved', observedGeneration: 1 } as const;
const one = facts([gpuNode('n')], [pool('n', 1)]);
const nodeOf = ({ allocation }: StoredAllocation, uid: string) =>
  allocation.verdicts.get(uid)?.reservation?.node;

describe('allocations', () => {
  test('an allocation is stored before it is returned, and is computed once for concurrent reconciles', async () => {
    const server = new Server();
    const replica = new Replica(one);
    replica.see('a', 'bb');
    const results = await Promise.all(
      [1, 2, 3].map(() => replica.allocations.current(server.reservations, now)),
    );
    expect(new Set(results).size).toBe(1);
    expect(server).toMatchObject({ reads: 1, writes: 1 });
    expect([...reservationsIn(server.entries)]).toMatchObject([['a', { node: 'n', gpus: 1 }]]);
    expect(replica.enqueued, 'the object with the reservation, and the object that waits').toEqual([
      'ml/a',
      'ml/bb',
    ]);
    await replica.allocations.current(server.reservations, now);
    expect(server, 'nothing has changed').toMatchObject({ reads: 1, writes: 1 });
  });

  test('an allocation is computed again when facts, requests or the time change', async () => {
    const server = new Server();
    const replica = new Replica(one);
    replica.see('a');
    const current = (at = NOW) => replica.allocations.current(server.reservations, () => at);
    const first = await current();
    replica.facts = { ...facts([]), version: 2 };
    expect(nodeOf(await current(), 'a')).toBeUndefined();
    replica.facts = { ...one, version: 3 };
    replica.see('bb');
    expect(nodeOf(await current(), 'a')).toBe('n');
    const ended = await current(NOW + 10 * HOUR_MS);
    expect(ended.allocation.verdicts.get('a')?.reservation?.ended?.reason).toBe('TimePassed');
    expect(nodeOf(ended, 'bb')).toBe('n');
    expect(first.allocation).not.toBe(ended.allocation);
  });

  test('an allocation drops a reservation only if the API server confirms that its object is gone', async () => {
    const server = new Server();
    const old = new Replica(one);
    old.see('a');
    await old.allocations.current(server.reservations, now);
    server.objects.add('a');
    const late = new Replica(one); // the cache of this replica lacks the object `a`
    late.see('bb');
    expect(nodeOf(await late.allocations.current(server.reservations, now), 'bb')).toBeUndefined();
    server.objects.delete('a');
    late.see('ccc');
    const later = () => NOW + 30_000;
    expect(nodeOf(await late.allocations.current(server.reservations, later), 'bb')).toBe('n');
    expect([...server.entries.values.keys()]).toEqual(['bb']);
  });

  test('an allocation ends a reservation only if the API server confirms that its job is gone', async () => {
    const server = new Server();
    const replica = new Replica({ ...one, jobs: new Map([['a', job('Active', ['n'])]]) });
    replica.see('a');
    await replica.allocations.current(server.reservations, now);
    server.jobs.add('a');
    replica.facts = { ...one, version: 2 }; // a late cache: it lacks the job
    const ended = async (at = NOW) => {
      const { allocation } = await replica.allocations.current(server.reservations, () => at);
      return allocation.verdicts.get('a')?.reservation?.ended?.reason;
    };
    expect(await ended()).toBeUndefined();
    replica.facts = { ...one, version: 3, jobs: new Map([['a', job('Ended')]]) }; // a late cache: it lacks new pods
    expect(await ended()).toBeUndefined();
    server.jobs.clear();
    expect(await ended(NOW + 30_000), 'the API server is asked again after 30 s').toBe('JobEnded');
  });

  test('an allocation looks up missing objects and jobs concurrently', async () => {
    const server = new Server();
    const four = facts([gpuNode('n')], [pool('n', 4)]);
    const known = { ...four, jobs: new Map(['a', 'bb', 'ccc'].map((uid) => [uid, job('Active', ['n'])])) };
    const replica = new Replica(known);
    replica.see('a', 'bb', 'ccc');
    await replica.allocations.current(server.reservations, now);
    let [running, most] = [0, 0];
    const slow: ReservationStore = {
      ...server.reservations,
      findJob: async () => {
        running += 1;
        most = Math.max(most, running);
        for (let turn = 0; turn < 50; turn++) await Promise.resolve();
        running -= 1;
        return job('Active', ['n']);
      },
    };
    replica.facts = { ...four, version: 2 };
    await Promise.all([1, 2].map(() => replica.allocations.current(slow, now)));
    expect(most).toBe(3);
  });

  test('an allocation drops the reservation of an object that was deleted before the cache had it', async () => {
    const server = new Server();
    const old = new Replica(one);
    old.see('a');
    await old.allocations.current(server.reservations, now);
    server.objects.add('a');
    const late = new Replica(one);
    await late.allocations.sweep(server.reservations, now);
    expect([...server.entries.values.keys()]).toEqual(['a']);
    server.objects.delete('a');
    await late.allocations.sweep(server.reservations, () => NOW + 60_000);
    expect([...server.entries.values.keys()]).toEqual([]);
  });

  test('an allocation drops a reservation in an unwatched namespace only if the object is gone', async () => {
    const server = new Server();
    const four = facts([gpuNode('n')], [pool('n', 4)]);
    const old = new Replica(four);
    old.see('exists', 'secret', 'gone');
    await old.allocations.current(server.reservations, now);
    server.objects.add('exists');
    server.unreadable.add('secret');
    const moved = new Replica(four, ['other']);
    await moved.allocations.sweep(server.reservations, now);
    expect([...server.entries.values.keys()].toSorted()).toEqual(['exists', 'secret']);
    expect(moved.allocations.latest?.unwatched).toMatchObject([
      { uid: 'exists', object: 'Exists', reservation: { key: 'ml/exists' } },
      { uid: 'secret', object: 'Unreadable', reservation: { key: 'ml/secret' } },
    ]);
    const { logger, lines } = collectingLogger();
    const log = new UnwatchedLog();
    for (let sweep = 0; sweep < 2; sweep++) log.report(moved.allocations.latest?.unwatched ?? [], logger);
    expect(lines.map(({ gpuinfo, object }) => [gpuinfo, object])).toEqual([
      ['ml/exists', 'Exists'],
      ['ml/secret', 'Unreadable'],
    ]);
    // A reservation of an unreadable object still ends when its time has passed.
    await moved.allocations.sweep(server.reservations, () => NOW + 10 * HOUR_MS);
    expect(moved.allocations.latest?.unwatched).toEqual([]);
  });

  test('if a person deletes a stored reservation, the reservation is restored from the status of its GPUInfo', async () => {
    const server = new Server();
    const two = facts(
      [gpuNode('m', { cpuUsage: 1 }), gpuNode('n', { cpuUsage: 2 })],
      [pool('m', 1), pool('n', 1)],
    );
    const replica = new Replica(two);
    replica.see('a', 'bb');
    await replica.allocations.current(server.reservations, now);
    const before = server.entries.values;
    const until = new Date(NOW + 10 * HOUR_MS).toISOString();
    for (const [name, node] of [['a', 'm'] as const, ['bb', 'n'] as const])
      replica.see({ name, status: { ...reserved, suitableNodeName: node, reservedUntil: until } });
    server.entries = { resourceVersion: 'edited', values: new Map() };
    replica.see('0'); // the oldest request, which waits for a node
    await replica.allocations.sweep(server.reservations, () => NOW + HOUR_MS);
    expect(new Map(server.entries.values)).toEqual(before);
  });

  test('if a person deletes the stored reservation of a request, the request is enqueued, even if no node is free', async () => {
    const server = new Server();
    const replica = new Replica(one);
    replica.see('a');
    await replica.allocations.current(server.reservations, now);
    const taken = facts([gpuNode('n')], [pool('n', 1, { '': 1 })], {
      jobs: new Map([['a', job('Active', ['n'])]]),
    });
    replica.facts = { ...taken, version: 2 };
    expect(nodeOf(await replica.allocations.current(server.reservations, now), 'a')).toBe('n');
    server.entries = { resourceVersion: 'edited', values: new Map() };
    replica.enqueued.length = 0;
    await replica.allocations.sweep(server.reservations, now);
    expect([replica.enqueued, server.entries.values.size]).toEqual([['ml/a'], 0]);
  });

  test('if a replica crashes before it writes any status, the allocation of the next replica keeps the stored reservations', async () => {
    const server = new Server();
    const two = facts(
      [gpuNode('m', { cpuUsage: 1 }), gpuNode('n', { cpuUsage: 2 })],
      [pool('m', 1), pool('n', 1)],
    );
    const crashed = new Replica(two);
    crashed.see('a');
    expect(nodeOf(await crashed.allocations.current(server.reservations, now), 'a')).toBe('m');
    const next = new Replica({
      ...two,
      candidates: two.candidates.map((each) => ({ ...each, cpuUsage: -each.cpuUsage })),
    });
    next.see('a');
    expect(nodeOf(await next.allocations.current(server.reservations, now), 'a'), 'n is better now').toBe(
      'm',
    );
  });

  test('an allocation fails if its write fails, and the next allocation reads the stored reservations again', async () => {
    const server = new Server();
    const replica = new Replica(one);
    replica.see('a');
    const lost: ReservationStore = {
      ...server.reservations,
      write: async (entries, changes) => {
        await server.reservations.write(entries, changes);
        throw apiError('no answer', { status: 500 });
      },
    };
    await expect(replica.allocations.current(lost, now)).rejects.toThrow('no answer');
    expect(nodeOf(await replica.allocations.current(server.reservations, now), 'a')).toBe('n');
    expect(server.writes).toBe(1);
  });

  test('an allocation ignores stored reservations that people made invalid, and replaces them', async () => {
    const server = new Server();
    server.entries = {
      resourceVersion: '1',
      values: new Map([
        ['a', '{"node":'],
        ['x', '{}'],
      ]),
    };
    const replica = new Replica(one);
    replica.see('a');
    await replica.allocations.current(server.reservations, now);
    expect([...server.entries.values].map(([uid, text]) => [uid, parseReservation(text)?.node])).toEqual([
      ['a', 'n'],
    ]);
  });

  test('three replicas never store more reservations than GPUs, in any order of their operations', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const action = fc.record({
      replica: fc.nat(2),
      name: fc.constantFrom(...names),
      type: fc.constantFrom('current', 'current', 'see', 'forget', 'restart', 'facts'),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { maxLength: 60 }),
        fc.infiniteStream(fc.nat(6)),
        async (actions, turns) => {
          const known = facts([gpuNode('m'), gpuNode('n')], [pool('m', 1), pool('n', 1)]);
          const server = new Server(() => turns.next().value ?? 0);
          for (const name of names) server.objects.add(name);
          const replicas = [0, 1, 2].map(() => new Replica(known));
          await Promise.all(
            actions.map(async ({ replica: index, name, type }) => {
              const replica = replicas[index];
              if (replica === undefined) return;
              if (type === 'see') replica.see(name);
              else if (type === 'forget') replica.forget(name);
              else if (type === 'restart') replica.allocations.reset();
              else if (type === 'facts') replica.facts = { ...known, version: replica.facts.version + 1 };
              else {
                const { allocation } = await replica.allocations.current(server.reservations, now);
                const used = [...allocation.reservations.values()].map(({ pool: id }) => id);
                expect(new Set(used).size).toBe(used.length);
              }
            }),
          );
          expect(server.most).toBeLessThanOrEqual(2);
        },
      ),
      { numRuns: 300 },
    );
  });
});
