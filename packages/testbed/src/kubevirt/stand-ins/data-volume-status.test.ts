import { expect, test } from 'vitest';
import type { KubeObject } from '../../kubernetes/api.ts';
import { notRunning, POD_RUNNING, statusOf } from './data-volume-status.ts';

const BEFORE = '2026-01-01T00:00:00Z';
const NOW = new Date('2026-01-01T00:01:00.000Z');
const AFTER = '2026-01-01T00:01:00Z';

function object(name: string, status: object): KubeObject {
  const metadata = { name, uid: '1', resourceVersion: '1' };
  return { apiVersion: 'v1', kind: 'Any', metadata, status };
}

test('the transition time of a condition changes only when the status of the condition changes', () => {
  const condition = { type: 'Running', status: 'False', lastTransitionTime: BEFORE };
  const volume = object('root', { conditions: [condition] });
  const claim = object('root', { phase: 'Bound' });
  const crashed = statusOf(
    volume,
    claim,
    { phase: 'ImportInProgress', restartCount: 1, running: notRunning('Error', 'unexpected EOF') },
    NOW,
  );
  expect(crashed).toEqual({
    phase: 'ImportInProgress',
    claimName: 'root',
    restartCount: 1,
    conditions: [
      {
        type: 'Bound',
        status: 'True',
        reason: 'Bound',
        message: 'PVC root Bound',
        lastTransitionTime: AFTER,
        lastHeartbeatTime: AFTER,
      },
      {
        type: 'Ready',
        status: 'False',
        reason: '',
        message: '',
        lastTransitionTime: AFTER,
        lastHeartbeatTime: AFTER,
      },
      {
        type: 'Running',
        status: 'False',
        reason: 'Error',
        message: 'unexpected EOF',
        lastTransitionTime: BEFORE,
        lastHeartbeatTime: AFTER,
      },
    ],
  });
});

test('a running import has Bound=False while its claim is pending', () => {
  const claim = object('root', { phase: 'Pending' });
  const status = statusOf(
    object('root', {}),
    claim,
    { phase: 'ImportInProgress', running: POD_RUNNING },
    NOW,
  );
  expect(status).toMatchObject({
    conditions: [
      { type: 'Bound', status: 'False', reason: 'Pending', message: 'PVC root Pending' },
      { type: 'Ready', status: 'False', reason: 'TransferRunning' },
      { type: 'Running', status: 'True', reason: 'Pod is running', message: '' },
    ],
  });
});
