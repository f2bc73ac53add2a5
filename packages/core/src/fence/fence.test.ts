import { expect, test } from 'vitest';
import { Fence, FenceClosedError } from './fence.ts';

test('after close, every call of assertOpen throws the reason of the first close', () => {
  const fence = new Fence();
  fence.assertOpen();
  expect(fence.isOpen).toBe(true);
  const reason = new Error('the operation was cancelled');
  fence.close(reason);
  fence.close(new Error('another reason'));
  expect(() => fence.assertOpen()).toThrow(reason);
  expect(() => fence.assertOpen()).toThrow(reason);
  expect([fence.isOpen, fence.signal.reason]).toEqual([false, reason]);
});

test('a fence that expired stays closed when the clock is set back', () => {
  let now = 0;
  const late = () => new Error('too late');
  const fence = new Fence({ holds: () => now < 10, error: late });
  const nested = fence.nested();
  now = 10;
  expect(fence.isOpen).toBe(false);
  expect(fence.signal.aborted).toBe(false); // reading isOpen has no side effect
  expect(() => nested.assertOpen()).toThrow('too late');
  expect([fence.signal.aborted, nested.signal.aborted]).toEqual([true, true]);
  now = 5;
  expect(() => fence.assertOpen()).toThrow('too late');
  expect(() => nested.assertOpen()).toThrow('too late');
});

test('closing the outer fence closes nested fences; closing a nested fence leaves the outer one open', () => {
  const outer = new Fence();
  const [one, other] = [outer.nested(), outer.nested()];
  one.close();
  expect(() => one.assertOpen()).toThrow(FenceClosedError);
  other.assertOpen();
  outer.assertOpen();
  const reason = new Error('the term has ended');
  outer.close(reason);
  expect(() => other.assertOpen()).toThrow(reason);
  expect(other.signal.reason).toBe(reason);
  expect(() => outer.nested().assertOpen()).toThrow(reason);
});
