import { expect, test } from 'vitest';
import type { JobSet, Pod } from './kinds.ts';
import { PodUses } from './pod-uses.ts';
import { job } from './testing.ts';

interface PodOptions {
  readonly node?: string;
  readonly gpus?: number;
  readonly info?: string;
  readonly uid?: string;
  readonly job?: string;
  readonly phase?: string;
  readonly namespace?: string;
}

function pod(
  name: string,
  { node, gpus = 0, info, uid = 'u1', job, phase = 'Running', namespace = 'ml' }: PodOptions,
): Pod {
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: job ?? '', controller: true };
  return {
    metadata: {
      name,
      namespace,
      ...(info !== undefined && {
        labels: { 'vmwright.dev/gpuinfo': info },
        annotations: { 'vmwright.dev/gpuinfo-uid': uid },
      }),
      ...(job !== undefined && { ownerReferences: [owner] }),
    },
    spec: {
      ...(node !== undefined && { nodeName: node }),
      containers: [{ resources: { requests: { cpu: '1', memory: '1Mi', 'nvidia.com/gpu': gpus } } }],
    },
    status: { phase },
  };
}

function setUp() {
  const changed: string[] = [];
  const uses = new PodUses({
    changed: (node) => changed.push(node),
    usageChanged: (node) => changed.push(`usage of ${node}`),
    jobsChanged: () => changed.push('jobs'),
  });
  const pods = new Map<string, Pod>();
  const show = (key: string, after: Pod | undefined) => {
    uses.onPod(key, pods.get(key), after);
    if (after === undefined) pods.delete(key);
    else pods.set(key, after);
  };
  const job = (uid: string, condition?: string, isGone = false) => {
    const status = condition === undefined ? {} : { conditions: [{ type: condition, status: 'True' }] };
    uses.onJob({ metadata: { name: 'j', namespace: 'ml', uid }, status }, isGone);
  };
  const info = (name: string, uid: string, isGone = false, namespace = 'ml') =>
    uses.onInfo({ metadata: { namespace, name, uid } }, isGone);
  const notified = () => changed.splice(0);
  return { uses, show, job, info, notified };
}

/** Returns the state of each job by UID of the GPUInfo. */
const states = (uses: PodUses) => new Map([...uses.jobs()].map(([uid, { state }]) => [uid, state]));

/** Metadata of a Job that a JobSet controls. */
const IN_JOB_SET = {
  name: 'j',
  namespace: 'ml',
  uid: 'j1',
  ownerReferences: [
    { apiVersion: 'jobset.x-k8s.io/v1alpha2', kind: 'JobSet', name: 's', uid: 's', controller: true },
  ],
};

const gpusOn = (uses: PodUses, node: string) => uses.usesOf(node, 'nvidia.com/gpu');

test('GPUs of a pod count as used on its node until the pod has finished', () => {
  const { uses, show, notified } = setUp();
  show('ml/a', pod('a', { gpus: 2 }));
  expect(notified()).toEqual([]);
  show('ml/a', pod('a', { gpus: 2, node: 'n1' }));
  expect(gpusOn(uses, 'n1')).toEqual([{ holder: undefined, gpus: 2 }]);
  expect(notified()).toEqual(['usage of n1', 'n1']);
  show('ml/b', pod('b', { gpus: 1, node: 'n1' }));
  expect(gpusOn(uses, 'n1')).toEqual([{ holder: undefined, gpus: 3 }]);
  show('ml/a', pod('a', { gpus: 2, node: 'n1', phase: 'Succeeded' }));
  expect(gpusOn(uses, 'n1')).toEqual([{ holder: undefined, gpus: 1 }]);
  show('ml/b', undefined);
  expect(gpusOn(uses, 'n1')).toEqual([]);
  expect(uses.requestsOn('n1')).toEqual({ cpuMillicores: 0, memoryBytes: 0 });
});

test('a pod without accelerators changes only the CPU and memory usage of its node', () => {
  const { uses, show, notified } = setUp();
  show('ml/a', pod('a', { node: 'n1' }));
  show('ml/b', pod('b', { node: 'n1' }));
  expect(uses.requestsOn('n1')).toEqual({ cpuMillicores: 2_000, memoryBytes: 2 * 2 ** 20 });
  expect(notified()).toEqual(['usage of n1', 'usage of n1']);
});

test('the holder of GPUs that a pod uses is the GPUInfo of the pod', () => {
  const { uses, show, info } = setUp();
  info('training', 'u1');
  show('ml/a', pod('a', { node: 'n1', gpus: 1, info: 'training' }));
  show('ml/b', pod('b', { node: 'n1', gpus: 2, info: 'training' }));
  show('ml/c', pod('c', { node: 'n1', gpus: 4 }));
  expect(gpusOn(uses, 'n1')).toEqual([
    { holder: 'u1', gpus: 3 },
    { holder: undefined, gpus: 4 },
  ]);
  expect(uses.holderOf('ml/a')).toBe('u1');
});

test('a pod uses a GPUInfo only in its own namespace, and only with the UID in the annotation of the pod', () => {
  const { uses, show, info } = setUp();
  info('training', 'u1', false, 'other');
  show('ml/a', pod('a', { node: 'n1', gpus: 1, info: 'training', uid: 'u1' }));
  expect(uses.holderOf('ml/a')).toBeUndefined();
  expect(states(uses)).toEqual(new Map());
  info('training', 'u2');
  expect(uses.holderOf('ml/a')).toBeUndefined();
  info('training', 'u2', true);
  info('training', 'u1');
  expect(uses.holderOf('ml/a')).toBe('u1');
});

test('the node of a pod is reported as changed when the GPUInfo of the pod appears or disappears', () => {
  const { show, info, notified } = setUp();
  show('ml/a', pod('a', { node: 'n1', gpus: 1, info: 'training' }));
  notified();
  info('training', 'u1');
  expect(notified()).toEqual(['n1', 'jobs']);
  info('training', 'u1');
  expect(notified()).toEqual([]);
  info('training', 'u1', true);
  expect(notified()).toEqual(['n1', 'jobs']);
});

test('pods without a Job count as a job, which has ended when all of them have finished', () => {
  const { uses, show, info } = setUp();
  info('training', 'u1');
  show('ml/a', pod('a', { info: 'training', phase: 'Pending' }));
  expect(states(uses)).toEqual(new Map([['u1', 'Active']]));
  show('ml/a', pod('a', { info: 'training', phase: 'Failed' }));
  expect(states(uses)).toEqual(new Map([['u1', 'Ended']]));
  show('ml/b', pod('b', { info: 'training', phase: 'Running' }));
  expect(states(uses)).toEqual(new Map([['u1', 'Active']]));
  show('ml/a', undefined);
  show('ml/b', undefined);
  expect(states(uses)).toEqual(new Map());
});

test('a Job is active until it is complete, even while it has no pods between two attempts', () => {
  const { uses, show, job, info, notified } = setUp();
  info('training', 'u1');
  job('j1');
  show('ml/a', pod('a', { node: 'n1', info: 'training', job: 'j1' }));
  show('ml/a', pod('a', { node: 'n1', info: 'training', job: 'j1', phase: 'Failed' }));
  expect(states(uses)).toEqual(new Map([['u1', 'Active']]));
  show('ml/a', undefined);
  expect(states(uses)).toEqual(new Map([['u1', 'Active']]));
  show('ml/b', pod('b', { node: 'n1', info: 'training', job: 'j1', phase: 'Succeeded' }));
  notified();
  job('j1', 'Complete');
  expect(notified()).toEqual(['jobs']);
  expect(states(uses)).toEqual(new Map([['u1', 'Ended']]));
  job('j1', 'Complete', true);
  expect(states(uses)).toEqual(new Map([['u1', 'Ended']]));
  show('ml/b', undefined);
  expect(states(uses)).toEqual(new Map());
});

test('a Job that the watch has not delivered yet is active', () => {
  const { uses, show, job, info } = setUp();
  info('training', 'u1');
  show('ml/a', pod('a', { info: 'training', job: 'j1', phase: 'Failed' }));
  expect(states(uses)).toEqual(new Map([['u1', 'Active']]));
  job('j1', 'Failed');
  expect(states(uses)).toEqual(new Map([['u1', 'Ended']]));
});

test('a Job without known pods is active if its pod template names the GPUInfo and it has had pods', () => {
  const { uses, info, notified } = setUp();
  const spec = { template: { metadata: { labels: { 'vmwright.dev/gpuinfo': 'training' } } } };
  const metadata = { name: 'j', namespace: 'ml', uid: 'j1' };
  info('training', 'u1');
  uses.onJob({ metadata, spec, status: {} }, false);
  expect([states(uses), notified()]).toEqual([new Map([['u1', 'Waiting']]), ['jobs']]); // no pod was observed yet
  uses.onJob({ metadata, spec, status: { failed: 1 } }, false);
  expect([states(uses), notified()]).toEqual([new Map([['u1', 'Active']]), ['jobs']]);
  info('training', 'u1', true);
  expect([states(uses), notified()]).toEqual([new Map(), ['jobs']]);
  info('training', 'u2');
  uses.onJob(
    { metadata, spec, status: { failed: 1, conditions: [{ type: 'Failed', status: 'True' }] } },
    false,
  );
  expect(states(uses)).toEqual(new Map());
});

test('a Job does not use a GPUInfo if its pods used an earlier GPUInfo of the same name', () => {
  const { uses, show, info } = setUp();
  const spec = { template: { metadata: { labels: { 'vmwright.dev/gpuinfo': 'training' } } } };
  info('training', 'u2');
  show('ml/a', pod('a', { info: 'training', uid: 'u1', job: 'j1', phase: 'Failed' }));
  uses.onJob({ metadata: { name: 'j', namespace: 'ml', uid: 'j1' }, spec, status: { failed: 1 } }, false);
  expect(states(uses)).toEqual(new Map());
});

test('a deleted Job has ended, even while its pods still exist', () => {
  const { uses, show, job, info } = setUp();
  info('training', 'u1');
  job('j1');
  show('ml/a', pod('a', { node: 'n1', gpus: 1, info: 'training', job: 'j1' }));
  job('j1', undefined, true);
  expect(states(uses)).toEqual(new Map([['u1', 'Ended']]));
  expect(gpusOn(uses, 'n1')).toEqual([{ holder: 'u1', gpus: 1 }]);
  show('ml/a', undefined);
  expect(states(uses)).toEqual(new Map());
});

test('the facts about a job contain the nodes of bound pods and the nodes that pending pods wait for', () => {
  const { uses, show, info } = setUp();
  const term = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n2'] }] };
  const affinity = {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } },
  };
  const waiting = pod('b', { info: 'training', phase: 'Pending' });
  info('training', 'u1');
  show('ml/a', pod('a', { node: 'n1', info: 'training' }));
  show('ml/b', { ...waiting, spec: { ...waiting.spec, affinity } });
  expect(uses.jobs().get('u1')).toEqual(job('Active', ['n1'], { pinnedTo: ['n2'] }));
  show('ml/b', { ...waiting, spec: { ...waiting.spec, affinity, nodeName: 'n2' } });
  show('ml/a', pod('a', { node: 'n1', info: 'training', phase: 'Failed' }));
  expect(uses.jobs().get('u1')).toEqual(job('Active', ['n2']));
});

test('a job may be started again if its pods or its Jobs have a controller', () => {
  const { uses, show, job: showJob, info } = setUp();
  info('training', 'u1');
  const mayRestart = () => uses.jobs().get('u1')?.mayRestart;
  show('ml/a', pod('a', { info: 'training' }));
  expect(mayRestart()).toBe(false);
  const set = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 's', uid: 's', controller: true };
  const owned = pod('a', { info: 'training' });
  show('ml/a', { ...owned, metadata: { ...owned.metadata, ownerReferences: [set] } });
  expect(mayRestart()).toBe(true);
  show('ml/a', pod('a', { info: 'training', job: 'j1' }));
  showJob('j1');
  expect(mayRestart()).toBe(false);
  uses.onJob({ metadata: IN_JOB_SET }, false);
  expect(mayRestart()).toBe(true);
  uses.onJob({ metadata: IN_JOB_SET }, true);
  expect(uses.jobs().get('u1')).toMatchObject({ state: 'Ended', mayRestart: true });
});

test('a complete Job of a JobSet counts as ended only when the JobSet has ended', () => {
  const { uses, show, info, notified } = setUp();
  const template = { metadata: { labels: { 'vmwright.dev/gpuinfo': 'training' } } };
  const set = (status: JobSet['status'] = {}, deletionTimestamp?: string): JobSet => ({
    metadata: { name: 's', namespace: 'ml', uid: 's', ...(deletionTimestamp && { deletionTimestamp }) },
    spec: { replicatedJobs: [{ template: { spec: { template } } }] },
    status,
  });
  const complete = { conditions: [{ type: 'Complete', status: 'True' }] };
  const facts = () => uses.jobs().get('u1');
  info('training', 'u1');
  uses.onJobSet(set(), false);
  expect([facts(), notified()]).toEqual([job('Waiting', [], { mayRestart: true }), ['jobs']]);
  uses.onJob({ metadata: IN_JOB_SET }, false);
  show('ml/a', pod('a', { node: 'n1', info: 'training', job: 'j1' }));
  show('ml/a', pod('a', { node: 'n1', info: 'training', job: 'j1', phase: 'Succeeded' }));
  uses.onJob({ metadata: IN_JOB_SET, status: complete }, false);
  expect(facts(), 'one of its Jobs is complete').toEqual(job('Active', [], { mayRestart: true }));
  notified();
  uses.onJobSet(set({ terminalState: 'Completed' }), false);
  expect([facts(), notified()]).toEqual([job('Ended', [], { isOver: true }), ['jobs']]);

  uses.onJobSet(set(), false); // back to the state before the JobSet ended
  uses.onJob({ metadata: IN_JOB_SET, status: complete }, true);
  show('ml/a', undefined);
  expect(facts(), 'it starts its Jobs again').toEqual(job('Waiting', [], { mayRestart: true }));
  uses.onJob({ metadata: IN_JOB_SET }, false);
  show('ml/a', pod('a', { node: 'n1', info: 'training', job: 'j1' }));
  uses.onJobSet(set({}, '2026-01-01T00:00:00Z'), false);
  expect(facts(), 'it is being deleted').toEqual(job('Active', ['n1'], { isOver: true }));
  uses.onJobSet(set(), true);
  uses.onJob({ metadata: IN_JOB_SET }, true);
  expect(facts(), 'it is gone, and its pods are ending').toEqual(job('Ended', ['n1'], { isOver: true }));
});

test('while a JobSet has not been observed, its Jobs may be started again', () => {
  const { uses, show, info } = setUp();
  info('training', 'u1');
  show('ml/a', pod('a', { info: 'training', job: 'j1', phase: 'Succeeded' }));
  uses.onJob({ metadata: IN_JOB_SET, status: { conditions: [{ type: 'Complete', status: 'True' }] } }, false);
  expect(uses.jobs().get('u1')).toEqual(job('Ended', [], { mayRestart: true }));
});

test('Jobs without a GPUInfo cause no notification', () => {
  const { show, job, notified } = setUp();
  job('j1');
  show('ml/a', pod('a', { job: 'j1' }));
  job('j1', 'Complete');
  job('j1', 'Complete', true);
  expect(notified()).toEqual([]);
});
