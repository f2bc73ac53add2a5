import { Manager, noCredentials, nodeWorld, silentLogger } from '@vmwright/runtime';
import { expect, test, vi } from 'vitest';
import { DataVolume, PersistentVolumeClaim } from '../kubevirt/kinds.ts';
import { readDoubtfulClaim } from './reads.ts';
import type { VirtualMachine } from './resource.ts';

const metadata = { namespace: 'work', name: 'demo-root', uid: 'uid-of-disk', resourceVersion: '1' };
const VM: VirtualMachine = {
  metadata: { namespace: 'work', name: 'demo' },
  spec: { resources: { cpu: 1, memory: '1Gi', diskSize: '1Gi' }, vmDiskImageRef: { name: 'base' } },
  status: { dataVolume: metadata.name },
};

test.for([
  ['no DataVolume and no claim are cached', undefined, false, true],
  ['the cached DataVolume has succeeded and no claim is cached', { phase: 'Succeeded' }, false, true],
  ['the cached DataVolume is being cloned', { phase: 'CloneInProgress' }, false, false],
  ['the cached DataVolume is new', {}, false, false],
  ['a claim is cached', { phase: 'Succeeded' }, true, false],
] as const)(
  'the claim is read from the API server only if the cached state suggests that the disk is lost: %s',
  async ([, status, hasClaim, isRead]) => {
    const { caches, client } = new Manager({
      world: nodeWorld,
      name: 'test',
      log: silentLogger,
      access: { server: { origin: 'http://127.0.0.1:1' }, credentials: noCredentials, namespace: 'test' },
    });
    if (status !== undefined) caches.get(DataVolume).onWrite({ metadata, status });
    if (hasClaim) caches.get(PersistentVolumeClaim).onWrite({ metadata });
    vi.spyOn(client, 'get').mockResolvedValue({ metadata });
    const context = { client, cache: caches.get.bind(caches) };
    expect((await readDoubtfulClaim(VM, undefined, context)) !== undefined).toBe(isRead);
  },
);
