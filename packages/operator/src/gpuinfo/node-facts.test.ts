import { VirtualClock } from '@vmwright/core/testing';
import {
  type Kind,
  type KubeObject,
  Manager,
  noCredentials,
  nodeWorld,
  silentLogger,
} from '@vmwright/runtime';
import { expect, onTestFinished, test } from 'vitest';
import type { Candidate } from './candidate.ts';
import { Job, Node, NodeClaim, Pod, ResourceClaim, ResourceSlice } from './kinds.ts';
import { NodeFacts, type NodeFactsOptions } from './node-facts.ts';
import { GPUInfo } from './resource.ts';
import { TestCompute } from './test-compute.ts';
import { Calendar } from './time-sources/calendar.ts';
import { parseCalendar } from './time-sources/parse-calendar.ts';

const NOW = Date.parse('2026-11-17T12:00:00Z');
const HOUR = 3_600_000;

function setUp(options: Partial<NodeFactsOptions> = {}) {
  const clock = new VirtualClock(NOW);
  const { caches } = new Manager({
    world: nodeWorld,
    name: 'test',
    log: silentLogger,
    access: { server: { origin: 'http://127.0.0.1:1' }, credentials: noCredentials, namespace: 'test' },
  });
  const facts = new NodeFacts({ clock, caches, ...options });
  onTestFinished(() => facts[Symbol.dispose]());
  let notifications = 0;
  facts.subscribe(() => notifications++);
  let version = 0;
  const put = <T extends KubeObject>(kind: Kind<T>, object: T) => {
    const resourceVersion = String(++version);
    const { uid = object.metadata.name } = object.metadata;
    caches.get(kind).onWrite({ ...object, metadata: { ...object.metadata, uid, resourceVersion } });
  };
  const remove = (kind: Kind, { metadata }: KubeObject) =>
    caches.get(kind).onDelete(metadata, metadata.uid ?? metadata.name);
  /** Waits until pending changes are coalesced, and returns the number of notifications since the last call. */
  const notified = () => {
    clock.advance(60);
    const count = notifications;
    notifications = 0;
    return count;
  };
  const candidate = (name: string): Candidate | undefined =>
    facts.facts.candidates.find((each) => each.name === name);
  return { clock, facts, put, remove, notified, candidate };
}

function node(
  name: string,
  more: { gpus?: number; annotations?: Record<string, string>; spec?: Node['spec'] } = {},
): Node {
  const { gpus = 0, annotations = {}, spec = {} } = more;
  const quantities = gpus === 0 ? {} : { 'nvidia.com/gpu': String(gpus) };
  return {
    metadata: { name, annotations, labels: { 'nvidia.com/gpu.product': 'A100' } },
    spec,
    status: {
      conditions: [{ type: 'Ready', status: 'True' }],
      capacity: quantities,
      allocatable: quantities,
    },
  };
}

function pod(
  name: string,
  nodeName: string,
  requests: Record<string, string>,
  more: Partial<Pod['metadata']> = {},
): Pod {
  return {
    metadata: { namespace: 'ml', name, ...more },
    spec: { nodeName, containers: [{ resources: { requests } }] },
    status: { phase: 'Running' },
  };
}

const info: GPUInfo = {
  metadata: { namespace: 'ml', name: 'training', uid: 'u1' },
  spec: { desAccTime: 1, gpuRequired: true },
};
const OF_INFO = {
  labels: { 'vmwright.dev/gpuinfo': 'training' },
  annotations: { 'vmwright.dev/gpuinfo-uid': 'u1' },
};

test('candidates are all nodes in order of name, and several quick changes cause one notification', () => {
  const { facts, put, remove, notified } = setUp();
  put(Node, node('b', { gpus: 4 }));
  put(Node, node('a'));
  expect(facts.facts.candidates.map(({ name }) => name)).toEqual(['a', 'b']);
  expect(facts.facts.candidates[1]).toMatchObject({
    host: 'b',
    blocker: undefined,
    resource: 'nvidia.com/gpu',
    gpus: { pool: 'node/b', models: ['A100'] },
  });
  expect(facts.facts.pools).toEqual(new Map([['node/b', { id: 'node/b', total: 4, uses: [] }]]));
  expect(notified()).toBe(1);
  remove(Node, node('a'));
  expect(facts.facts.candidates.map(({ name }) => name)).toEqual(['b']);
  expect(notified()).toBe(1);
  expect(notified()).toBe(0);
});

test('a change of the CPU and memory requests of pods does not change the version of the facts', () => {
  const { facts, put, notified, candidate } = setUp();
  put(Node, node('a'));
  notified();
  const { version } = facts.facts;
  put(Pod, pod('p', 'a', { cpu: '500m', memory: '64Mi' }));
  expect(candidate('a')).toMatchObject({ cpuUsage: 500, memoryUsage: 64 });
  expect([facts.facts.version, notified()]).toEqual([version, 0]);
});

test('an update of a pod with the same requests does not change the facts', () => {
  const { facts, put, candidate } = setUp();
  put(Node, node('a'));
  put(Node, node('b'));
  const first = pod('p', 'a', { cpu: '500m', memory: '64Mi' });
  put(Pod, first);
  const before = facts.facts;
  put(Pod, { ...first, status: { phase: 'Pending' } });
  expect(facts.facts).toBe(before);
  put(Pod, pod('q', 'b', { cpu: '1' }));
  expect(facts.version).toBe(before.version);
  expect([candidate('a'), candidate('b')?.cpuUsage]).toEqual([before.candidates[0], 1_000]);
  expect(facts.facts.candidates[0]).toBe(before.candidates[0]);
  expect(before.candidates[1]?.cpuUsage).toBe(0);
});

test('`version` increases after a change even if the facts are not read', () => {
  const { facts, put } = setUp();
  put(Node, node('a'));
  const { version } = facts;
  expect(facts.facts.version).toBe(version);
  put(Node, node('a', { gpus: 1 }));
  expect(facts.version).toBeGreaterThan(version);
});

test('the version stays the same if only a node annotation without influence on decisions changes', () => {
  const { facts, put, notified } = setUp();
  put(Node, node('a'));
  notified();
  const { version } = facts.facts;
  put(Node, { ...node('a'), metadata: { ...node('a').metadata, annotations: { heartbeat: '2' } } });
  expect([notified(), facts.facts.version]).toEqual([0, version]);
});

test('pods of a GPUInfo occupy GPUs of their node and count as the job of the GPUInfo', () => {
  const { facts, put, remove, notified } = setUp();
  put(GPUInfo, info);
  put(Node, node('a', { gpus: 4 }));
  notified();
  put(Pod, pod('p', 'a', { 'nvidia.com/gpu': '2' }, OF_INFO));
  put(Pod, pod('q', 'a', { 'nvidia.com/gpu': '1' }));
  expect(notified()).toBe(1);
  expect(facts.facts.pools.get('node/a')?.uses).toEqual([
    { holder: 'u1', gpus: 2 },
    { holder: undefined, gpus: 1 },
  ]);
  expect(facts.facts.jobs.get('u1')?.state).toBe('Active');
  remove(Pod, pod('p', 'a', {}));
  expect(facts.facts.jobs).toEqual(new Map());
  expect(notified()).toBe(1);
});

test('the end of a Job notifies the subscribers', () => {
  const { facts, put, notified } = setUp();
  const ownerReferences = [{ apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: 'j', controller: true }];
  put(GPUInfo, info);
  put(Job, { metadata: { namespace: 'ml', name: 'j', uid: 'j' } });
  put(Pod, { ...pod('p', 'a', {}, { ...OF_INFO, ownerReferences }), status: { phase: 'Succeeded' } });
  notified();
  expect(facts.facts.jobs.get('u1')?.state).toBe('Active');
  const conditions = [{ type: 'Complete', status: 'True' }];
  put(Job, { metadata: { namespace: 'ml', name: 'j', uid: 'j' }, status: { conditions } });
  expect(notified()).toBe(1);
  expect(facts.facts.jobs.get('u1')?.state).toBe('Ended');
});

test('GPUs of a DRA driver are free until they are allocated to the ResourceClaim of a pod', () => {
  const { facts, put, remove, candidate } = setUp();
  put(GPUInfo, info);
  put(Node, node('a'));
  const pool = { name: 'a', generation: 1, resourceSliceCount: 1 };
  const devices = ['gpu-0', 'gpu-1'].map((name) => ({ name, attributes: { productName: { string: 'L4' } } }));
  put(ResourceSlice, {
    metadata: { name: 's' },
    spec: { driver: 'gpu.nvidia.com', nodeName: 'a', pool, devices },
  });
  expect(candidate('a')).toMatchObject({ gpus: { models: ['L4'] }, deviceClass: 'gpu.nvidia.com' });
  put(Pod, pod('p', 'a', {}, OF_INFO));
  const results = [{ driver: 'gpu.nvidia.com', pool: 'a', device: 'gpu-1' }];
  const claim: ResourceClaim = {
    metadata: { namespace: 'ml', name: 'c' },
    status: { allocation: { devices: { results } }, reservedFor: [{ resource: 'pods', name: 'p' }] },
  };
  put(ResourceClaim, claim);
  expect(facts.facts.pools.get('node/a')).toEqual({
    id: 'node/a',
    total: 2,
    uses: [{ holder: 'u1', gpus: 1 }],
  });
  remove(ResourceClaim, claim);
  expect(facts.facts.pools.get('node/a')?.uses).toEqual([]);
  remove(ResourceSlice, { metadata: { name: 's' } });
  expect(candidate('a')?.gpus).toBeUndefined();
});

test('the VM that a node on vSphere runs in determines the host, the usage and the blocker of the node', () => {
  const compute = new TestCompute();
  const { facts, put, notified, candidate } = setUp({ compute });
  put(Node, node('a', { spec: { providerID: 'vsphere://uuid-of-a' } }));
  expect(candidate('a')?.blocker?.reason).toBe('FactsUnknown');
  compute.setHost('v/host-1', { name: 'esx-1' });
  compute.setMachine('a');
  expect(candidate('a')).toMatchObject({
    host: 'esx-1',
    cpuUsage: 100,
    memoryUsage: 1_000,
    blocker: undefined,
  });
  notified();

  const { version } = facts.facts;
  compute.setMachine('a', { cpuDemandMhz: 7 });
  expect(candidate('a')?.cpuUsage).toBe(7);
  expect([notified(), facts.facts.version]).toEqual([0, version]);

  compute.setHost('v/host-1', { name: 'esx-1', isInMaintenance: true });
  expect([notified(), candidate('a')?.blocker?.reason]).toEqual([1, 'HostInMaintenance']);
  compute.setHost('v/host-2', { name: 'esx-2' });
  expect(notified()).toBe(0);
  compute.setMachine('a', { hostId: 'v/host-2' });
  expect([notified(), candidate('a')]).toEqual([
    1,
    expect.objectContaining({ host: 'esx-2', blocker: undefined }),
  ]);
  compute.setMachine('a', { isPoweredOn: false });
  expect(candidate('a')?.blocker?.reason).toBe('PoweredOff');
  compute.setStale('v');
  expect(candidate('a')?.blocker?.reason).toBe('FactsUnknown');
  put(Node, node('lost', { spec: { providerID: 'vsphere://unknown' } }));
  put(Node, node('elsewhere', { spec: { providerID: 'aws:///eu/i-1' } }));
  const message = "the facts of vCenter 'v' are not current";
  expect(facts.facts.warnings).toEqual([{ message, nodes: ['a', 'lost'] }]);
  compute.setStale();
  expect(facts.facts.warnings).toEqual([]);
});

test('nodes on one host share its GPUs, and a GPU that another VM uses counts as in use', () => {
  const compute = new TestCompute();
  const { facts, put, candidate, notified } = setUp({ compute });
  const gpu = { vendor: 'NVIDIA', model: 'A100', mode: 'graphics' } as const;
  compute.setHost('v/host-1', {
    gpus: [
      { id: '1', ...gpu, isInUse: false },
      { id: '2', ...gpu, isInUse: true },
    ],
  });
  for (const name of ['a', 'b']) {
    compute.setMachine(name);
    put(Node, node(name));
  }
  expect(facts.facts.pools).toEqual(
    new Map([['host/v/host-1', { id: 'host/v/host-1', total: 2, uses: [{ holder: undefined, gpus: 1 }] }]]),
  );
  notified();
  compute.setHost('v/host-1', { gpus: [] });
  expect(notified()).toBe(1);
  expect([candidate('a')?.gpus, candidate('b')?.gpus, facts.facts.pools.size]).toEqual([
    undefined,
    undefined,
    0,
  ]);
});

test('after the VM of a node disappears, the facts are unknown until the VM is back, the provider ID names another cloud, or the Node is re-created', () => {
  const compute = new TestCompute();
  const { put, remove, candidate } = setUp({ compute });
  compute.setHost('v/host-1');
  compute.setMachine('a');
  put(Node, node('a'));
  expect(candidate('a')?.blocker).toBeUndefined();
  compute.removeMachine('a');
  const blocker = {
    reason: 'FactsUnknown',
    message: "no vCenter has the VM 'a' of the node any more; delete the Node if its machine was removed",
  };
  expect(candidate('a')?.blocker).toEqual(blocker);
  put(Node, node('a', { annotations: { heartbeat: '2' } }));
  expect(candidate('a')?.blocker).toEqual(blocker);
  compute.setMachine('a');
  expect(candidate('a')?.blocker).toBeUndefined();
  compute.removeMachine('a');
  put(Node, node('a', { spec: { providerID: 'aws:///eu/i-1' } }));
  expect(candidate('a')?.blocker).toBeUndefined();
  remove(Node, node('a'));
  put(Node, { ...node('a'), metadata: { name: 'a', uid: 'other' } });
  expect(candidate('a')?.blocker).toBeUndefined();
});

test('two nodes with the same VM share its GPUs, with a warning', () => {
  const compute = new TestCompute();
  const { facts, put, remove } = setUp({ compute });
  compute.setHost('v/host-1');
  compute.setMachine('a', { gpus: [{ model: 'A100', mode: 'passthrough' }] });
  const spec = { providerID: 'vsphere://uuid-of-a' };
  put(Node, node('a', { spec }));
  put(Node, node('renamed', { spec }));
  expect(facts.facts.candidates.map(({ gpus }) => gpus?.pool)).toEqual(['machine/v/a', 'machine/v/a']);
  expect([...facts.facts.pools.values()]).toEqual([{ id: 'machine/v/a', total: 1, uses: [] }]);
  expect(facts.facts.warnings).toEqual([
    {
      message: 'the nodes a, renamed have the same VM, v/a; delete the Nodes that are no longer in use',
      nodes: ['a', 'renamed'],
    },
  ]);
  remove(Node, node('a'));
  expect(facts.facts.warnings).toEqual([]);
});

test('a change of one node does not recompute the others', () => {
  const compute = new TestCompute();
  const { facts, put } = setUp({ compute });
  for (const name of ['a', 'b', 'c']) {
    compute.setMachine(name, { hostId: `v/host-of-${name}` });
    compute.setHost(`v/host-of-${name}`);
    put(Node, node(name, { gpus: 1, spec: { providerID: `vsphere://uuid-of-${name}` } }));
  }
  const before = facts.facts.candidates;
  put(Node, node('b', { gpus: 2, spec: { providerID: 'vsphere://uuid-of-b', unschedulable: true } }));
  compute.setHost('v/host-of-b', { isInMaintenance: true });
  const after = facts.facts.candidates;
  expect(after[0]).toBe(before[0]);
  expect(after[1]).not.toBe(before[1]);
  expect(after[2]).toBe(before[2]);
});

test('subscribers are notified when maintenance begins and when it ends, although no object changes', () => {
  const { clock, facts, put, notified, candidate } = setUp();
  const annotations = {
    'vmwright.dev/maintenance-start': '2026-12-27T12:00:00Z', // in 40 days: longer than the longest timer of Node.js
    'vmwright.dev/maintenance-end': '2026-12-27T16:00:00Z',
  };
  put(Node, node('a', { annotations }));
  notified();
  const { version } = facts.facts;
  clock.advance(40 * 24 * HOUR - 1_000);
  expect([notified(), facts.facts.version]).toEqual([0, version]);
  clock.advance(1_000);
  expect(notified()).toBe(1);
  expect(candidate('a')?.maintenance).toHaveLength(1);
  clock.advance(4 * HOUR);
  expect([notified(), candidate('a')?.maintenance]).toEqual([1, []]);
  clock.advance(1_000 * HOUR);
  expect(notified()).toBe(0);
});

test('maintenance from all sources is merged, and a value that cannot be parsed causes a warning', () => {
  const { facts, put, candidate } = setUp();
  const annotations = { 'vmwright.dev/maintenance-start': 'soon' };
  put(Node, node('a', { annotations }));
  put(NodeClaim, {
    metadata: { name: 'c', creationTimestamp: '2026-11-17T00:00:00Z' },
    spec: { expireAfter: '24h' },
    status: { nodeName: 'a' },
  });
  expect(candidate('a')?.maintenance).toEqual([
    { startsAt: NOW + 12 * HOUR, source: 'expireAfter of NodeClaim c' },
  ]);
  expect(facts.facts.warnings).toEqual([
    {
      message:
        'node a: annotation vmwright.dev/maintenance-start is "soon"; it must be a time such as 2026-12-01T08:00:00Z, or now',
      nodes: ['a'],
    },
  ]);
});

test('of several NodeClaims of a node, the one that expires first counts', () => {
  const { put, candidate } = setUp();
  put(Node, node('a'));
  for (const [name, expireAfter] of [['b', '48h'] as const, ['c', '24h'] as const])
    put(NodeClaim, {
      metadata: { name, creationTimestamp: '2026-11-17T12:00:00Z' },
      spec: { expireAfter },
      status: { nodeName: 'a' },
    });
  expect(candidate('a')?.maintenance[0]?.startsAt).toBe(NOW + 24 * HOUR);
});

test('maintenance with an unknown start blocks the node', () => {
  const compute = new TestCompute();
  const { facts, put, candidate } = setUp({ compute });
  const blocker = (name: string) => candidate(name)?.blocker;
  const warning = 'planned maintenance in vCenter cannot be read: no permission';
  compute.setHost('v/host-1', { warnings: [warning] });
  compute.setMachine('on-host');
  put(Node, node('on-host'));
  expect(blocker('on-host')).toEqual({ reason: 'FactsUnknown', message: warning });
  compute.setHost('v/host-1');
  expect(blocker('on-host')).toBeUndefined();

  const start = (value: string) => ({ annotations: { 'vmwright.dev/maintenance-start': value } });
  put(Node, node('annotated', start('soon')));
  expect(blocker('annotated')).toEqual({ reason: 'FactsUnknown', message: expect.stringContaining('soon') });
  expect(facts.facts.warnings).toHaveLength(1);
  put(Node, node('annotated', start('2026-12-01T08:00:00Z')));
  expect(blocker('annotated')).toBeUndefined();

  const labels = { 'cloud.google.com/scheduled-maintenance-time': 'soon' };
  put(Node, { ...node('google'), metadata: { name: 'google', labels } });
  expect(blocker('google')?.reason).toBe('FactsUnknown');
  put(Node, node('karpenter'));
  put(NodeClaim, {
    metadata: { name: 'c', creationTimestamp: '2026-11-17T00:00:00Z' },
    spec: { expireAfter: '30d' },
    status: { nodeName: 'karpenter' },
  });
  expect(blocker('karpenter')?.reason).toBe('FactsUnknown');
});

test('maintenance with an invalid end does not block the node', () => {
  const { facts, put, candidate } = setUp();
  const annotations = {
    'vmwright.dev/maintenance-start': '2026-12-01T08:00:00Z',
    'vmwright.dev/maintenance-end': 'later',
  };
  put(Node, node('a', { annotations }));
  expect(candidate('a')?.blocker).toBeUndefined();
  expect(facts.facts.warnings).toHaveLength(1);
});

test('an invalid maintenance annotation is ignored if maintenance is simulated', () => {
  const { facts, put, candidate } = setUp({ simulationSeed: 's' });
  put(Node, node('a', { annotations: { 'vmwright.dev/maintenance-start': 'soon' } }));
  expect([candidate('a')?.blocker, facts.facts.warnings]).toEqual([undefined, []]);
});

test('the condition MaintenancePlanned is ignored only if the Node itself announces the time of the maintenance', () => {
  const { put, candidate } = setUp();
  const planned = (annotations: Record<string, string>): Node => {
    const { status, ...rest } = node('a', { annotations });
    const conditions = [...(status?.conditions ?? []), { type: 'MaintenancePlanned', status: 'True' }];
    return { ...rest, status: { ...status, conditions } };
  };
  const sources = () => candidate('a')?.maintenance.map(({ source }) => source);
  put(NodeClaim, {
    metadata: { name: 'c', creationTimestamp: '2026-11-17T00:00:00Z' },
    spec: { expireAfter: '720h' },
    status: { nodeName: 'a' },
  });
  put(Node, planned({}));
  expect(sources()).toEqual(['condition MaintenancePlanned', 'expireAfter of NodeClaim c']);
  put(Node, planned({ 'vmwright.dev/maintenance-start': '2026-12-01T08:00:00Z' }));
  expect(sources()).toEqual(['annotation vmwright.dev/maintenance-start', 'expireAfter of NodeClaim c']);
});

test('nodes are blocked until the calendar file was read successfully', () => {
  const file: { calendar: Calendar | undefined; problem: string | undefined } = {
    calendar: undefined,
    problem: 'the calendar file x is not in use: broken',
  };
  let changed = () => undefined as void;
  const subscribe = (listener: () => void) => {
    changed = listener;
    return () => undefined;
  };
  const calendar = {
    subscribe,
    get calendar() {
      return file.calendar;
    },
    get problem() {
      return file.problem;
    },
  };
  const { facts, put, notified, candidate } = setUp({ calendar });
  put(Node, node('a'));
  expect(candidate('a')?.blocker?.reason).toBe('FactsUnknown');
  expect(facts.facts.warnings).toEqual([{ message: file.problem }]);
  notified();
  const window = '{ name: w, start: 2026-12-01T08:00:00Z, end: 2026-12-01T09:00:00Z, nodes: [a] }';
  file.calendar = new Calendar(parseCalendar(`windows: [${window}]`));
  file.problem = undefined;
  changed();
  expect(notified()).toBe(1);
  expect(candidate('a')).toMatchObject({ blocker: undefined, maintenance: [{ source: "calendar 'w'" }] });
});

test('a warning says that pods of other namespaces are not watched if the namespaces are limited', () => {
  const { facts } = setUp({ namespaces: ['ml', 'hpc'] });
  expect(facts.facts.warnings).toEqual([
    { message: 'pods outside the namespaces ml, hpc are not watched; the GPUs that they use count as free' },
  ]);
});

test('with simulated facts, nodes keep their real blockers, and the facts change at midnight (UTC)', () => {
  const { clock, facts, put, notified, candidate } = setUp({ simulationSeed: 's' });
  put(Node, node('a', { gpus: 8, spec: { unschedulable: true } }));
  expect(facts.facts.isSimulated).toBe(true);
  expect(candidate('a')).toMatchObject({
    blocker: { reason: 'Unschedulable' },
    maintenance: [{ source: 'simulation' }],
  });
  expect(candidate('a')?.resource).toBeUndefined();
  notified();
  clock.advance(11 * HOUR);
  expect(notified()).toBe(0);
  clock.advance(HOUR);
  expect(notified()).toBe(1);
});

test('the simulated maintenance of a reserved node does not change until the reservation ends', () => {
  const { clock, put, candidate } = setUp({ simulationSeed: 's' });
  put(Node, node('a'));
  const start = () => candidate('a')?.maintenance[0]?.startsAt ?? 0;
  const before = start();
  const status = {
    phase: 'Reserved',
    suitableNodeName: 'a',
    decidedBy: 'simulation',
    availableUntil: new Date(before).toISOString(),
  } as const;
  put(GPUInfo, { ...info, status });
  clock.advance(3 * 24 * HOUR);
  expect(start()).toBe(before);
  put(GPUInfo, { ...info, status: { ...status, phase: 'Ended' } });
  expect(start()).toBe(before + 3 * 24 * HOUR);
});
