import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FairLimiter, type Permit } from './fair-limiter.ts';

/** Timers that fire when the test calls `fire`. */
class ManualTimers {
  readonly #callbacks = new Set<() => void>();

  readonly after = (_ms: number, callback: () => void) => {
    this.#callbacks.add(callback);
    return { cancel: () => void this.#callbacks.delete(callback) };
  };

  fire(): void {
    for (const callback of [...this.#callbacks]) {
      this.#callbacks.delete(callback);
      callback();
    }
  }
}

function start(limit: number) {
  const timers = new ManualTimers();
  const available: string[] = [];
  const limiter = new FairLimiter({ world: timers, limit, onAvailable: (key) => available.push(key) });
  return { limiter, available, timers };
}

describe('FairLimiter', () => {
  test('acquire returns undefined at the limit, and onAvailable is called when a permit is free', () => {
    const { limiter, available } = start(2);
    const [first, second] = [limiter.acquire('a'), limiter.acquire('a')];
    expect([first, second].every((permit) => permit !== undefined)).toBe(true);
    expect(limiter.acquire('a')).toBe(undefined);
    expect(available).toEqual([]);
    first?.release();
    first?.release(); // a second release of the same permit does nothing
    expect(available).toEqual(['a']);
    expect(limiter.acquire('a')).toBeDefined();
    expect(limiter.acquire('a')).toBe(undefined);
  });

  test('while a key waits for a permit, a key that already holds permits gets at most one more', () => {
    const { limiter, available } = start(3);
    const permits = [1, 2, 3].map(() => limiter.acquire('many'));
    expect(limiter.acquire('many')).toBe(undefined);
    expect(limiter.acquire('few')).toBe(undefined);
    permits[0]?.release();
    expect(available).toEqual(['many']);
    limiter.acquire('many');
    expect(limiter.acquire('many')).toBe(undefined);
    permits[1]?.release();
    expect(available).toEqual(['many', 'few']);
    expect(limiter.acquire('few')).toBeDefined();
  });

  test('a reserved permit that is not acquired in time goes to the next key', () => {
    const { limiter, available, timers } = start(1);
    const only = limiter.acquire('a');
    limiter.acquire('b');
    limiter.acquire('c');
    only?.release();
    timers.fire();
    expect(available).toEqual(['b', 'c']);
    expect(limiter.acquire('c')).toBeDefined();
  });

  test('cancel gives up the place of a key in the queue and the permit that is reserved for the key', () => {
    const { limiter, available } = start(1);
    const only = limiter.acquire('a');
    limiter.acquire('b');
    limiter.acquire('c');
    only?.release();
    limiter.cancel('b');
    expect(available).toEqual(['b', 'c']);
  });

  test('permits from adopt() count towards the limit and may exceed it', () => {
    const { limiter } = start(1);
    const [one, two] = [limiter.adopt(), limiter.adopt()];
    expect(limiter.acquire('a')).toBe(undefined);
    one.release();
    expect(limiter.acquire('a')).toBe(undefined);
    two.release();
    expect(limiter.acquire('a')).toBeDefined();
  });

  test('any sequence of calls stays within the limit and serves every waiting key', () => {
    const keys = ['a', 'b', 'c', 'd'];
    const step = fc.record({
      key: fc.constantFrom(...keys),
      call: fc.constantFrom('acquire', 'release', 'cancel', 'expire'),
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3 }), fc.array(step, { maxLength: 60 }), (limit, steps) => {
        const timers = new ManualTimers();
        const held: Permit[] = [];
        const available = new Set<string>();
        const waiting = new Set<string>();
        const limiter = new FairLimiter({ world: timers, limit, onAvailable: (key) => available.add(key) });
        for (const { key, call } of steps) {
          if (call === 'acquire') {
            const permit = limiter.acquire(key);
            if (permit === undefined) waiting.add(key);
            else held.push(permit);
            available.delete(key);
            if (permit !== undefined) waiting.delete(key);
          } else if (call === 'release') held.shift()?.release();
          else if (call === 'cancel') {
            limiter.cancel(key);
            waiting.delete(key);
            available.delete(key);
          } else {
            const late = [...available];
            available.clear();
            timers.fire(); // the reservations expire and go to other keys
            for (const each of late) if (!available.has(each)) waiting.delete(each); // the key did not acquire in time
          }
          expect(held.length).toBeLessThanOrEqual(limit);
        }
        // When all permits have been released, onAvailable must have been called with every waiting key.
        for (let rounds = 0; rounds < 20; rounds++) {
          held.shift()?.release();
          for (const key of [...available]) {
            available.delete(key);
            const permit = limiter.acquire(key);
            if (permit !== undefined) held.push(permit);
            waiting.delete(key);
          }
        }
        expect([...waiting]).toEqual([]);
      }),
    );
  });
});
