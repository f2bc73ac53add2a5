import { FaultError } from '@vmwright/vsphere';
import { expect, test } from 'vitest';
import { operationFor, type Surroundings } from './actions.ts';
import type { Root } from './root.ts';
import type { Site } from './site.ts';

const TASK = { type: 'Task', value: 'task-1' } as const;

/** Removes a machine. @param destroy what vCenter makes of that @returns whether it is proved to be gone */
async function removed(destroy: () => Promise<typeof TASK>): Promise<boolean | undefined> {
  const vcenter = {
    read: async () => ({ name: 'web-replica-a' }),
    machines: { destroy },
    tasks: { follow: async () => undefined },
  };
  const surroundings: Surroundings = {
    site: { vcenter } as unknown as Site,
    root: { child: () => undefined, machinesOf: () => [] } as unknown as Root,
    placement: {},
    group: {
      metadata: { name: 'web', namespace: 'default', uid: 'u-1' },
      spec: { replicas: 1, cpu: 1, memory: 1, template: 'small' },
    },
    cluster: 'production',
    destination: undefined,
  };
  const operation = operationFor({ do: 'remove', slot: 0, id: 'vm-7', isOn: false }, surroundings);
  await operation.run(() => undefined, {});
  return operation.provesGone?.();
}

test('a machine that was destroyed is gone', async () => {
  expect(await removed(async () => TASK)).toBe(true);
});

test('a reference that vCenter does not know proves nothing: people may have registered the machine again', async () => {
  const unknown = new FaultError('destroying vm-7', 'ManagedObjectNotFound', {}, 'it is not there');
  expect(unknown.code).toBe('OBJECT_NOT_FOUND');
  expect(await removed(() => Promise.reject(unknown))).toBe(false);
});
