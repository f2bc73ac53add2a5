import { test } from '@vmwright/testbed/vitest';
import { describe, expect, test as plain } from 'vitest';
import { connect } from '../../test/connect.ts';
import { CustomResourceDefinition, crdOf } from '../kind/crd.ts';
import { defineKind } from '../kind/define.ts';
import * as schema from '../kind/schema/index.ts';
import { type Condition, conditionOf, isTrue, setCondition } from './conditions.ts';

const NOON = Date.parse('2026-11-15T12:00:00.750Z');
const HOUR = 3_600_000;
const ready = {
  type: 'Ready',
  status: 'True',
  reason: 'Running',
  message: 'running',
  observedGeneration: 1,
} as const;

describe('a condition', () => {
  plain('is added with the current time in seconds', () => {
    expect(setCondition(undefined, ready, NOON)).toEqual([
      { ...ready, lastTransitionTime: '2026-11-15T12:00:00Z' },
    ]);
  });

  plain('does not change when set again, and keeps lastTransitionTime with a new message', () => {
    const before = setCondition(undefined, ready, NOON);
    expect(setCondition(before, ready, NOON + HOUR)).toEqual(before);
    const [after] = setCondition(
      before,
      { ...ready, message: 'running well', observedGeneration: 2 },
      NOON + HOUR,
    );
    expect(after).toEqual({
      ...ready,
      message: 'running well',
      observedGeneration: 2,
      lastTransitionTime: '2026-11-15T12:00:00Z',
    });
  });

  plain('gets a new lastTransitionTime when its status changes, and keeps its position', () => {
    const other: Condition = { ...ready, type: 'NameAccepted', lastTransitionTime: '2026-01-01T00:00:00Z' };
    const before = [...setCondition(undefined, ready, NOON), other];
    const after = setCondition(before, { ...ready, status: 'False', reason: 'Gone' }, NOON + HOUR);
    expect(after.map(({ type, lastTransitionTime }) => [type, lastTransitionTime])).toEqual([
      ['Ready', '2026-11-15T13:00:00Z'],
      ['NameAccepted', '2026-01-01T00:00:00Z'],
    ]);
    expect(before[0]?.status).toBe('True');
  });

  plain('is true only for the generation that it was set for', () => {
    const conditions = setCondition(undefined, ready, NOON);
    expect(isTrue(conditions, 'Ready')).toBe(true);
    expect(isTrue(conditions, 'Ready', 1)).toBe(true);
    expect(isTrue(conditions, 'Ready', 2)).toBe(false);
    expect(isTrue(conditions, 'Other')).toBe(false);
    expect(conditionOf(conditions, 'Ready')?.reason).toBe('Running');
  });
});

test('kubectl wait recognizes a condition that setCondition returned', async ({ cluster, namespace }) => {
  const text = () => schema.string();
  const condition = schema.object({
    type: text(),
    status: schema.literals(['True', 'False', 'Unknown']),
    reason: text(),
    message: text(),
    observedGeneration: schema.optional(schema.integer()),
    lastTransitionTime: schema.string({ format: 'date-time' }),
  });
  const Waited = defineKind({
    group: 'conditions-test.vmwright.dev',
    version: 'v1',
    kind: 'Waited',
    plural: 'waiteds',
    spec: schema.object({}),
    status: schema.object({ conditions: schema.array(condition, { list: 'map', keys: ['type'] }) }),
  });
  await using client = await connect(cluster.kubeconfig);
  await client.apply(CustomResourceDefinition, crdOf(Waited));
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd/waiteds.conditions-test.vmwright.dev']);
  const metadata = { namespace, name: 'w' };
  await client.create(Waited, { metadata, spec: {} });
  await client.applyStatus(Waited, metadata, { conditions: setCondition(undefined, ready, NOON) });
  const waited = await cluster.kubectl([
    '-n',
    namespace,
    'wait',
    '--for=condition=Ready',
    'waiteds/w',
    '--timeout=20s',
  ]);
  expect(waited.stdout).toContain('condition met');
  await client.delete(CustomResourceDefinition, { name: 'waiteds.conditions-test.vmwright.dev' });
});
