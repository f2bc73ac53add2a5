import { VirtualClock } from '@vmwright/core/testing';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LOW, NORMAL, WorkQueue } from './work-queue.ts';

/**
 * Reference model of the queue: a simple list of all keys that is searched for every operation. The real queue must
 * behave in the same way.
 */
class ReferenceQueue {
  time = 0;
  #order = 0;
  #entries: {
    key: string;
    state: 'waiting' | 'ready' | 'processing';
    priority: number;
    at: number;
    order: number;
    requeue?: { priority: number; at: number };
  }[] = [];
  #failing = new Map<string, { failures: number; retryAt: number }>();

  advance(ms: number): void {
    this.time += ms;
    const due = this.#entries.filter((entry) => entry.state === 'waiting' && entry.at <= this.time);
    for (const entry of due.sort((a, b) => a.at - b.at || a.order - b.order)) this.#ready(entry);
  }

  add(key: string, priority: number, at: number): void {
    const entry = this.#entries.find((each) => each.key === key);
    if (entry === undefined) {
      const added = { key, state: 'waiting' as const, priority, at, order: this.#order++ };
      this.#entries.push(added);
      if (at <= this.time) this.#ready(added);
    } else if (entry.state === 'processing') {
      const { requeue = { priority, at } } = entry;
      entry.requeue = { priority: Math.max(requeue.priority, priority), at: Math.min(requeue.at, at) };
    } else if (entry.state === 'waiting') {
      entry.priority = Math.max(entry.priority, priority);
      entry.at = Math.min(entry.at, at);
      if (entry.at <= this.time) this.#ready(entry);
    } else if (at <= this.time && priority > entry.priority) {
      entry.priority = priority;
      entry.order = this.#order++;
    }
  }

  retry(key: string, priority: number): void {
    const failing = this.#failing.get(key) ?? { failures: 0, retryAt: this.time };
    if (this.time >= failing.retryAt) {
      failing.retryAt = this.time + Math.min(5 * 2 ** failing.failures, 1_000_000);
      failing.failures += 1;
    }
    this.#failing.set(key, failing);
    this.add(key, priority, failing.retryAt);
  }

  forget(key: string): void {
    this.#failing.delete(key);
  }

  take(): { key: string; priority: number } | undefined {
    const ready = this.#entries.filter(({ state }) => state === 'ready');
    const entry = ready.sort((a, b) => b.priority - a.priority || a.order - b.order)[0];
    if (entry === undefined) return undefined;
    entry.state = 'processing';
    return { key: entry.key, priority: entry.priority };
  }

  done(key: string): void {
    const entry = this.#entries.find((each) => each.key === key);
    this.#entries = this.#entries.filter((each) => each !== entry);
    if (entry?.requeue !== undefined) this.add(key, entry.requeue.priority, entry.requeue.at);
  }

  get processing(): string[] {
    return this.#entries.filter(({ state }) => state === 'processing').map(({ key }) => key);
  }

  get depth(): number {
    return this.#entries.filter(({ state }) => state === 'ready').length;
  }

  #ready(entry: { state: string; order: number }): void {
    entry.state = 'ready';
    entry.order = this.#order++;
  }
}

const key = fc.constantFrom('a', 'b', 'c', 'd');
const priority = fc.constantFrom(LOW, NORMAL, 10);
const delay = fc.constantFrom(0, 0, 1, 5, 20, 100);
const step = fc.oneof(
  fc.record({ do: fc.constant('add' as const), key, priority, delay }),
  fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1, 4, 5, 10, 50, 1000) }),
  fc.record({ do: fc.constant('take' as const) }),
  fc.record({
    do: fc.constant('done' as const),
    which: fc.nat(3),
    outcome: fc.constantFrom('ok', 'failed', 'forgotten'),
  }),
);

test('the queue behaves like the reference model under random operations', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const clock = new VirtualClock();
      const queue = new WorkQueue({ clock });
      const reference = new ReferenceQueue();
      reference.time = clock.monotonic();
      for (const each of steps) {
        switch (each.do) {
          case 'add':
            queue.add(each.key, { priority: each.priority, afterMs: each.delay });
            reference.add(each.key, each.priority, reference.time + each.delay);
            break;
          case 'advance':
            clock.advance(each.ms);
            reference.advance(each.ms);
            break;
          case 'take': {
            const item = queue.tryTake();
            expect(item && { key: item.key, priority: item.priority }).toEqual(reference.take());
            break;
          }
          case 'done': {
            const { processing } = reference;
            const finished = processing[each.which % processing.length];
            if (finished === undefined) break;
            if (each.outcome === 'failed') {
              queue.retry(finished);
              reference.retry(finished, NORMAL);
            } else if (each.outcome === 'forgotten') {
              queue.forget(finished);
              reference.forget(finished);
            }
            queue.done(finished);
            reference.done(finished);
          }
        }
        expect(queue.depth).toBe(reference.depth);
      }
    }),
    { numRuns: 3_000 },
  );
});

describe('work queue', () => {
  const start = () => {
    const clock = new VirtualClock();
    return { clock, queue: new WorkQueue({ clock }) };
  };

  test('the queue serves waiting workers in FIFO order', async () => {
    const { queue } = start();
    const [first, second] = [queue.take(), queue.take()];
    queue.add('a');
    queue.add('b');
    expect([(await first)?.key, (await second)?.key]).toEqual(['a', 'b']);
  });

  test('the queue returns a changed key before the low-priority keys of the initial list', () => {
    const { queue } = start();
    for (let i = 0; i < 10_000; i++) queue.add(`old-${i}`, { priority: LOW });
    queue.add('new');
    expect(queue.tryTake()?.key).toBe('new');
    queue.add('old-5000');
    expect(queue.tryTake()?.key).toBe('old-5000');
  });

  test('the queue does not increase the back-off of a key that fails before its scheduled retry', () => {
    const { clock, queue } = start();
    const fail = () => {
      queue.tryTake();
      queue.retry('a');
      queue.done('a');
    };
    queue.add('a');
    fail(); // retry in 5 ms
    for (let i = 0; i < 20; i++) {
      queue.add('a'); // an unrelated event makes the key ready immediately
      fail();
    }
    expect(queue.failures('a')).toBe(1);
    clock.advance(5);
    fail(); // retry in 10 ms
    clock.advance(9);
    expect(queue.depth).toBe(0);
    clock.advance(1);
    expect(queue.depth).toBe(1);
  });

  test('a closed queue neither returns nor accepts keys, and close waits for keys in progress', async () => {
    const { clock, queue } = start();
    queue.add('a');
    queue.add('b');
    queue.add('later', { afterMs: 10 });
    expect(queue.tryTake()?.key).toBe('a');
    const waiting = queue.tryTake() && queue.take();
    let closed = false;
    const closing = queue.close().then(() => {
      closed = true;
    });
    expect(await waiting).toBeUndefined();
    queue.add('c');
    clock.advance(100);
    expect(await queue.take()).toBeUndefined();
    queue.done('a');
    await Promise.resolve();
    expect(closed).toBe(false);
    queue.done('b');
    await closing;

    queue.open();
    expect(queue.tryTake()).toBeUndefined(); // closing dropped the queued keys
    queue.add('c');
    expect(queue.tryTake()?.key).toBe('c');
  });

  test('the queue rejects `done` for a key that is not being processed', () => {
    const { queue } = start();
    queue.add('a');
    expect(() => queue.done('a')).toThrow('a is not being processed');
  });
});
