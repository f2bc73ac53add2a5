import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Choices } from './choices.ts';

const draw = (choices: Choices) => [
  choices.pick(10),
  choices.oneIn(3),
  choices.delay(),
  choices.fraction(),
  choices.one(['a', 'b', 'c']),
];

describe('Choices', () => {
  test('the same seed gives the same choices, and another seed gives different ones', () => {
    const draws = (seed: number) => Array.from({ length: 20 }, () => Choices.seeded(seed)).map(draw);
    expect(new Set(draws(7).map((drawn) => JSON.stringify(drawn))).size).toBe(1);
    expect(draw(Choices.seeded(7))).not.toEqual(draw(Choices.seeded(8)));
  });

  test('replaying a tape, which is a list of recorded choices, gives the same choices', () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const seeded = Choices.seeded(seed, true);
        const drawn = Array.from({ length: 5 }, () => draw(seeded));
        const replayed = Choices.replayed(seeded.tape);
        expect(Array.from({ length: 5 }, () => draw(replayed))).toEqual(drawn);
      }),
    );
  });

  test('after the end of a replayed tape, Choices returns no fault, the shortest delay and the first item', () => {
    expect(draw(Choices.replayed([]))).toEqual([0, false, 1, 0, 'a']);
  });

  test('a number on a tape wraps around if it is too large for its choice', () => {
    fc.assert(
      fc.property(fc.array(fc.nat()), fc.integer({ min: 1, max: 100 }), (tape, n) => {
        const choices = Choices.replayed(tape);
        for (const _ of tape) expect(choices.pick(n)).toBeLessThan(n);
      }),
    );
  });

  test('delays are mostly short and occasionally long', () => {
    const choices = Choices.seeded(1);
    const delays = Array.from({ length: 10_000 }, () => choices.delay());
    expect(delays.filter((ms) => ms <= 50).length).toBeGreaterThan(8_500);
    expect(delays.filter((ms) => ms > 1_000).length).toBeGreaterThan(500);
    expect(Math.max(...delays)).toBeGreaterThan(10_000);
  });
});
