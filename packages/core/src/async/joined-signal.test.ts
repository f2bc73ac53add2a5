import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { JoinedSignal } from './joined-signal.ts';

test('a joined signal aborts with the reason of the first source that aborts', () => {
  const [a, b] = [new AbortController(), new AbortController()];
  using joined = new JoinedSignal(a.signal, b.signal);
  expect(joined.signal.aborted).toBe(false);
  b.abort('stopped');
  a.abort('late');
  expect(joined.signal.reason).toBe('stopped');
});

test('a joined signal over an aborted source is aborted from the start', () => {
  const live = new AbortController().signal;
  using joined = new JoinedSignal(live, AbortSignal.abort('before'));
  expect(joined.signal.reason).toBe('before');
  expect(getEventListeners(live, 'abort')).toEqual([]);
});

test('disposing a joined signal removes its listeners from the sources', () => {
  const [a, b] = [new AbortController(), new AbortController()];
  const joined = new JoinedSignal(a.signal, b.signal);
  expect(getEventListeners(a.signal, 'abort')).toHaveLength(1);
  joined[Symbol.dispose]();
  expect([a, b].flatMap(({ signal }) => getEventListeners(signal, 'abort'))).toEqual([]);
  a.abort();
  expect(joined.signal.aborted).toBe(false);
});
