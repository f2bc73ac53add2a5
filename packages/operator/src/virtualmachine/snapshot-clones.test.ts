import type { OwnerReference } from '@vmwright/runtime';
import { expect, test } from 'vitest';
import type { VMDiskImage } from '../vmdiskimage/resource.ts';
import { chooseSnapshot } from './snapshot-choice.ts';
import { foreignCloneKeys, SnapshotClones } from './snapshot-clones.ts';

const image: VMDiskImage = {
  metadata: { namespace: 'farm', name: 'base' },
  spec: { secretRef: '', sourceType: 'blank', diskSize: '1Gi', maxClones: 2 },
  status: {
    snapshots: [
      { name: 'a', clones: 1 },
      { name: 'b', clones: 0 },
    ],
  },
};

test('concurrent reconciles together do not exceed the maximum number of clones of a snapshot', () => {
  const stored = new Map<string, number>([['farm/a', 1]]);
  const cached = { countByIndex: (_: string, key: string) => stored.get(key) ?? 0 };
  const clones = new SnapshotClones(cached, { countByIndex: () => 0 });
  const choose = () => {
    const name = chooseSnapshot(
      image,
      new Map(['a', 'b'].map((each) => [each, clones.count(`farm/${each}`)])),
    );
    return { name, reservation: clones.reserve(name === undefined ? undefined : `farm/${name}`) };
  };
  const [first, second, third, fourth] = [choose(), choose(), choose(), choose()];
  expect([first.name, second.name, third.name, fourth.name]).toEqual(['b', 'b', 'a', undefined]);
  // The first reconcile fails to store its choice, so its clone is free again. The second reconcile succeeds.
  first.reservation[Symbol.dispose]();
  stored.set('farm/b', 1);
  second.reservation[Symbol.dispose]();
  expect(choose().name).toBe('b');
  expect(choose().name).toBeUndefined();
});

test('an image without maxClones always has a free snapshot', () => {
  const { maxClones: _, ...spec } = image.spec;
  expect(chooseSnapshot({ ...image, spec }, new Map([['b', 1_000]]))).toBe('b');
});

test('a clone counts as foreign if no VirtualMachine is its controller', () => {
  const metadata = { namespace: 'work', name: 'disk' };
  const spec = { source: { snapshot: { namespace: 'farm', name: 'a' } } };
  const owner = { apiVersion: 'pelotech.ot/v1alpha1', kind: 'VirtualMachine', name: 'x', uid: 'u' };
  expect(foreignCloneKeys({ metadata, spec })).toEqual(['farm/a']);
  const keysWith = (reference: OwnerReference) =>
    foreignCloneKeys({ metadata: { ...metadata, ownerReferences: [reference] }, spec });
  expect(keysWith({ ...owner, controller: true })).toEqual([]);
  expect(keysWith(owner), 'an owner that does not control it').toEqual(['farm/a']);
  expect(keysWith({ ...owner, apiVersion: 'kubevirt.io/v1', controller: true })).toEqual(['farm/a']);
  expect(foreignCloneKeys({ metadata, spec: { source: { blank: {} } } })).toEqual([]);
});
