import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { JoinedSignal } from './joined-signal.ts';

test('it aborts with the first of its sources, and with the reason of that', () => {
  const [a, b] = [new AbortController(), new AbortController()];
  using joined = new JoinedSignal(a.signal, b.signal);
  expect(joined.signal.aborted).toBe(false);
  b.abort('stopped');
  a.abort('late');
  expect(joined.signal.reason).toBe('stopped');
});

test('it has aborted where a source has', () => {
  const live = new AbortController().signal;
  using joined = new JoinedSignal(live, AbortSignal.abort('before'));
  expect(joined.signal.reason).toBe('before');
  expect(getEventListeners(live, 'abort')).toEqual([]);
});

test('once disposed of, it leaves nothing on its sources and follows them no more', () => {
  const [a, b] = [new AbortController(), new AbortController()];
  const joined = new JoinedSignal(a.signal, b.signal);
  expect(getEventListeners(a.signal, 'abort')).toHaveLength(1);
  joined[Symbol.dispose]();
  expect([a, b].flatMap(({ signal }) => getEventListeners(signal, 'abort'))).toEqual([]);
  a.abort();
  expect(joined.signal.aborted).toBe(false);
});
