import { expect, test } from 'vitest';
import { LeadershipLostError } from './errors.ts';
import { momentOf, Term } from './term.ts';

/** A clock with timers that never fire, like late timers right after a pause of the process. */
class LateClock {
  time = 1_000;
  wall = 5_000_000;

  monotonic(): number {
    return this.time;
  }

  now(): number {
    return this.wall;
  }

  after(): { cancel(): void } {
    return { cancel: () => undefined };
  }

  pass(ms: number): void {
    this.time += ms;
    this.wall += ms;
  }
}

function begin() {
  const clock = new LateClock();
  return {
    clock,
    term: new Term({ clock, lease: 'test/lease', since: momentOf(clock), renewMs: 10_000 }),
  };
}

test('a term ends by the clock even if its timer is late', () => {
  const { clock, term } = begin();
  clock.pass(9_999);
  expect(term.holds).toBe(true);
  clock.pass(1);
  expect([term.holds, term.leadershipLost.aborted]).toEqual([false, false]);
  term.check();
  expect(term.leadershipLost.reason).toBeInstanceOf(LeadershipLostError);
});

test('a term lasts renewMs from the start of its last renewal', () => {
  const { clock, term } = begin();
  clock.pass(4_000);
  const since = momentOf(clock);
  clock.pass(5_000);
  term.extend(since);
  clock.pass(4_999);
  expect(term.holds).toBe(true);
  clock.pass(1);
  expect(term.holds).toBe(false);
});

test('once the fence has detected that its term is over, the term stays over when the wall clock is set back', () => {
  const { clock, term } = begin();
  clock.wall += 20_000;
  expect(() => term.fence.assertOpen()).toThrow('has ended');
  clock.wall -= 20_000;
  expect([term.holds, term.leadershipLost.aborted]).toEqual([false, true]);
  term.extend(momentOf(clock));
  expect(term.holds).toBe(false);
});

test('a term within another term is lost when the outer term is lost, with the same error', () => {
  const { clock, term: outer } = begin();
  const options = { clock, lease: 'test/inner', since: momentOf(clock), renewMs: 10_000 };
  const inner = new Term({ ...options, within: outer.fence });
  outer.lose('the lease was deleted');
  expect([inner.holds, inner.fence.isOpen]).toEqual([false, false]);
  expect(inner.leadershipLost.reason).toBe(outer.leadershipLost.reason);
  const late = new Term({ ...options, within: outer.fence });
  expect([late.holds, late.leadershipLost.aborted]).toEqual([false, true]);
});

test('a late response to a renewal does not revive a term that has ended', () => {
  const { clock, term } = begin();
  clock.pass(9_000);
  const since = momentOf(clock);
  clock.pass(2_000);
  term.extend(since);
  expect([term.holds, term.leadershipLost.aborted]).toEqual([false, true]);
});

test('a term ends while the machine sleeps, and is not extended when the wall clock is set back', () => {
  const slept = begin();
  slept.clock.wall += 10_000;
  expect(slept.term.holds).toBe(false);
  const setBack = begin();
  setBack.clock.pass(10_000);
  setBack.clock.wall -= 3_600_000;
  expect(setBack.term.holds).toBe(false);
});
