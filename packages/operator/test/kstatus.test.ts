import { type Outcome, type ReportedStatus, withOutcome } from '@vmwright/runtime';
import type { KubeObject } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { kstatusLife, kstatusOf } from './kstatus.ts';

const object = (status: object | undefined, generation = 1, deletionTimestamp?: string): KubeObject => {
  const metadata = { name: 'a', uid: '1', resourceVersion: '1', generation };
  return {
    apiVersion: 'example.org/v1',
    kind: 'Thing',
    metadata: { ...metadata, ...(deletionTimestamp && { deletionTimestamp }) },
    ...(status && { status }),
  };
};
const reported = (outcome: Outcome, generation = 1) => {
  const before: ReportedStatus = { observedGeneration: -1 };
  return withOutcome({ metadata: { name: 'a', generation } }, before, outcome, 0);
};
const READY: Outcome = { state: 'ready', reason: 'Running', message: '' };
const PROGRESSING: Outcome = { state: 'progressing', reason: 'Creating', message: '' };
const STALLED: Outcome = { state: 'stalled', reason: 'NameTaken', message: '' };

test('an object that was never reconciled is InProgress because of the default of observedGeneration', () => {
  expect(kstatusOf(object(undefined))).toBe('Current'); // without the default, kstatus would report Current
  expect(kstatusOf(object({ observedGeneration: -1 }))).toBe('InProgress');
});

test('kstatusOf maps each outcome of a reconcile to its kstatus', () => {
  expect(kstatusOf(object(reported(READY)))).toBe('Current');
  expect(kstatusOf(object(reported(PROGRESSING)))).toBe('InProgress');
  expect(kstatusOf(object(reported(STALLED)))).toBe('Failed');
  expect(kstatusOf(object(reported({ ...PROGRESSING, isUnknown: true })))).toBe('InProgress');
  expect(kstatusOf(object(reported(READY, 1), 2))).toBe('InProgress'); // the spec changed after the last reconcile
  expect(kstatusOf(object(reported(READY), 1, '2026-01-01T00:00:00Z'))).toBe('Terminating');
});

test('kstatusLife omits repeated statuses', () => {
  const life = [object({ observedGeneration: -1 }), object(reported(PROGRESSING)), object(reported(READY))];
  expect(kstatusLife(life)).toEqual(['InProgress', 'Current']);
});
