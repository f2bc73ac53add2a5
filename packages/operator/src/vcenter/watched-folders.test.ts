import { VirtualClock } from '@vmwright/core/testing';
import type { World } from '@vmwright/runtime';
import { ConnectionError, type VcenterClient } from '@vmwright/vsphere';
import { expect, test } from 'vitest';
import { outageOf } from './errors.ts';
import type { VcenterHealth } from './health.ts';
import { WatchedFolders } from './watched-folders.ts';

/** Creates the watched folders of a vCenter that fails every lookup. */
function start() {
  const world = new VirtualClock();
  const error = new ConnectionError('no response', { effectUnknown: false });
  const health = { isFailing: false, outage: () => outageOf('default', error) };
  const calls = { lookups: 0 };
  const lookup = {
    datacenter: async () => {
      calls.lookups += 1;
      throw error;
    },
  };
  const folders = new WatchedFolders({
    world: world as unknown as World,
    client: { lookup } as unknown as VcenterClient,
    health: health as unknown as VcenterHealth,
    enqueue: () => undefined,
  });
  return { folders, health, calls, open: () => folders.get({}, () => undefined) };
}

test('a failed attempt to open a folder is not repeated by the next reconcile', async () => {
  const { calls, open } = start();
  await expect(open()).rejects.toThrow('no response');
  await expect(open()).rejects.toThrow('no response');
  expect(calls.lookups).toBe(1);
});

test('a folder that could not be opened during an outage is looked up again when vCenter responds', async () => {
  const { health, calls, open } = start();
  health.isFailing = true;
  await expect(open()).rejects.toThrow('does not respond');
  await expect(open()).rejects.toThrow('no response');
  expect(calls.lookups).toBe(1);
  health.isFailing = false;
  await expect(open()).rejects.toThrow('no response');
  expect(calls.lookups).toBe(2);
});
