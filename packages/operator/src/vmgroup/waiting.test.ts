import { expect, test } from 'vitest';
import { waitingForSlot } from './waiting.ts';

const ready = (reason: string) => ({
  ...{ type: 'Ready', status: 'False' as const, reason, message: '1 of 2 machines exist' },
  lastTransitionTime: '2026-01-01T00:00:00Z',
});

test('a group on the way says that it waits, once', () => {
  const status = { lastMessage: '1 of 2 machines exist', conditions: [ready('Progressing')] };
  const waiting = waitingForSlot(status);
  expect(waiting.lastMessage).toBe('1 of 2 machines exist; waiting for a vCenter task slot');
  expect(waiting.conditions?.[0]?.message).toBe(waiting.lastMessage);
  expect(waitingForSlot(waiting)).toEqual(waiting);
});

test('a group with a failure keeps its message', () => {
  const status = { lastMessage: 'failed', conditions: [ready('NotFound')] };
  expect(waitingForSlot(status)).toBe(status);
});
