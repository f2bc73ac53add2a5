import { FaultError } from '@vmwright/vsphere';
import { expect, test } from 'vitest';
import type { VCenter } from '../vcenter/vcenter.ts';
import type { WatchedFolder } from '../vcenter/watched-folder.ts';
import { type OperationContext, operationFor } from './operations.ts';

const TASK = { type: 'Task', value: 'task-1' } as const;

/**
 * Removes a machine.
 * @param destroy response of vCenter
 * @returns whether the operation proves that the machine is gone
 */
async function isProvedGone(destroy: () => Promise<typeof TASK>): Promise<boolean | undefined> {
  const client = {
    read: async () => ({ name: 'web-replica-a' }),
    machines: { destroy },
    tasks: { follow: async () => undefined },
  };
  const context: OperationContext = {
    vcenter: { client } as unknown as VCenter,
    watched: { child: () => undefined, machinesOf: () => [] } as unknown as WatchedFolder,
    placement: {},
    group: {
      metadata: { name: 'web', namespace: 'default', uid: 'u-1' },
      spec: { replicas: 1, cpu: 1, memory: 1, template: 'small' },
    },
    cluster: 'production',
    destination: undefined,
    evictTarget: () => undefined,
  };
  const operation = operationFor({ type: 'remove', slot: 0, id: 'vm-7', isOn: false }, context);
  await operation.run(() => undefined, {});
  return operation.provesGone?.();
}

test('a successful destroy proves that the machine is gone', async () => {
  expect(await isProvedGone(async () => TASK)).toBe(true);
});

test('the fault ManagedObjectNotFound does not prove that the machine is gone', async () => {
  const unknown = new FaultError('destroying vm-7', 'ManagedObjectNotFound', {}, 'it is not there');
  expect(unknown.code).toBe('OBJECT_NOT_FOUND');
  expect(await isProvedGone(() => Promise.reject(unknown))).toBe(false);
});
