import { describe, expect, test } from 'vitest';
import { NOTHING_OBSERVED } from './observe.ts';
import { observePaused, plan, planDeletion } from './plan.ts';
import type { VmGroup, VmGroupStatus } from './resource.ts';
import { failedStatus } from './status.ts';

const NOW = Date.parse('2026-11-16T12:00:00Z');

const group = (status?: VmGroupStatus): VmGroup => ({
  metadata: { name: 'web', namespace: 'shop', uid: 'u-1', generation: 3 },
  spec: { cpu: 2, memory: 1, replicas: 2, template: 'ubuntu' },
  ...(status && { status }),
});

/** Observation of a group without machines. */
const EMPTY = { ...NOTHING_OBSERVED, isUnplaced: false };

const conditionsOf = ({ conditions = [] }: VmGroupStatus) =>
  Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]));

describe('groups that wait for a permit to start a vCenter task', () => {
  test('a group that waits for a permit to start a vCenter task reports this in its message and in the condition Ready', () => {
    const { status, waitingStatus } = plan(group(), EMPTY, NOW);
    expect(status.lastMessage).toBe('0 of 2 machines exist');
    expect(waitingStatus.lastMessage).toBe('0 of 2 machines exist; waiting for a vCenter task slot');
    const ready = waitingStatus.conditions?.find(({ type }) => type === 'Ready');
    expect(ready?.message).toBe(waitingStatus.lastMessage);
    // A second reconcile does not append the text about the task slot again.
    expect(plan(group(waitingStatus), EMPTY, NOW).waitingStatus).toEqual(waitingStatus);
  });

  test('a group that is being deleted also reports that it waits for a permit', () => {
    const { waitingStatus } = planDeletion(group(), EMPTY, 'removing the machines', NOW);
    expect(waitingStatus.lastMessage).toBe('removing the machines; waiting for a vCenter task slot');
  });

  test('a group that waits for a permit after a failure reports the failure instead of the wait', () => {
    const errors = [{ reason: 'NotFound', message: 'no such template' }] as const;
    const { status, waitingStatus } = plan(group(), { ...EMPTY, errors }, NOW);
    expect(waitingStatus).toEqual(status);
    expect(status.lastMessage).toBe('no such template');
  });
});

describe('VCenterAvailable', () => {
  const available = plan(group(), EMPTY, NOW).status;

  test('VCenterAvailable is absent for a group that was never placed, because no vCenter was observed', () => {
    expect(conditionsOf(observePaused(group(), NOTHING_OBSERVED, NOW))).not.toHaveProperty(
      'VCenterAvailable',
    );
  });

  test('VCenterAvailable is True for an observed group, and does not change on the next reconcile', () => {
    expect(conditionsOf(available)).toMatchObject({ VCenterAvailable: 'True Connected' });
    expect(plan(group(available), EMPTY, NOW + 60_000).status).toEqual(available);
  });

  test('VCenterAvailable is False during an outage, with the reason of the outage', () => {
    const outage = { reason: 'VcenterUnauthorized', message: 'wrong password', isUnknown: true } as const;
    expect(conditionsOf(failedStatus(group(available), outage, NOW))).toMatchObject({
      Ready: 'Unknown VcenterUnauthorized',
      VCenterAvailable: 'False VcenterUnauthorized',
    });
  });

  test('VCenterAvailable is Unknown while the operator connects', () => {
    const connecting = {
      reason: 'Connecting',
      message: 'wait',
      isUnknown: true,
      isProgressing: true,
    } as const;
    expect(conditionsOf(failedStatus(group(), connecting, NOW))).toMatchObject({
      VCenterAvailable: 'Unknown Connecting',
    });
  });

  test('VCenterAvailable is removed when the first reconcile after an outage fails with another error', () => {
    const outage = { reason: 'VcenterUnreachable', message: 'no response', isUnknown: true } as const;
    const down = failedStatus(group(available), outage, NOW);
    const error = { reason: 'NotFound', message: 'no such datacenter' } as const;
    const after = conditionsOf(failedStatus(group(down), error, NOW));
    expect(after).toMatchObject({ Ready: 'False NotFound' });
    expect(after).not.toHaveProperty('VCenterAvailable');
  });

  test('VCenterAvailable is removed by an error that ends the reconcile before vCenter is observed', () => {
    const error = { reason: 'PlacementChanged', message: 'moved' } as const;
    const after = conditionsOf(failedStatus(group(available), error, NOW));
    expect(after).toMatchObject({ Ready: 'False PlacementChanged' });
    expect(after).not.toHaveProperty('VCenterAvailable');
  });

  test('VCenterAvailable is True when an operation failed in an outage that has ended', () => {
    const errors = [
      { reason: 'VcenterUnreachable', message: 'no response', isUnknown: true, retryable: true },
    ] as const;
    const { status } = plan(group(available), { ...EMPTY, errors }, NOW);
    expect(conditionsOf(status)).toMatchObject({
      Ready: 'False VcenterUnreachable',
      VCenterAvailable: 'True Connected',
    });
    // A minute later, the status is the same, so nothing is written.
    expect(plan(group(status), { ...EMPTY, errors }, NOW + 60_000).status).toEqual(status);
  });
});
