import { VirtualClock } from '@vmwright/core/testing';
import {
  type Kind,
  type KubeObject,
  keyOf,
  Manager,
  noCredentials,
  nodeWorld,
  silentLogger,
} from '@vmwright/runtime';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Facts } from './candidate.ts';
import { Node, NodeClaim, Pod, ResourceClaim, ResourceSlice } from './kinds.ts';
import { NodeFacts } from './node-facts.ts';
import { GPUInfo } from './resource.ts';
import { TestCompute } from './test-compute.ts';

const NOW = Date.parse('2026-11-17T12:00:00Z');
const NODES = ['a', 'b', 'c'];
const DRIVER = 'gpu.example.com';
const name = fc.constantFrom(...NODES);
const small = fc.nat(2);

/** A change of one object. If `object` is undefined, the change deletes the object. */
interface ObjectStep<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>;
  readonly ref: { readonly namespace?: string; readonly name: string };
  readonly object: T | undefined;
}

function step<T extends KubeObject>(kind: Kind<T>, objects: fc.Arbitrary<T>): fc.Arbitrary<ObjectStep<T>> {
  return fc.record({ object: objects, isGone: fc.boolean() }).map(({ object, isGone }) => ({
    kind,
    ref: object.metadata,
    object: isGone ? undefined : object,
  }));
}

const nodes = fc
  .record({ name, gpus: small, isCordoned: fc.boolean(), isOnVsphere: fc.boolean(), start: small })
  .map(
    (of): Node => ({
      metadata: {
        name: of.name,
        annotations:
          of.start === 0
            ? {}
            : { 'vmwright.dev/maintenance-start': ['', '2026-12-01T00:00:00Z', 'bad'][of.start] ?? '' },
      },
      spec: {
        unschedulable: of.isCordoned,
        ...(of.isOnVsphere && { providerID: `vsphere://uuid-of-${of.name}` }),
      },
      status: {
        conditions: [{ type: 'Ready', status: 'True' }],
        allocatable: { 'nvidia.com/gpu': of.gpus },
        capacity: { 'nvidia.com/gpu': of.gpus },
      },
    }),
  );
const pods = fc
  .record({
    name: fc.constantFrom('p', 'q', 'r'),
    node: name,
    gpus: small,
    uid: fc.constantFrom('u1', 'u2', undefined),
    phase: fc.constantFrom('Running', 'Succeeded'),
  })
  .map(
    ({ name: podName, node, gpus, uid, phase }): Pod => ({
      metadata: {
        namespace: 'ml',
        name: podName,
        ...(uid !== undefined && {
          labels: { 'vmwright.dev/gpuinfo': 'training' },
          annotations: { 'vmwright.dev/gpuinfo-uid': uid },
        }),
      },
      spec: {
        nodeName: node,
        containers: [{ resources: { requests: { cpu: '1', 'nvidia.com/gpu': gpus } } }],
      },
      status: { phase },
    }),
  );
const slices = fc.record({ node: name, slice: small, count: small }).map(
  ({ node, slice, count }): ResourceSlice => ({
    metadata: { name: `slice-${slice}` },
    spec: {
      driver: DRIVER,
      nodeName: node,
      pool: { name: node, generation: 1, resourceSliceCount: 1 },
      devices: Array.from({ length: count }, (_, index) => ({ name: `${slice}-${index}` })),
    },
  }),
);
const claims = fc.record({ node: name, claim: small, slice: small, pod: fc.constantFrom('p', 'q') }).map(
  ({ node, claim, slice, pod }): ResourceClaim => ({
    metadata: { namespace: 'ml', name: `claim-${claim}` },
    status: {
      allocation: { devices: { results: [{ driver: DRIVER, pool: node, device: `${slice}-0` }] } },
      reservedFor: [{ resource: 'pods', name: pod }],
    },
  }),
);
const nodeClaims = fc.record({ node: name, claim: small }).map(
  ({ node, claim }): NodeClaim => ({
    metadata: { name: `nc-${claim}`, creationTimestamp: '2026-11-01T00:00:00Z' },
    spec: { expireAfter: `${1_000 + claim}h` },
    status: { nodeName: node },
  }),
);
const infos = fc.constantFrom('u1', 'u2').map(
  (uid): GPUInfo => ({
    metadata: { namespace: 'ml', name: 'training', uid },
    spec: { desAccTime: 1, gpuRequired: true },
  }),
);
const vcenters = fc.oneof(
  fc.record({
    set: fc.constant('machine'),
    name,
    hostId: fc.constantFrom('v/h1', 'v/h2'),
    isPoweredOn: fc.boolean(),
    cpuDemandMhz: fc.nat(9),
  }),
  fc.record({
    set: fc.constant('host'),
    id: fc.constantFrom('v/h1', 'v/h2'),
    gpus: small,
    isInUse: fc.boolean(),
  }),
  fc.record({ set: fc.constant('stale'), isStale: fc.boolean() }),
);
type VcenterStep = typeof vcenters extends fc.Arbitrary<infer S> ? S : never;

const steps = fc.array(
  fc.oneof(
    ...[step(Node, nodes), step(Pod, pods), step(ResourceSlice, slices), step(ResourceClaim, claims)],
    ...[step(NodeClaim, nodeClaims), step(GPUInfo, infos), vcenters, fc.constant('read' as const)],
  ),
  { maxLength: 60 },
);

function start(compute: TestCompute) {
  const { caches } = new Manager({
    world: nodeWorld,
    name: 'test',
    log: silentLogger,
    access: { server: { origin: 'http://127.0.0.1:1' }, credentials: noCredentials, namespace: 'test' },
  });
  const facts = new NodeFacts({ clock: new VirtualClock(NOW), caches, compute });
  return { caches, facts };
}

/** Applies a change to the hosts or machines of the test vCenter. */
function apply(compute: TestCompute, change: VcenterStep): void {
  if ('hostId' in change) {
    const { set: _, name: machine, ...fields } = change;
    compute.setMachine(machine, fields);
  } else if ('gpus' in change)
    compute.setHost(change.id, {
      gpus: Array.from({ length: change.gpus }, (_, index) => ({
        id: String(index),
        model: 'A100',
        vendor: 'NVIDIA',
        mode: 'vgpu',
        isInUse: change.isInUse,
      })),
    });
  else compute.setStale(...(change.isStale ? ['v'] : []));
}

/**
 * Returns the facts that decisions depend on, without the jobs. The jobs depend on the history of changes, because a
 * Job outlives its pods.
 */
function comparable({ candidates, pools, warnings }: Facts) {
  return { candidates, pools: [...pools].toSorted(([a], [b]) => (a < b ? -1 : 1)), warnings };
}

test('facts after any history of changes equal the facts that are computed from the final state', () => {
  fc.assert(
    fc.property(steps, (history) => {
      const compute = new TestCompute();
      const { caches, facts } = start(compute);
      const objects = new Map<string, ObjectStep>();
      const gone = new Set<string>();
      let version = 0;
      for (const each of history) {
        if (each === 'read') void facts.facts;
        else if ('set' in each) apply(compute, each);
        else {
          const { kind, ref, object } = each;
          const key = `${kind.kind} ${keyOf(ref)}`;
          const known = objects.get(key)?.object?.metadata.uid;
          // The API server never reuses a UID.
          const uid = object?.metadata.uid ?? known ?? `${key} ${gone.size}`;
          if (gone.has(uid)) continue;
          const cache = caches.get<KubeObject>(kind);
          if (known !== undefined && (object === undefined || known !== uid)) {
            cache.onDelete(ref, known);
            gone.add(known);
          }
          if (object === undefined) objects.delete(key);
          else {
            const stored = {
              ...object,
              metadata: { ...object.metadata, uid, resourceVersion: String(++version) },
            };
            cache.onWrite(stored);
            objects.set(key, { kind, ref, object: stored });
          }
        }
      }
      const afresh = start(compute);
      for (const { kind, object } of objects.values())
        if (object !== undefined) afresh.caches.get<KubeObject>(kind).onWrite(object);
      expect(comparable(facts.facts)).toEqual(comparable(afresh.facts.facts));
      facts[Symbol.dispose]();
      afresh.facts[Symbol.dispose]();
    }),
    { numRuns: 500 },
  );
});
