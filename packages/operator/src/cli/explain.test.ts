import type { Event, KubeObject } from '@vmwright/runtime';
import { expect, test } from 'vitest';
import { type Evidence, explain } from './explain.ts';
import { leaderOf } from './leader.ts';

const NOW = Date.parse('2026-01-01T01:00:00Z');
const LEADER = { holder: 'pod', renewedAt: NOW, isExpired: false };

const object = (status: object, metadata: object = {}): KubeObject =>
  Object.assign(
    { metadata: { namespace: 'ns', name: 'a', generation: 1, ...metadata } },
    { status: { observedGeneration: 1, ...status } },
  );

const condition = (type: string, status: string, reason = 'R', message = 'm') => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});

const event = (reason: string, eventTime: string, type: Event['type'] = 'Warning'): Event => ({
  metadata: { name: reason },
  reason,
  eventTime,
  type,
  note: 'n',
  action: '',
  reportingController: '',
  reportingInstance: '',
  regarding: { apiVersion: '', kind: '', name: '' },
});

const why = (evidence: Partial<Evidence> & Pick<Evidence, 'object'>) =>
  explain({ kind: 'VM', leader: LEADER, events: [], dependencies: [], ...evidence }, NOW);

test('a ready object is not blocked, even if a condition reports a problem', () => {
  const conditions = [condition('Ready', 'True'), condition('RestartRequired', 'True')];
  expect(
    why({ object: object({ conditions }), events: [event('Old', '2026-01-01T00:00:00Z')] }),
  ).toMatchObject({
    isBlocked: false,
    retry: 'Nothing blocks the object.',
    events: [],
  });
});

test('the explanation of a stalled object says that the operator does not retry', () => {
  const conditions = [condition('Ready', 'False', 'NameTaken'), condition('Stalled', 'True', 'NameTaken')];
  const { blockers, retry } = why({ object: object({ conditions }) });
  expect(blockers).toEqual([{ reason: 'NameTaken', message: 'm' }]);
  expect(retry).toBe('The operator does not try again until the object changes or the cause is removed.');
});

test('the explanation of a failed image names the time of the next attempt', () => {
  const failed = {
    phase: 'RetryableFailure',
    failureCount: 2,
    lastFailureTime: '2026-01-01T00:58:00Z',
    conditions: [condition('Ready', 'False', 'ImportFailed')],
  };
  expect(why({ kind: 'VMDiskImage', object: object(failed) }).retry).toBe(
    'The operator tries again at 2026-01-01T01:07:00.000Z (in 7m).',
  );
});

test('a missing leader is reported as the blocker', () => {
  const lease = {
    metadata: { name: 'vmwright' },
    spec: { holderIdentity: 'pod', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:50:00.000000Z' },
  };
  const leader = leaderOf(lease, NOW);
  expect(leader.isExpired).toBe(true);
  expect(leaderOf(lease, Date.parse('2026-01-01T00:50:10Z')).isExpired).toBe(false);
  expect(why({ object: object({}), leader }).blockers[0]).toMatchObject({
    reason: 'NoLeader',
    message: expect.stringContaining('last renewed 10m ago'),
  });
});

test('the explanation says if the object is not processed yet or is being deleted', () => {
  expect(why({ object: object({}, { generation: 2 }) }).blockers).toMatchObject([{ reason: 'NotObserved' }]);
  const deleting = { deletionTimestamp: '2026-01-01T00:58:00Z', finalizers: ['vmwright.dev/vm', 'x/y'] };
  expect(why({ object: object({}, deleting) }).blockers).toEqual([
    {
      reason: 'Deleting',
      message:
        'The deletion of the object was requested 2m ago; the object stays until the operator confirms that everything that it created for the object is gone, and other controllers remove their finalizers: x/y',
    },
  ]);
});

test('the explanation contains a dependency that is not ready, and the newest warnings', () => {
  const image = object({ conditions: [condition('Ready', 'False', 'ImportFailed', 'no such host')] });
  const found = why({
    object: object({ conditions: [condition('Ready', 'False', 'Waiting')] }),
    dependencies: [{ kind: 'VMDiskImage', object: image }],
    events: [
      event('Old', '2026-01-01T00:00:00Z'),
      event('New', '2026-01-01T00:59:50Z'),
      event('Fine', '2026-01-01T00:59:55Z', 'Normal'),
    ],
  });
  expect(found.blockers[1]).toEqual({
    reason: 'VMDiskImage ns/a',
    message: 'no such host. Explain it: vmwright why vmdiskimage/a -n ns',
  });
  expect(found.events.map(({ reason, age }) => [reason, age])).toEqual([
    ['New', '10s'],
    ['Old', '60m'],
  ]);
});

test('the explanation contains a verdict per node if the status lists candidates', () => {
  const candidates = [{ node: 'n', host: 'h', suitable: false, reason: 'TooShort', message: 'only 3 h' }, {}];
  expect(
    why({ object: object({ candidates, fitsFrom: '2026-01-01T02:00:00Z' }, { generation: 2 }) }),
  ).toMatchObject({
    retry: 'The operator tries again at 2026-01-01T02:00:00.000Z (in 60m).',
    nodes: [
      { node: 'n', isSuitable: false, reason: 'TooShort' },
      { node: '', isSuitable: false },
    ],
  });
});
