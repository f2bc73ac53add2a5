import { field, type KubeObject, type Part, startOperator } from '@vmwright/testbed';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { GPUInfo } from '../src/gpuinfo/resource.ts';
import { answerTimes } from './answer-times.ts';
import { QUICK_ELECTION, SYSTEM } from './installed.ts';
import { expectExactPermissions, permissionsFor } from './permissions.ts';
import { install, PATHS, resourcesOf, type WithGpus } from './with-gpus.ts';

/* Tests GPUInfos without vCenter: all facts about nodes come from Kubernetes. */

let env: WithGpus;
beforeAll(async () => {
  env = await install({ audit: true });
  await env.node('gpu-a', 1);
  await env.node('gpu-b', 1);
  await env.node('cpu-a');
}, 120_000);
afterAll(() => env?.[Symbol.asyncDispose]());

/** Deletes all requests and pods, and restores the nodes. */
afterEach(async () => {
  const { cluster } = env.controlPlane;
  for (const collection of [PATHS.infos, PATHS.jobs, PATHS.pods])
    for (const { metadata } of await cluster.api.list(collection))
      await env.remove(`${collection}/${metadata.name}`);
  for (const name of ['gpu-a', 'gpu-b'])
    await cluster.api.merge(`${PATHS.nodes}/${name}`, {
      metadata: { annotations: { [MAINTENANCE]: null } },
      spec: { unschedulable: null, taints: null },
    });
  for (const name of ['gpu-a', 'gpu-b']) await env.suitable(name);
});

const MAINTENANCE = 'vmwright.dev/maintenance-start';
const status = (info: KubeObject, name: string) => field(info, 'status', name);
const api = () => env.controlPlane.cluster.api;
const patchNode = (name: string, patch: object) => api().merge(`${PATHS.nodes}/${name}`, patch);

const { after } = answerTimes();

describe('invalid requests are rejected with a message', () => {
  test.each([
    [{ desAccTime: -1 }, 'desAccTime must be 0 or more hours'],
    [{ desAccTime: 1_000_001 }, 'desAccTime must be at most 1000000 hours'],
    [{ gpuCount: 0 }, 'gpuCount must be a number from 1 to 1024'],
    [{ gpuRequired: false, gpuCount: 1 }, 'gpuCount needs gpuRequired: true'],
    [{ gpuRequired: undefined, gpuModel: 'A100' }, 'gpuModel needs gpuRequired: true'],
    [
      { policy: 'Best' },
      'Unsupported value: "Best": supported values: "LeastCpu", "LeastMemory", "Pack", "Spread"',
    ],
  ])('the spec %j is rejected', async (spec, message) => {
    await expect(env.info('invalid', spec)).rejects.toThrow(message);
  });
});

describe('requests', () => {
  test('a request gets the GPU node with the lowest usage, and its status explains the choice', async () => {
    await env.info('train');
    const info = await env.reserved('train', 'gpu-a');
    expect(info.status).toMatchObject({
      phase: 'Reserved',
      suitableHostName: 'gpu-a',
      availableAcceleratorTime: 8_760,
      decidedBy: 'horizon of 8760 h, because no maintenance is known',
      summary: '3 nodes: 2 suitable, 1 without GPU',
      candidates: [
        { node: 'gpu-a', host: 'gpu-a', suitable: true, availableHours: 8_760 },
        { node: 'gpu-b', host: 'gpu-b', suitable: true, availableHours: 8_760 },
        { node: 'cpu-a', host: 'cpu-a', suitable: false, reason: 'NoGpu', message: 'it has no GPU' },
      ],
      placement: { activeDeadlineSeconds: 360_000, resources: { limits: { 'nvidia.com/gpu': '1' } } },
    });
    expect(await env.reservation('train')).toMatchObject({ key: 'ml/train', node: 'gpu-a', gpus: 1 });
    expect(await env.event('train', 'Reserved')).toMatch(/^1 GPU of node gpu-a is reserved until 20/);
  });

  test('a request gets a node without GPUs if it needs no GPU', async () => {
    await env.info('batch', { gpuRequired: undefined });
    const info = await env.reserved('batch', 'cpu-a');
    expect(field(info, 'spec', 'gpuRequired'), 'the default').toBe(false);
  });

  test('a request waits for a GPU that another request has reserved, until the other request is deleted', async () => {
    await Promise.all(['a', 'b', 'c'].map((name) => env.info(name)));
    const all = () => api().list(PATHS.infos);
    await expect
      .poll(async () => (await all()).map((info) => status(info, 'suitableNodeName')).toSorted())
      .toEqual(['None available', 'gpu-a', 'gpu-b']);
    const winner = (await all()).find((info) => status(info, 'suitableNodeName') === 'gpu-a');
    const loser = (await all()).find((info) => status(info, 'phase') === 'Pending');
    expect(loser?.status).toMatchObject({
      nodeCPUUsage: 0,
      nodeMemoryUsage: 0,
      availableAcceleratorTime: 0,
      suitableHostName: 'None available',
      summary: '3 nodes: 1 without GPU, 2 reserved',
    });
    const waiting = await env.pending(String(loser?.metadata.name), 'AllReserved');
    expect(Date.parse(String(status(waiting, 'fitsFrom')))).toBeGreaterThan(Date.now());
    await after(
      'request deleted',
      () => api().delete(`${PATHS.infos}/${winner?.metadata.name}`),
      () => env.reserved(String(loser?.metadata.name), 'gpu-a'),
    );
  });

  test('a request is answered again when its spec changes', async () => {
    await env.info('train', { gpuCount: 2 });
    await env.pending('train', 'TooFewGpus');
    await api().merge(`${PATHS.infos}/train`, { spec: { gpuCount: 1 } });
    await env.reserved('train', 'gpu-a');
  });
});

describe('changes of nodes', () => {
  const noExecute = [{ key: 'maintenance', value: 'soon', effect: 'NoExecute' }];
  const soon = new Date(Date.now() + 50 * 3_600_000).toISOString();
  test.each([
    ['cordon', { spec: { unschedulable: true } }, 'the node is cordoned'],
    ['taint', { spec: { taints: noExecute } }, 'taint maintenance=soon:NoExecute'],
    ['maintenance', { metadata: { annotations: { [MAINTENANCE]: soon } } }, `maintenance at ${soon}`],
  ])('another node is reserved after %s of the node', async (what, patch, cause) => {
    await env.info(what);
    await env.reserved(what, 'gpu-a');
    await after(
      what,
      () => patchNode('gpu-a', patch),
      () => env.reserved(what, 'gpu-b'),
    );
    expect(await env.event(what, 'Moved')).toContain(`Node gpu-a is no longer reserved: ${cause}`);
  });

  test('another node is reserved after a pod takes the GPU', async () => {
    await env.info('train');
    await env.reserved('train', 'gpu-a');
    await after(
      'GPU taken by a pod',
      () => env.pod('thief', 'gpu-a', 1),
      () => env.reserved('train', 'gpu-b'),
    );
  });

  test('after the only suitable node is deleted, a request waits until another one is added', async () => {
    await env.node('gpu-c', 4, { pool: 'large' });
    await env.info('train', { gpuCount: 4, nodeSelector: { pool: 'large' } });
    await env.reserved('train', 'gpu-c');
    const { cluster } = env.controlPlane;
    const lost = await after(
      'node deleted',
      () => cluster.api.delete(`${PATHS.nodes}/gpu-c`),
      () => env.pending('train', 'NoMatchingNode'),
    );
    expect(status(lost, 'suitableNodeName')).toBe('None available');
    await after(
      'node added',
      () => env.node('gpu-d', 4, { pool: 'large' }),
      () => env.reserved('train', 'gpu-d'),
    );
    await cluster.api.delete(`${PATHS.nodes}/gpu-d`);
    await cluster.waitForGone(`${PATHS.nodes}/gpu-d`);
  });
});

describe('jobs', () => {
  const job = (name: string, info: string) => ({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name },
    spec: {
      template: {
        metadata: { labels: { 'vmwright.dev/gpuinfo': info } },
        spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'a', resources: resourcesOf(1) }] },
      },
    },
  });

  test('a job runs on the reserved node, and releases the GPU when it ends', async () => {
    const { cluster } = env.controlPlane;
    await cluster.api.create(PATHS.infos, {
      apiVersion: 'topology.corinternal.com/v1',
      kind: 'GPUInfo',
      metadata: { name: 'train' },
      spec: { desAccTime: 100, gpuRequired: true, nodeSelector: { 'kubernetes.io/hostname': 'gpu-b' } },
    });
    await env.reserved('train', 'gpu-b');
    await env.info('next', { nodeSelector: { 'kubernetes.io/hostname': 'gpu-b' } });
    await env.pending('next', 'AllReserved');
    await cluster.api.create(PATHS.jobs, job('train', 'train'));
    const ended = await env.until('train', (info) => status(info, 'phase') === 'Ended');
    expect(status(ended, 'message')).toContain('because its job has ended');
    expect(await env.event('train', 'ReservationEnded')).toContain('The reservation of node gpu-b ended');
    const [pod] = await cluster.api.list(`${PATHS.pods}?labelSelector=vmwright.dev/gpuinfo=train`);
    expect(field(pod, 'spec', 'nodeName')).toBe('gpu-b');
    await env.reserved('next', 'gpu-b');
  });
});

describe('restarts of the operator', () => {
  test('a restart of the operator keeps a stored reservation even if the status was not written yet', async () => {
    await env.operator.stop();
    const { metadata } = await env.info('train');
    const from = new Date().toISOString();
    const reservation = { key: 'ml/train', generation: 1, node: 'gpu-b', pool: 'node/gpu-b', gpus: 1, from };
    await store(metadata.uid, { ...reservation, until: new Date(Date.now() + 360_000_000).toISOString() });
    await env.operator.start();
    await env.reserved('train', 'gpu-b'); // a new choice would be gpu-a
    expect(await env.reservation('train')).toMatchObject({ node: 'gpu-b', from });
  });

  test('a restart of the operator keeps the end time of a reservation', async () => {
    await env.info('train');
    await env.reserved('train', 'gpu-a');
    await env.operator.stop();
    const reservation = await env.reservation('train');
    const { uid } = (await api().get(`${PATHS.infos}/train`)).metadata;
    await store(uid, { ...Object(reservation), until: new Date(Date.now() + 3_000).toISOString() });
    await env.operator.start();
    const ended = await env.until('train', (info) => status(info, 'phase') === 'Ended');
    expect(status(ended, 'suitableNodeName')).toBe('None available');
    expect(status(ended, 'message')).toContain('because desAccTime has passed');
    await api().merge(`${PATHS.infos}/train`, { spec: { desAccTime: 50 } });
    await env.reserved('train', 'gpu-a');
  });

  test('a restart of the operator restores a reservation from the status if the ConfigMap has lost it', async () => {
    await patchNode('gpu-a', { spec: { unschedulable: true } });
    const { metadata } = await env.info('train');
    await env.reserved('train', 'gpu-b');
    const before = await env.reservation('train');
    await patchNode('gpu-a', { spec: { unschedulable: null } });
    await env.operator.stop();
    await api().merge(PATHS.ledger, { data: { [metadata.uid]: null } });
    await env.operator.start();
    await expect.poll(() => env.reservation('train')).toEqual(before); // a new choice would be gpu-a
  });

  test('a restart of the operator with other --namespaces releases only the reservations of deleted objects', async () => {
    await env.info('kept');
    await env.reserved('kept', 'gpu-a');
    await env.info('gone');
    await env.reserved('gone', 'gpu-b');
    await env.operator.stop();
    await env.remove(`${PATHS.infos}/gone`);
    const other = PATHS.infos.replace('/ml/', '/default/');
    {
      const args = ['--leader-elect=false', '--namespaces=default'];
      await using operator = await startOperator({ ...replica(), args });
      await api().create(other, {
        apiVersion: 'topology.corinternal.com/v1',
        kind: 'GPUInfo',
        metadata: { name: 'next' },
        spec: { desAccTime: 100, gpuRequired: true },
      });
      const { cluster } = env.controlPlane;
      await cluster.waitFor(`${other}/next`, (info) => status(info, 'suitableNodeName') === 'gpu-b');
      expect(await env.metrics(operator)).toContain(
        'vmwright_gpu_unwatched_reservations{object="Exists"} 1\n',
      );
    }
    await env.remove(`${other}/next`);
    await env.operator.start();
    expect(await env.reservation('kept')).toMatchObject({ node: 'gpu-a' });
  });

  /** Stores a reservation but no status, like an operator that crashes after the first of these two writes. */
  async function store(uid: string | undefined, reservation: object) {
    await api().merge(PATHS.ledger, { data: { [String(uid)]: JSON.stringify(reservation) } });
  }
});

describe('two replicas', () => {
  const replicas: Part[] = [];
  beforeAll(async () => {
    await env.operator.stop();
    for (let index = 0; index < 2; index++)
      replicas.push(await startOperator({ ...replica(), args: QUICK_ELECTION }));
  });
  afterAll(async () => {
    for (const each of replicas) await each[Symbol.asyncDispose]();
    await env.operator.start();
  });

  const leader = async (): Promise<Part> => {
    // The metrics of a killed replica cannot be read.
    for (;;) for (const each of replicas) if (await env.leads(each).catch(() => false)) return each;
  };
  const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
  const policies = `${ADMISSION}/validatingadmissionpolicies`;
  const bindings = `${ADMISSION}/validatingadmissionpolicybindings`;
  const POLICY = 'no-gpuinfo-status';

  /** Rejects all status writes of GPUInfos. @returns a function that allows them again */
  async function rejectStatuses(): Promise<() => Promise<void>> {
    const meta = { apiVersion: 'admissionregistration.k8s.io/v1', metadata: { name: POLICY } };
    const rule = { apiGroups: ['topology.corinternal.com'], apiVersions: ['v1'], operations: ['UPDATE'] };
    await api().create(policies, {
      ...meta,
      kind: 'ValidatingAdmissionPolicy',
      spec: {
        matchConstraints: { resourceRules: [{ ...rule, resources: ['gpuinfoes/status'] }] },
        validations: [{ expression: 'false', message: 'not now' }],
      },
    });
    await api().create(bindings, {
      ...meta,
      kind: 'ValidatingAdmissionPolicyBinding',
      spec: { policyName: POLICY, validationActions: ['Deny'] },
    });
    await env.info('probe', { gpuCount: 9 });
    const probe = () =>
      api().merge(`${PATHS.infos}/probe/status?dryRun=All`, { status: { message: `${Math.random()}` } });
    await expect.poll(() => probe().catch(String)).toContain('not now');
    return async () => {
      await api().delete(`${bindings}/${POLICY}`);
      await api().delete(`${policies}/${POLICY}`);
      await expect.poll(() => probe().catch(String)).not.toContain('not now');
      await env.remove(`${PATHS.infos}/probe`);
    };
  }

  test('after the leader is killed, the standby answers with the reservation that the leader stored', async () => {
    const first = await leader();
    const allow = await rejectStatuses();
    const infos = await Promise.all(['a', 'b'].map((name) => env.info(name)));
    const isStored = (ledger: KubeObject) =>
      infos.every(({ metadata }) => field(ledger, 'data', metadata.uid) !== undefined);
    const stored = await env.controlPlane.cluster.waitFor(PATHS.ledger, isStored);
    await first.kill();
    await allow();
    for (const { metadata } of infos) {
      const reservation = JSON.parse(String(field(stored, 'data', metadata.uid)));
      await env.reserved(metadata.name, reservation.node);
      expect(await env.reservation(metadata.name)).toEqual(reservation);
    }
    expect(await leader()).not.toBe(first);
    await first.start();
  });

  test('a GPU never has two owners, even if the leader is killed while requests are created', async () => {
    const stop = new AbortController();
    const owners = new Map<string, Set<unknown>>();
    const auditing = auditOwners(owners, stop.signal);
    for (let round = 0; round < 4; round++) {
      const first = await leader();
      const names = ['x', 'y', 'z'].map((name) => `${name}${round}`);
      const created = Promise.all(names.map((name) => env.info(name)));
      if (round % 2 === 1) await created; // even rounds kill the leader while requests are still being created
      await first.kill();
      await created;
      const nodes = async () => {
        const infos = await api().list(PATHS.infos);
        return infos.map((info) => status(info, 'suitableNodeName')).toSorted();
      };
      await expect.poll(nodes).toEqual(['None available', 'gpu-a', 'gpu-b']);
      // Proves that the audit works: it must have seen an owner of each of the two GPUs in this round.
      const isAudited = (node: string) => names.some((name) => owners.get(`node/${node}`)?.has(`ml/${name}`));
      for (const node of ['gpu-a', 'gpu-b']) await expect.poll(() => isAudited(node)).toBe(true);
      await first.start();
      for (const name of names) await env.remove(`${PATHS.infos}/${name}`);
    }
    stop.abort();
    expect(await auditing).toEqual([]);
  });

  /**
   * Reads all versions of the stored reservations until the signal aborts.
   * @param owners receives for each pool the keys of all requests that have owned a GPU of the pool
   * @returns the versions in which a GPU has two owners
   */
  async function auditOwners(owners: Map<string, Set<unknown>>, signal: AbortSignal) {
    const doubled: unknown[] = [];
    const path = `${PATHS.ledger.slice(0, PATHS.ledger.lastIndexOf('/'))}?fieldSelector=metadata.name=vmwright-gpu-reservations`;
    try {
      for await (const { object } of api().watch(path, signal)) {
        const live = Object.values(Object(object.data))
          .map((text) => JSON.parse(String(text)))
          .filter(({ ended }) => ended === undefined);
        const pools = live.map(({ pool }) => pool); // each pool has one GPU, so a repeated pool means two owners
        if (new Set(pools).size < pools.length) doubled.push(object.data);
        for (const { pool, key } of live) owners.set(pool, (owners.get(pool) ?? new Set()).add(key));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return doubled;
  }
});

/** Options of another replica in the same cluster. */
function replica() {
  return { cluster: env.controlPlane.cluster, namespace: SYSTEM, gpuinfo: true } as const;
}

test('an idle operator writes nothing', async () => {
  await env.info('idle');
  await env.reserved('idle', 'gpu-a');
  await env.info('more', { gpuCount: 8 });
  await env.pending('more', 'TooFewGpus');
  // The operator writes the events after the status. No other test has requests with these names.
  await env.event('idle', 'Reserved');
  await env.event('more', 'NoneAvailable');
  const before = await settled();
  const { cluster } = env.controlPlane;
  // Another program changes a label of a node. This label has no effect on the statuses of GPUInfos.
  for (let index = 0; index < 5; index++)
    await cluster.api.merge(`${PATHS.nodes}/cpu-a`, { metadata: { labels: { beat: String(index) } } });
  await env.info('last', { gpuRequired: false });
  await env.reserved('last', 'cpu-a');
  await env.event('last', 'Reserved');
  // The request `last` causes up to four writes, such as reservation, status and event.
  expect(await settled()).toBeLessThanOrEqual(before + 4);
});

/**
 * Waits until the number of the operator's writes no longer grows, and returns this number. The operator counts a write
 * only after the response.
 */
async function settled(): Promise<number> {
  for (let last = -1; ; ) {
    const writes = await env.writes();
    if (writes === last) return writes;
    last = writes;
    await env.controlPlane.cluster.kubectl(['get', 'gpu', '-A']); // only to wait: the command takes some 100 ms
  }
}

// Must be the last test of the file, because it checks the requests of all other tests.
test('the operator uses exactly the permissions that it ships', async () => {
  // Events are patched only when they repeat, and none does in this file.
  await expectExactPermissions(env.controlPlane, permissionsFor(GPUInfo), ['patch events']);
});
