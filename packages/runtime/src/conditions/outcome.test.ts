import { expect, test } from 'vitest';
import type { Condition } from './conditions.ts';
import { type Outcome, type ReportedStatus, withOutcome } from './outcome.ts';
import { withPaused } from './paused.ts';

const NOTHING: ReportedStatus = {};
const object = { metadata: { name: 'a', generation: 3 } };
const NOW = Date.parse('2026-01-01T00:00:00Z');
const LATER = Date.parse('2026-01-01T00:01:00Z');

const shown = (conditions: readonly Condition[] | undefined) =>
  conditions?.map(({ type, status, reason }) => `${type}=${status} ${reason}`);

test.each<{ outcome: Outcome; expected: readonly string[] }>([
  {
    outcome: { state: 'ready', reason: 'Running', message: 'The machine runs' },
    expected: ['Ready=True Running'],
  },
  {
    outcome: { state: 'progressing', reason: 'Creating', message: 'Creating the machine' },
    expected: ['Ready=False Creating', 'Reconciling=True Creating'],
  },
  {
    outcome: { state: 'stalled', reason: 'NameTaken', message: 'Choose another name' },
    expected: ['Ready=False NameTaken', 'Stalled=True NameTaken'],
  },
  {
    outcome: { state: 'progressing', reason: 'Unreachable', message: 'No answer', isUnknown: true },
    expected: ['Ready=Unknown Unreachable', 'Reconciling=True Unreachable'],
  },
])('the conditions of $outcome.state are $expected', ({ outcome, expected }) => {
  const { conditions, observedGeneration } = withOutcome(object, NOTHING, outcome, NOW);
  expect(shown(conditions)).toEqual(expected);
  expect(observedGeneration).toBe(3);
  for (const condition of conditions ?? [])
    expect(condition).toMatchObject({ message: outcome.message, observedGeneration: 3 });
});

test('an outcome replaces the previous one and keeps other conditions and fields', () => {
  type Status = { readonly vmId: string; readonly conditions?: readonly Condition[] };
  const other: Condition = {
    type: 'NameAccepted',
    status: 'True',
    reason: 'Accepted',
    message: '',
    lastTransitionTime: '2025-01-01T00:00:00Z',
  };
  let status: Status = { vmId: 'x', conditions: [other] };
  status = withOutcome(object, status, { state: 'progressing', reason: 'Creating', message: 'a' }, NOW);
  status = withOutcome(object, status, { state: 'stalled', reason: 'NameTaken', message: 'b' }, NOW);
  expect(shown(status.conditions)).toEqual([
    'NameAccepted=True Accepted',
    'Ready=False NameTaken',
    'Stalled=True NameTaken',
  ]);
  status = withOutcome(object, status, { state: 'ready', reason: 'Running', message: 'c' }, NOW);
  expect(shown(status.conditions)).toEqual(['NameAccepted=True Accepted', 'Ready=True Running']);
  expect(status.vmId).toBe('x');
});

test('setting the same outcome again changes nothing', () => {
  const outcome: Outcome = { state: 'progressing', reason: 'Creating', message: 'a' };
  const first = withOutcome(object, NOTHING, outcome, NOW);
  expect(withOutcome(object, first, outcome, LATER)).toEqual(first);
});

test('a paused object has the condition Paused in addition to its other conditions; resuming removes Paused', () => {
  const ready = withOutcome(object, NOTHING, { state: 'ready', reason: 'Running', message: 'a' }, NOW);
  const paused = withPaused(object, ready, { reason: 'Annotation', message: 'Remove x to resume' }, NOW);
  expect(shown(paused.conditions)).toEqual(['Ready=True Running', 'Paused=True Annotation']);
  expect(withPaused(object, paused, { reason: 'Annotation', message: 'Remove x to resume' }, LATER)).toEqual(
    paused,
  );
  expect(withPaused(object, paused, undefined, LATER)).toEqual(ready);
  expect(withPaused(object, {}, undefined, NOW)).toEqual({});
});
