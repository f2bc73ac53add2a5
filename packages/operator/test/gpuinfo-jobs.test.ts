import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { condition, field, type KubeObject, manifestPath } from '@vmwright/testbed';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { install, PATHS, resourcesOf, type WithGpus } from './with-gpus.ts';

/* Pods and Jobs that use the reservation of a GPUInfo, and planned maintenance from sources other than vCenter. */

let env: WithGpus;
let folder: string;
const calendarFile = () => join(folder, 'calendar.yaml');
/** Replaces the calendar atomically, as the kubelet does, so that the operator never reads a partial file. */
async function writeCalendar(text: string): Promise<void> {
  await writeFile(`${calendarFile()}.new`, text);
  await rename(`${calendarFile()}.new`, calendarFile());
}
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'calendar-'));
  await writeCalendar('windows: []\n');
  env = await install({ args: [`--gpu-calendar=${calendarFile()}`] });
  await env.node('gpu-a', 2, { pool: 'a' });
  await env.node('gpu-b', 1, { pool: 'b' });
}, 120_000);
afterAll(async () => {
  await env?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const api = () => env.controlPlane.cluster.api;
const LABEL = 'vmwright.dev/gpuinfo';
const onB = { nodeSelector: { pool: 'b' } };
const phaseIs = (phase: string) => (object: KubeObject) => field(object, 'status', 'phase') === phase;

function podOf(name: string, info: string, spec: object = {}) {
  const containers = [{ name: 'a', image: 'a', resources: resourcesOf(1) }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { [LABEL]: info } },
    spec: { containers, ...spec },
  };
}

/** Creates a pod. @returns the pod, or the webhook's message if it rejects the pod */
function create(pod: object, path: string = PATHS.pods): Promise<KubeObject | string> {
  return api()
    .create(path, pod)
    .catch((error: unknown) => String(error));
}

const remove = (path: string) => env.remove(path);

afterEach(async () => {
  for (const collection of [PATHS.jobs, PATHS.pods, PATHS.infos])
    for (const { metadata } of await api().list(collection)) await remove(`${collection}/${metadata.name}`);
});

describe('pods of a GPUInfo', () => {
  test('a pod of a GPUInfo is scheduled to the reserved node, and the deletion of the pod ends the reservation', async () => {
    await env.info('train', onB);
    const info = await env.reserved('train', 'gpu-b');
    const own = {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'pool', operator: 'In', values: ['a', 'b'] }] }],
        },
      },
    };
    const pod = await create(podOf('train', 'train', { affinity: own }));
    expect(pod).toMatchObject({
      metadata: { annotations: { 'vmwright.dev/gpuinfo-uid': info.metadata.uid } },
      spec: {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                {
                  matchExpressions: [{ key: 'pool' }],
                  matchFields: [{ key: 'metadata.name', operator: 'In', values: ['gpu-b'] }],
                },
              ],
            },
          },
        },
      },
    });
    const seconds = Number(field(pod, 'spec', 'activeDeadlineSeconds'));
    expect(seconds).toBeGreaterThan(359_000);
    expect(seconds).toBeLessThanOrEqual(360_000);
    const running = await env.controlPlane.cluster.waitFor(`${PATHS.pods}/train`, phaseIs('Running'));
    expect(field(running, 'spec', 'nodeName')).toBe('gpu-b');
    await expect.poll(() => env.reservation('train')).toMatchObject({ inUse: true });
    await remove(`${PATHS.pods}/train`);
    await env.until('train', phaseIs('Ended'));
    const message = 'The reservation of the GPUInfo ml/train has ended';
    expect(await create(podOf('again', 'train'))).toContain(message);
  });

  test('a pod that names a GPUInfo is rejected if the namespace of the pod does not contain the GPUInfo', async () => {
    await env.info('train', onB);
    await env.reserved('train', 'gpu-b');
    const other = '/api/v1/namespaces/default/pods';
    expect(await create(podOf('thief', 'train'), other)).toContain(
      'The GPUInfo default/train does not exist. Create it, or remove the label vmwright.dev/gpuinfo from the pod',
    );
    expect(await create(podOf('thief', 'absent'))).toContain('The GPUInfo ml/absent does not exist');
  });

  test('a pod of a GPUInfo is rejected while no node is suitable, and the error contains the reason', async () => {
    await env.info('large', { gpuCount: 9 });
    await env.pending('large', 'TooFewGpus');
    expect(await create(podOf('large', 'large'))).toMatch(
      /The GPUInfo ml\/large has no node: No node is suitable for 100 h with 9 GPUs: no node has enough GPUs\. 2 nodes: 2 with too few GPUs/,
    );
  });

  test('a pod of a GPUInfo is accepted in a dry run, which does not use the reservation', async () => {
    await env.info('train', onB);
    await env.reserved('train', 'gpu-b');
    const tried = await create(podOf('trial', 'train'), `${PATHS.pods}?dryRun=All`);
    expect(field(tried, 'spec', 'affinity')).toBeDefined();
    expect(await api().list(PATHS.pods)).toEqual([]);
    expect(await env.reservation('train')).not.toHaveProperty('inUse');
  });

  test('a pod without the label vmwright.dev/gpuinfo can be created even while the operator is down', async () => {
    await env.info('train', onB);
    await env.reserved('train', 'gpu-b');
    await env.operator.stop();
    const plain = { ...podOf('plain', 'x'), metadata: { name: 'plain' } };
    expect(await create(plain)).toMatchObject({ spec: expect.not.objectContaining({ affinity: {} }) });
    expect(await create(podOf('labelled', 'train'))).toContain('failed calling webhook');
    await env.operator.start();
  });
});

const GATED = { schedulingGates: [{ name: 'example.com/hold' }] };

/** Returns the spec of a Job with pods that use a GPUInfo. */
function jobSpec(info: string, spec: object = {}, metadata: object = {}) {
  const containers = [{ name: 'a', image: 'a', resources: resourcesOf(1) }];
  return {
    template: {
      metadata: { labels: { [LABEL]: info }, ...metadata },
      spec: { restartPolicy: 'Never', containers, ...spec },
    },
  };
}

const JOB = { apiVersion: 'batch/v1', kind: 'Job' } as const;

describe('Jobs', () => {
  const job = (name: string, spec: object = {}) => ({
    ...JOB,
    metadata: { name },
    spec: jobSpec(name, spec),
  });

  /** Waits for the event that says that the pod of a Job was rejected. */
  async function failedCreate(name: string): Promise<void> {
    const note = await env.event(name, 'FailedCreate');
    expect(note).toContain(`The GPUInfo ml/${name} does not exist`);
  }

  test('a Job created before its GPUInfo waits for a reservation, and holds it until the Job completes', async () => {
    // A scheduling gate holds the pod until the test opens it.
    await api().create(PATHS.jobs, job('early', GATED));
    await failedCreate('early');
    await env.info('early', onB);
    await env.reserved('early', 'gpu-b');
    await env.info('next', onB);
    await expect.poll(() => env.reservation('early')).toMatchObject({ inUse: true });
    await env.pending('next', 'AllReserved');
    const [pod] = await api().list(`${PATHS.pods}?labelSelector=${LABEL}=early`);
    await api().merge(`${PATHS.pods}/${pod?.metadata.name}`, { spec: { schedulingGates: null } });
    await env.until('early', phaseIs('Ended'));
    await env.reserved('next', 'gpu-b');
  }, 120_000);

  test('a Job holds its reservation between two attempts, even if the operator restarts', async () => {
    await env.info('retry', onB);
    await env.reserved('retry', 'gpu-b');
    await api().create(PATHS.jobs, job('retry', GATED));
    await expect.poll(() => env.reservation('retry')).toMatchObject({ inUse: true });
    const [pod] = await api().list(PATHS.pods);
    const path = `${PATHS.pods}/${pod?.metadata.name}`;
    await api().merge(`${path}/status`, { status: { phase: 'Failed' } });
    await env.controlPlane.cluster.waitFor(
      `${PATHS.jobs}/retry`,
      (each) => field(each, 'status', 'failed') === 1,
    );
    await remove(path);
    await env.operator.restart();
    await env.info('next', onB);
    await env.pending('next', 'AllReserved');
    expect(await env.reservation('retry')).not.toHaveProperty('ended');
    await remove(`${PATHS.jobs}/retry`);
    await env.until('retry', phaseIs('Ended'));
    await env.reserved('next', 'gpu-b');
  });
});

describe('Kueue', () => {
  test('a Job that Kueue suspends keeps its reservation until the Job is deleted', async () => {
    const path = `${PATHS.jobs}/queued`;
    await env.info('queued', onB);
    await env.reserved('queued', 'gpu-b');
    const metadata = { name: 'queued', labels: { 'kueue.x-k8s.io/queue-name': 'gpus' } };
    await api().create(PATHS.jobs, {
      ...JOB,
      metadata,
      spec: { ...jobSpec('queued', GATED), suspend: true },
    });
    await api().merge(path, { spec: { suspend: false } }); // as Kueue does when it admits the Job
    await expect.poll(() => env.reservation('queued')).toMatchObject({ inUse: true });
    await api().merge(path, { spec: { suspend: true } }); // as Kueue does when it evicts the Job
    await expect.poll(async () => (await api().list(PATHS.pods)).length).toBe(0);
    await env.info('next', onB);
    await env.pending('next', 'AllReserved');
    expect(await env.reservation('queued')).not.toHaveProperty('ended');
    await remove(path);
    await env.until('queued', phaseIs('Ended'));
    await env.reserved('next', 'gpu-b');
  });
});

/* Uses the real CRD of JobSets. No JobSet controller runs: the test creates the Jobs itself. */
describe('JobSets', () => {
  const GROUP = 'jobset.x-k8s.io';
  const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const SETS = `/apis/${GROUP}/v1alpha2/namespaces/ml/jobsets`;
  beforeAll(async () => {
    const { cluster } = env.controlPlane;
    await cluster.apply([manifestPath('jobset-crds')]);
    await cluster.waitFor(`${CRDS}/jobsets.${GROUP}`, (crd) => condition(crd, 'Established') === 'True');
    await vi.waitFor(() => api().list(SETS), { timeout: 60_000 }); // the API server serves the kind a moment later
    await env.operator.restart(); // a running operator would take up to 30 s to notice the new kind
  });
  afterEach(async () => {
    for (const { metadata } of await api().list(SETS)) await remove(`${SETS}/${metadata.name}`);
  });

  /** Reserves a GPU, and creates a JobSet that uses it. @returns a function that creates a Job of the JobSet */
  async function start(name: string) {
    await env.info(name, onB);
    await env.reserved(name, 'gpu-b');
    const jobs = ['prepare', 'train'].map((each) => ({ name: each, template: { spec: jobSpec(name) } }));
    const { apiVersion, kind, metadata } = await api().create(SETS, {
      apiVersion: `${GROUP}/v1alpha2`,
      kind: 'JobSet',
      metadata: { name },
      spec: { replicatedJobs: jobs },
    });
    const owner = { apiVersion, kind, name, uid: metadata.uid, controller: true, blockOwnerDeletion: true };
    return (job: string, spec: object = {}, more: object = {}) =>
      api().create(PATHS.jobs, {
        ...JOB,
        metadata: { name: `${name}-${job}-0`, ownerReferences: [owner] },
        spec: jobSpec(name, spec, more),
      });
  }

  test('a JobSet holds its reservation until it has ended, even while it has no Jobs', async () => {
    const { cluster } = env.controlPlane;
    const create = await start('set');
    const { metadata } = await create('prepare');
    const complete = (job: KubeObject) => field(job, 'status', 'succeeded') === 1;
    await cluster.waitFor(`${PATHS.jobs}/${metadata.name}`, complete);
    await expect.poll(() => env.reservation('set')).toMatchObject({ inUse: true });
    await env.info('next', onB);
    await env.pending('next', 'AllReserved');
    await remove(`${PATHS.jobs}/${metadata.name}`); // a JobSet deletes its Jobs when it restarts them
    await expect.poll(async () => (await api().list(PATHS.pods)).length).toBe(0);
    await env.operator.restart();
    await env.info('last', onB);
    await env.pending('last', 'AllReserved');
    const reservation = await env.reservation('set');
    for (const sign of ['ended', 'idleSince']) expect(reservation).not.toHaveProperty(sign);
    // `next` and `last` may have been created in the same second. If both waited, either could get the node.
    await remove(`${PATHS.infos}/last`);
    await create('train');
    await cluster.waitFor(`${PATHS.jobs}/set-train-0`, complete);
    await api().merge(`${SETS}/set/status`, { status: { terminalState: 'Completed' } });
    await env.until('set', phaseIs('Ended'));
    await env.reserved('next', 'gpu-b');
  });

  test('a deleted JobSet releases its reservation when its Jobs are gone', async () => {
    const create = await start('deleted');
    await create('train', GATED, { finalizers: ['example.com/hold'] }); // the finalizer keeps the Job's pod after its deletion
    await expect.poll(() => env.reservation('deleted')).toMatchObject({ inUse: true, mayRestart: true });
    await remove(`${SETS}/deleted`);
    await env.until('deleted', phaseIs('Ended'));
    for (const { metadata } of await api().list(PATHS.pods))
      await api().merge(`${PATHS.pods}/${metadata.name}`, { metadata: { finalizers: null } });
  });
});

describe('devices of a DRA driver', () => {
  const DRA = '/apis/resource.k8s.io/v1';

  test('devices of a DRA driver can be reserved, and claimed with the ResourceClaimTemplate in status.placement', async () => {
    const { cluster } = env.controlPlane;
    await env.node('gpu-dra', 0, { pool: 'dra' });
    const driver = 'gpu.example.com';
    await api().create(`${DRA}/deviceclasses`, {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'DeviceClass',
      metadata: { name: driver },
      spec: { selectors: [{ cel: { expression: `device.driver == "${driver}"` } }] },
    });
    await api().create(`${DRA}/resourceslices`, {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceSlice',
      metadata: { name: 'gpu-dra' },
      spec: {
        driver,
        nodeName: 'gpu-dra',
        pool: { name: 'gpu-dra', generation: 1, resourceSliceCount: 1 },
        devices: ['gpu-0', 'gpu-1'].map((name) => ({
          name,
          attributes: { model: { string: 'LATEST-GPU-MODEL' } },
        })),
      },
    });
    await env.info('dra', { gpuModel: 'latest-*', gpuCount: 1 });
    const info = await env.reserved('dra', 'gpu-dra');
    const placement = field(info, 'status', 'placement');
    await api().create(
      `${DRA}/namespaces/ml/resourceclaimtemplates`,
      Object(field(placement, 'resourceClaimTemplate')),
    );
    const pod = podOf('dra', 'dra', { resourceClaims: field(placement, 'resourceClaims') });
    const containers = [{ name: 'a', image: 'a', resources: field(placement, 'resources') }];
    await api().create(PATHS.pods, { ...pod, spec: { ...pod.spec, containers } });
    const running = await cluster.waitFor(`${PATHS.pods}/dra`, phaseIs('Running'));
    expect(field(running, 'spec', 'nodeName')).toBe('gpu-dra');
    await expect.poll(() => env.reservation('dra')).toMatchObject({ inUse: true });

    // The reservation and the claim count as one GPU: the second GPU is free, and there is no third.
    await env.info('second', { gpuModel: 'LATEST-GPU-MODEL' });
    await env.reserved('second', 'gpu-dra');
    await env.info('third', { gpuModel: 'LATEST-GPU-MODEL' });
    await env.pending('third', 'AllReserved');
  });
});

describe('available time', () => {
  const until = (time: string, source: string) =>
    env.until(
      'time',
      (info) =>
        field(info, 'status', 'availableUntil') === time && field(info, 'status', 'decidedBy') === source,
    );

  test('status.availableUntil follows a label of the node and the calendar; an invalid label or calendar is reported', async () => {
    await env.info('time', { ...onB, desAccTime: 0 });
    await env.reserved('time', 'gpu-b');
    const node = (patch: object) => api().merge(`${PATHS.nodes}/gpu-b`, patch);
    const label = 'cloud.google.com/scheduled-maintenance-time';
    await node({ metadata: { labels: { [label]: '4102444800' } } });
    await until('2100-01-01T00:00:00.000Z', `label ${label}`);
    await writeCalendar(
      'windows: [{ name: move, start: 2099-06-01T00:00:00Z, end: 2099-06-02T00:00:00Z, nodes: [gpu-b] }]',
    );
    await until('2099-06-01T00:00:00.000Z', "calendar 'move'");
    await writeCalendar('windows: [{}]');
    const warned = await env.until('time', (info) =>
      JSON.stringify(info).includes('using its last valid content'),
    );
    expect(field(warned, 'status', 'decidedBy')).toBe("calendar 'move'");
    await writeCalendar('windows: []');
    await node({ metadata: { labels: { [label]: 'tomorrow' } } });
    await env.until('time', (info) =>
      JSON.stringify(info).includes(
        'node gpu-b: label cloud.google.com/scheduled-maintenance-time is \\"tomorrow\\"',
      ),
    );
    await node({ metadata: { labels: { [label]: null } } });
  });
});
