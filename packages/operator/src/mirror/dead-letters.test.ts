import { VirtualClock } from '@vmwright/core/testing';
import { expect, test } from 'vitest';
import { DeadLetters } from './dead-letters.ts';

const LETTER = { vm: 'tenant/web', rowId: 'r-1', status: 'POWERED_ON', error: 'check constraint "c"' };

test('a row is listed as a dead letter after five failures, with the time of the first failure', () => {
  const clock = new VirtualClock(Date.parse('2026-11-16T10:00:00Z'));
  const letters = new DeadLetters(clock);
  const becameDead = [1, 2, 3, 4, 5, 6, 7].map(() => {
    const isDead = letters.failed('tenant/web', LETTER);
    clock.advance(1_000);
    return isDead;
  });
  expect(becameDead).toEqual([false, false, false, false, true, false, false]);
  expect(letters.list()).toEqual([{ ...LETTER, failures: 7, since: '2026-11-16T10:00:00.000Z' }]);
  expect(letters.size).toBe(1);
});

test('the list of dead letters shows the newest status and error of a row', () => {
  const letters = new DeadLetters(new VirtualClock());
  for (let failures = 0; failures < 5; failures++) letters.failed('tenant/web', LETTER);
  letters.failed('tenant/web', { ...LETTER, status: 'POWERED_OFF', error: 'another' });
  expect(letters.list()).toMatchObject([{ status: 'POWERED_OFF', error: 'another', failures: 6 }]);
});

test('a successful write of a row resets its failure count', () => {
  const letters = new DeadLetters(new VirtualClock());
  for (let failures = 0; failures < 4; failures++) letters.failed('tenant/web', LETTER);
  expect(letters.size).toBe(0);
  letters.succeeded('tenant/web');
  expect(letters.failed('tenant/web', LETTER)).toBe(false);
  for (let failures = 1; failures < 5; failures++) letters.failed('tenant/web', LETTER);
  expect(letters.size).toBe(1);
  letters.succeeded('tenant/web');
  expect(letters.list()).toEqual([]);
});

test('failures are counted per row, and `clear` resets the counts of all rows', () => {
  const letters = new DeadLetters(new VirtualClock());
  for (let failures = 0; failures < 5; failures++) letters.failed('tenant/web', LETTER);
  letters.failed('tenant/db', { ...LETTER, vm: 'tenant/db' });
  expect(letters.list().map(({ vm }) => vm)).toEqual(['tenant/web']);
  letters.clear();
  expect(letters.size).toBe(0);
});

test('at most 10000 failing rows are remembered', () => {
  const letters = new DeadLetters(new VirtualClock());
  for (let failures = 0; failures < 5; failures++)
    for (let at = 0; at < 10_005; at++) letters.failed(`tenant/vm-${at}`, LETTER);
  expect(letters.size).toBe(10_000);
});
