import {
  type KubeObject,
  keyOf,
  Manager,
  noCredentials,
  nodeWorld,
  type ObjectCache,
  silentLogger,
} from '@vmwright/runtime';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DataSource, DataVolume } from '../kubevirt/kinds.ts';
import { VirtualMachine } from '../virtualmachine/resource.ts';
import { snapshotName } from './identity.ts';
import { countReferences, indexUsers, usersOf } from './references.ts';
import type { VMDiskImage } from './resource.ts';
import { countClones } from './snapshots.ts';

const NAMESPACES = ['a', 'b'];
const LONG = 'x'.repeat(50);

/** Images with the same names in two namespaces, and with long names that are equal after they are shortened. */
const IMAGES: readonly VMDiskImage[] = NAMESPACES.flatMap((namespace, place) =>
  ['win', 'win-1', `${LONG}1`, `${LONG}2`].map((name, index) => ({
    metadata: {
      namespace,
      name,
      uid: `${place}${index}345678-aaaa`,
      ...(name === 'win-1' && { annotations: { 'vmwright.dev/shared-with': NAMESPACES.join(', ') } }),
    },
    spec: { secretRef: '', sourceType: 'blank', diskSize: '1Gi' },
  })),
);

const ref = fc.record({ namespace: fc.constantFrom(...NAMESPACES), name: fc.constantFrom('p', 'q', 'r') });
const index = fc.nat(IMAGES.length - 1);

const step = fc.oneof(
  fc.record({ type: fc.constant('machine'), ref, image: index, explicit: fc.boolean() }),
  fc.record({
    type: fc.constant('clone'),
    ref,
    image: index,
    owner: fc.option(ref),
    source: fc.constantFrom('snapshot', 'pvc', 'dataSource'),
  }),
  fc.record({ type: fc.constant('dataSource'), ref, image: index }),
  fc.record({ type: fc.constant('import'), ref }),
  fc.record({ type: fc.constant('delete'), ref, kind: fc.constantFrom('machine', 'volume', 'dataSource') }),
);

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

interface State {
  readonly machines: Map<string, VirtualMachine>;
  readonly volumes: Map<string, DataVolume>;
  readonly sources: Map<string, DataSource>;
}

test('after any sequence of changes, the indexes find the same references to images as a recount of all objects', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { caches } = new Manager({
        world: nodeWorld,
        name: 'test',
        log: silentLogger,
        access: { server: { origin: 'http://127.0.0.1:1' }, credentials: noCredentials, namespace: 'test' },
      });
      indexUsers(caches);
      const state: State = { machines: new Map(), volumes: new Map(), sources: new Map() };
      let version = 0;
      for (const each of steps) {
        version++;
        apply(each, state, version);
        show(caches.get(VirtualMachine), state.machines);
        show(caches.get(DataVolume), state.volumes);
        show(caches.get(DataSource), state.sources);
        for (const image of IMAGES)
          for (const allowed of [[], ['a'], ['*']])
            expect(countReferences(usersOf(image, caches, { imageNamespaces: allowed })).referrers).toEqual(
              recount(image, state, allowed),
            );
      }
    }),
    { numRuns: 60 },
  );
});

/** Makes a cache contain exactly these objects. */
function show<T extends KubeObject>(cache: ObjectCache<T>, objects: ReadonlyMap<string, T>): void {
  for (const { metadata } of [...cache.list()])
    if (!objects.has(keyOf(metadata))) cache.onDelete(metadata, metadata.uid ?? '');
  for (const object of objects.values()) cache.onWrite(object);
}

/** Counts the references to an image in all objects, without indexes and without the functions under test. */
function recount(
  image: VMDiskImage,
  { machines, volumes, sources }: State,
  allowed: readonly string[],
): readonly string[] {
  const { namespace, name, uid = '', annotations } = image.metadata;
  const isShared = allowed.includes('*') || allowed.includes(namespace ?? '') || annotations !== undefined;
  const used = [...machines].filter(
    ([, { metadata, spec }]) =>
      spec.vmDiskImageRef.name === name &&
      (spec.vmDiskImageRef.namespace ?? metadata.namespace) === namespace &&
      (metadata.namespace === namespace || isShared),
  );
  const owners = used.map(([, { metadata }]) => metadata.uid);
  const cloned = [...volumes].filter(([, { metadata, spec }]) => {
    const { namespace: of = metadata.namespace, name: through } = spec?.sourceRef ?? { name: undefined };
    const named = through === undefined ? spec?.source : sources.get(`${of}/${through}`)?.spec?.source;
    const source = named?.snapshot ?? named?.pvc;
    const owner = metadata.ownerReferences?.[0]?.uid;
    const isOfImage =
      source?.namespace === namespace && source?.name.includes(`-${uid.slice(0, 8)}-`) === true;
    return isOfImage && !(owner !== undefined && owners.includes(owner));
  });
  return [
    ...used.map(([key]) => `VirtualMachine ${key}`),
    ...cloned.map(([key]) => `DataVolume ${key}`),
  ].toSorted();
}

function apply(each: Step, { machines, volumes, sources }: State, version: number): void {
  const key = `${each.ref.namespace}/${each.ref.name}`;
  const metadata = { ...each.ref, uid: `${each.type}-${version}`, resourceVersion: String(version) };
  const image = 'image' in each ? IMAGES[each.image] : undefined;
  if (each.type === 'delete')
    ({ machine: machines, volume: volumes, dataSource: sources })[each.kind].delete(key);
  else if (each.type === 'import')
    volumes.set(key, { metadata, spec: { source: { http: { url: 'http://x/win-00345678-1' } } } });
  else if (image !== undefined && each.type === 'machine') {
    const { namespace = '', name } = image.metadata;
    // Without a namespace, the reference is to an image in the machine's own namespace.
    const target = each.explicit ? { namespace, name } : { name };
    const resources = { cpu: '1', memory: '1Gi', diskSize: '1Gi' };
    machines.set(key, { metadata, spec: { resources, vmDiskImageRef: target } });
  } else if (image !== undefined && each.type === 'dataSource') {
    const { namespace = '' } = image.metadata;
    sources.set(key, {
      metadata,
      spec: { source: { snapshot: { namespace, name: snapshotName(image, 2, 1) } } },
    });
  } else if (image !== undefined && each.type === 'clone') {
    const { namespace = '' } = image.metadata;
    const owner =
      each.owner === null ? undefined : machines.get(`${each.owner.namespace}/${each.owner.name}`);
    const name = snapshotName(image, 3, 1);
    const ownerReferences = owner && [
      {
        apiVersion: 'pelotech.ot/v1alpha1',
        kind: 'VirtualMachine',
        name: owner.metadata.name,
        uid: owner.metadata.uid ?? '',
        controller: true,
      },
    ];
    const spec = {
      snapshot: { source: { snapshot: { namespace, name } } },
      pvc: { source: { pvc: { namespace, name: name.slice(0, -2) } } },
      // The DataSource has the same name as the DataVolume. It is in the namespace of the DataVolume or of the image.
      dataSource: {
        sourceRef: { kind: 'DataSource', name: each.ref.name, ...(each.image % 2 === 0 && { namespace }) },
      },
    }[each.source];
    volumes.set(key, { metadata: { ...metadata, ...(ownerReferences && { ownerReferences }) }, spec });
  }
}

test('a machine counts as one clone of the snapshot in its status, before and after its disk exists', () => {
  const machine = (uid: string, snapshot?: string): VirtualMachine => ({
    metadata: { namespace: 'lab', name: uid, uid },
    spec: { resources: { cpu: 1, memory: '1Gi', diskSize: '1Gi' }, vmDiskImageRef: { name: 'win' } },
    ...(snapshot !== undefined && { status: { snapshot } }),
  });
  const clone = (uid: string, owner?: string): DataVolume => ({
    metadata: {
      namespace: 'lab',
      name: uid,
      uid,
      ...(owner !== undefined && {
        ownerReferences: [
          {
            apiVersion: 'pelotech.ot/v1alpha1',
            kind: 'VirtualMachine',
            name: owner,
            uid: owner,
            controller: true,
          },
        ],
      }),
    },
    spec: { source: { snapshot: { namespace: 'farm', name: 's-1' } } },
  });
  const machines = [
    machine('planned', 's-1'),
    machine('cloned', 's-1'),
    machine('lost-status'),
    machine('other', 's-2'),
  ];
  const clones = [clone('disk-1', 'cloned'), clone('disk-2', 'lost-status'), clone('foreign')];
  expect(countClones('s-1', { machines, clones })).toBe(4);
  expect(countClones('s-2', { machines, clones })).toBe(1);
});
