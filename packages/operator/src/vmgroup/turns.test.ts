import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Turn, Turns } from './turns.ts';

/** Timers that go off when they are told to. */
class Patience {
  readonly #callbacks = new Set<() => void>();

  readonly after = (_ms: number, callback: () => void) => {
    this.#callbacks.add(callback);
    return { cancel: () => void this.#callbacks.delete(callback) };
  };

  end(): void {
    for (const callback of [...this.#callbacks]) {
      this.#callbacks.delete(callback);
      callback();
    }
  }
}

function start(most: number) {
  const patience = new Patience();
  const woken: string[] = [];
  const turns = new Turns({ world: patience, most, wake: (key) => woken.push(key) });
  return { turns, woken, patience };
}

describe('turns', () => {
  test('so many at a time; who is sent away is told when it is his turn', () => {
    const { turns, woken } = start(2);
    const [first, second] = [turns.take('a'), turns.take('a')];
    expect([first, second].every((turn) => turn !== undefined)).toBe(true);
    expect(turns.take('a')).toBe(undefined);
    expect(woken).toEqual([]);
    first?.end();
    first?.end(); // twice is once
    expect(woken).toEqual(['a']);
    expect(turns.take('a')).toBeDefined();
    expect(turns.take('a')).toBe(undefined);
  });

  test('who wants two hundred does not keep who wants two waiting for more than a round', () => {
    const { turns, woken } = start(3);
    const taken = [1, 2, 3].map(() => turns.take('many'));
    expect(turns.take('many')).toBe(undefined);
    expect(turns.take('few')).toBe(undefined);
    taken[0]?.end();
    expect(woken).toEqual(['many']);
    turns.take('many');
    expect(turns.take('many')).toBe(undefined);
    taken[1]?.end();
    expect(woken).toEqual(['many', 'few']);
    expect(turns.take('few')).toBeDefined();
  });

  test('a turn that nobody comes for goes to the next', () => {
    const { turns, woken, patience } = start(1);
    const only = turns.take('a');
    turns.take('b');
    turns.take('c');
    only?.end();
    patience.end();
    expect(woken).toEqual(['b', 'c']);
    expect(turns.take('c')).toBeDefined();
  });

  test('who leaves gives up his place, and what was kept for him', () => {
    const { turns, woken } = start(1);
    const only = turns.take('a');
    turns.take('b');
    turns.take('c');
    only?.end();
    turns.leave('b');
    expect(woken).toEqual(['b', 'c']);
  });

  test('what is under way already counts, though there may be more of it', () => {
    const { turns } = start(1);
    const [one, two] = [turns.resumed(), turns.resumed()];
    expect(turns.take('a')).toBe(undefined);
    one.end();
    expect(turns.take('a')).toBe(undefined);
    two.end();
    expect(turns.take('a')).toBeDefined();
  });

  test('whatever they do, there are never more, and nobody who waits is forgotten', () => {
    const keys = ['a', 'b', 'c', 'd'];
    const step = fc.record({
      key: fc.constantFrom(...keys),
      what: fc.constantFrom('take', 'end', 'leave', 'late'),
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3 }), fc.array(step, { maxLength: 60 }), (most, steps) => {
        const patience = new Patience();
        const held: Turn[] = [];
        const told = new Set<string>();
        const waiting = new Set<string>();
        const turns = new Turns({ world: patience, most, wake: (key) => told.add(key) });
        for (const { key, what } of steps) {
          if (what === 'take') {
            const turn = turns.take(key);
            if (turn === undefined) waiting.add(key);
            else held.push(turn);
            told.delete(key);
            if (turn !== undefined) waiting.delete(key);
          } else if (what === 'end') held.shift()?.end();
          else if (what === 'leave') {
            turns.leave(key);
            waiting.delete(key);
            told.delete(key);
          } else {
            const late = [...told];
            told.clear();
            patience.end(); // others are told
            for (const each of late) if (!told.has(each)) waiting.delete(each); // he was told, and did not come
          }
          expect(held.length).toBeLessThanOrEqual(most);
        }
        // When all is given back, each that waits is told in the end.
        for (let rounds = 0; rounds < 20; rounds++) {
          held.shift()?.end();
          for (const key of [...told]) {
            told.delete(key);
            const turn = turns.take(key);
            if (turn !== undefined) held.push(turn);
            waiting.delete(key);
          }
        }
        expect([...waiting]).toEqual([]);
      }),
    );
  });
});
