import {
  AlreadyExistsError,
  ConflictError,
  collectingLogger,
  NotFoundError,
  silentLogger,
} from '@vmwright/runtime';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Action } from './actions.ts';
import { execute } from './execute.ts';

const vm = {
  metadata: { namespace: 'work', name: 'demo', uid: 'u-1' },
  spec: {
    resources: { cpu: 1, memory: '1Gi', diskSize: '1Gi' },
    vmDiskImageRef: { name: 'base' },
  },
};

test('no event is recorded if another VirtualMachine has just created the same image', async () => {
  const unused = () => Promise.reject(new Error('not expected'));
  const create = () => Promise.reject(new AlreadyExistsError('base exists', { status: 409 }));
  const spec = { secretRef: '', sourceType: 'blank', diskSize: '1Gi' } as const;
  const image = { metadata: { namespace: 'work', name: 'base' }, spec };
  const event = { type: 'Normal', reason: 'ImageCreated', note: '' } as const;
  const client = { create, apply: unused, mergePatch: unused, delete: unused };
  expect(
    await execute({ type: 'createImage', image, event }, vm, { client, log: silentLogger }),
  ).toBeUndefined();
});

describe('audit lines of operations on children', () => {
  const { logger: log, lines } = collectingLogger();
  const child = { metadata: { namespace: 'work', name: 'demo', uid: 'k-1' } };
  const answered = vi.fn();
  const client = { create: answered, apply: answered, mergePatch: answered, delete: answered };
  const machine = { ...child, spec: {} };
  const reason = 'the plan says so';
  const about = { kind: 'VirtualMachine', object: 'work/demo', uid: 'u-1', machineName: 'work/demo' };

  beforeEach(() => {
    lines.length = 0;
    answered.mockReset().mockResolvedValue(child);
  });

  test.each([
    [{ type: 'createVolume', volume: child }, 'create', 'DataVolume'],
    [{ type: 'applyMachine', machine, isNew: true, reason }, 'create', 'VirtualMachine'],
    [{ type: 'applyMachine', machine, isNew: false, reason }, 'reconfigure', 'VirtualMachine'],
    [
      { type: 'deleteVolume', name: 'demo', uid: 'k-1', resourceVersion: '1', reason },
      'delete',
      'DataVolume',
    ],
    [{ type: 'resizeClaim', name: 'demo', uid: 'k-1', size: '2Gi' }, 'reconfigure', 'PersistentVolumeClaim'],
    [{ type: 'restart', uid: 'k-1', reason }, 'restart', 'VirtualMachineInstance'],
  ] satisfies [Action, string, string][])(
    'the action %o leaves one audit line',
    async (action, act, resource) => {
      await execute(action, vm, { client, log });
      const why = 'reason' in action ? action.reason : expect.any(String);
      expect(lines).toMatchObject([{ ...about, audit: act, resource, machine: 'k-1', reason: why }]);
    },
  );

  test('an operation without an effect leaves no audit line', async () => {
    answered.mockRejectedValue(new AlreadyExistsError('exists', { status: 409 }));
    await execute({ type: 'createVolume', volume: child }, vm, { client, log });
    for (const error of [
      new NotFoundError('gone', { status: 404 }),
      new ConflictError('changed', { status: 409 }),
    ]) {
      answered.mockRejectedValue(error);
      await execute({ type: 'restart', uid: 'k-1', reason }, vm, { client, log });
    }
    expect(lines).toEqual([]);
  });

  test('an operation on a Secret leaves no audit line', async () => {
    await execute({ type: 'applySecret', secret: child, isNew: true }, vm, { client, log });
    expect(lines).toEqual([]);
  });
});
