import { CloudClient } from '@vmwright/cloud';
import { nodeWorld } from '@vmwright/runtime';
import {
  type Cloud,
  type Cluster,
  type ControlPlane,
  consoleCommands,
  field,
  type KubeObject,
  type Postgres,
  Ssvirt,
  startCloud,
  startControlPlane,
  startDeployedMirror,
  startDeployedOperator,
  startKubeVirt,
  startPostgres,
  startVcsim,
  verifyMirror,
} from '@vmwright/testbed';
import { VcenterClient } from '@vmwright/vsphere';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { page, ROOT, sectionOf, wordsOf } from './doc-commands.ts';
import { createWorkers, placeMachines, playGpuInfoTutorial } from './gpuinfo-tutorial.ts';
import { configureBackends, SYSTEM } from './installed.ts';
import { audit } from './kubevirt-world.ts';
import { playLife } from './mirror-life.ts';
import { expectAllowed, expectExactUse } from './permissions.ts';
import { kustomized } from './rendered.ts';
import { createDatabaseRole, installShippedMirror, MIRROR_ACCOUNT } from './shipped-mirror.ts';
import { foldersOf, machinesIn } from './vcenter-inventory.ts';
import { createImageSecret, createProposed, PROPOSED } from './virtualmachine-proposal.ts';
import { createSample, deleteSample } from './vm-exercise.ts';
import { playVmGroupTutorial } from './vmgroup-tutorial.ts';
import { VMS } from './with-cloud.ts';
import { PATHS as GPU_PATHS } from './with-gpus.ts';
import { FARM, PATHS, WORK } from './with-kubevirt.ts';
import { untilStatus } from './with-mirror.ts';
import { TEMPLATE } from './with-vcenter.ts';

/*
 * Runs the walk-throughs of all systems that vmwright replaces. They run at the same time on one control plane, with
 * the manifests that users apply. All controllers are on, and each program uses the service account of its manifests.
 */

const OPERATOR_ACCOUNT = `system:serviceaccount:${SYSTEM}:vmwright`;
const DEPLOYMENT = `/apis/apps/v1/namespaces/${SYSTEM}/deployments/vmwright`;
/** Namespace of the VMs that SSVirt manages. */
const VDC = 'vdc';

const stack = new AsyncDisposableStack();
let controlPlane: ControlPlane;
let cluster: Cluster;
let cloud: Cloud;
let client: CloudClient;
let vcenter: VcenterClient;
let postgres: Postgres;
let ssvirt: Ssvirt;

beforeAll(async () => {
  cloud = stack.use(await startCloud({ prohibited: ['vmforbidden'] }));
  client = stack.use(new CloudClient({ world: nodeWorld, url: cloud.url, apiKey: cloud.apiKey }));
  const inventory = { hosts: 3, standaloneHosts: 0, vms: 4 };
  const vcsim = stack.use(await startVcsim({ inventory, templates: [TEMPLATE] }));
  const { host, username, password, ca } = vcsim;
  const credentials = () => ({ username, password });
  vcenter = stack.use(new VcenterClient({ world: nodeWorld, server: host, credentials, tls: { ca } }));
  controlPlane = stack.use(
    await startControlPlane({
      scheduler: true,
      endpointRouting: true,
      audit: [OPERATOR_ACCOUNT, MIRROR_ACCOUNT],
    }),
  );
  ({ cluster } = controlPlane);
  // virt-api is off, because it needs an ExternalName Service, which the API server's option
  // --enable-aggregator-routing does not support.
  stack.use(await startKubeVirt(controlPlane, { virtApi: false }));
  postgres = stack.use(await startPostgres({ tls: controlPlane.pki.server('postgres', []) }));
  ssvirt = stack.use(await Ssvirt.install(postgres));
  await placeMachines(vcsim);
  await createWorkers(cluster, vcenter);
  for (const name of [WORK, FARM, VDC]) await kubectl(`create namespace ${name}`);
  await createImageSecret(cluster);

  await kubectl(`apply --server-side -k ${ROOT}config/default`);
  const replicas = Number(field(await cluster.api.get(DEPLOYMENT), 'spec', 'replicas'));
  // The replicas run as local processes. The Deployment must have no pods: kwok would give them addresses, and the
  // Services would route requests to these addresses, too.
  await kubectl(`-n ${SYSTEM} scale deployment/vmwright --replicas=0`);
  await cluster.waitFor(
    DEPLOYMENT,
    ({ metadata, status }) =>
      field(status, 'observedGeneration') === field(metadata, 'generation') && !field(status, 'replicas'),
  );
  await configureBackends(
    cluster,
    { cloud, vcsim },
    { 'vm-refresh': '1s', 'image-namespaces': [FARM], 'image-creation-namespaces': [FARM] },
  );
  for (let i = 0; i < replicas; i++) stack.use(await startDeployedOperator(cluster, SYSTEM));
}, 180_000);
afterAll(() => stack.disposeAsync());

const kubectl = (line: string) => cluster.kubectl(wordsOf(line));

test('the documented steps replace another controller with the mirror', async () => {
  const id = await ssvirt.insertVm({ namespace: VDC, name: 'stale', status: 'POWERED_ON', age: 3_600 });
  const role = await createDatabaseRole(ssvirt, postgres);
  const url = `${role.href}?sslmode=require`;
  const verify = (...args: readonly string[]) =>
    verifyMirror({ cluster, database: { url }, args, env: { KUBECONFIG: cluster.kubeconfig } });
  const before = await verify();
  expect(before).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/vdc\/stale .*POWERED_ON +DELETED/),
  });
  expect(await ssvirt.status(id)).toBe('POWERED_ON');
  await installShippedMirror(cluster, role, 'ssvirt');
  stack.use(await startDeployedMirror(cluster));
  expect(await verify('--wait=30s')).toMatchObject({
    code: 0,
    stdout: 'The table agrees with the cluster.\n',
  });
  expect(await ssvirt.status(id)).toBe('DELETED');
});

/**
 * Walk-throughs by name: one per kind, and one for the mirror. Each repeats the walk-through in the documentation of
 * the older system that vmwright replaces.
 */
const WALKTHROUGHS = {
  VM: async () => {
    const vmId = await createSample(cluster, client);
    const rejected = { metadata: { name: 'rejected' }, spec: { vmname: 'vmforbidden' } };
    const kind = { apiVersion: 'samplecontroller.k8s.io/v1alpha1', kind: 'VM' };
    await expect(cluster.api.create(VMS, { ...kind, ...rejected })).rejects.toThrow(
      'The name "vmforbidden" is prohibited.',
    );
    await deleteSample(cluster, cloud, vmId);
  },
  VmGroup: () => playVmGroupTutorial(cluster, vcenter),
  GPUInfo: () => playGpuInfoTutorial(cluster),
  /** Also checks that the mirror writes the status of the machine's KubeVirt VM to a row of the database. */
  VirtualMachine: async () => {
    const id = await ssvirt.insertVm({ namespace: WORK, name: PROPOSED });
    await createProposed(cluster);
    await untilStatus(ssvirt, id, 'POWERED_OFF');
    await kubectl(`delete -n ${WORK} otvm ${PROPOSED}`);
    await untilStatus(ssvirt, id, 'DELETED');
    await cluster.waitFor(`${PATHS.images}/demo-vmdi`, () => true); // the image stays until its retention time is over
  },
  mirror: () => playLife(cluster, ssvirt, VDC),
};

test('the walk-throughs of all systems that vmwright replaces pass at the same time', async () => {
  const results = await Promise.allSettled(Object.values(WALKTHROUGHS).map((play) => play()));
  const failures = results.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  if (failures.length > 0)
    throw new AggregateError(failures, failures.map((each) => String(each)).join('\n'));
});

/** Checks that the GPU of the tutorial is free: the next request gets it. */
async function expectFreeGpu(): Promise<void> {
  const infos = '/apis/topology.corinternal.com/v1/namespaces/default/gpuinfoes';
  const { metadata } = await cluster.api.create(infos, {
    apiVersion: 'topology.corinternal.com/v1',
    kind: 'GPUInfo',
    metadata: { name: 'next' },
    spec: { desAccTime: 100, gpuRequired: true },
  });
  const isAnswered = (info: KubeObject) => field(info, 'status', 'phase') === 'Reserved';
  const { status } = await cluster.waitFor(`${infos}/next`, isAnswered);
  expect(field(status, 'suitableNodeName')).toBe('worker-a');
  await expect
    .poll(async () => Object.keys((await cluster.api.get(GPU_PATHS.ledger)).data ?? {}))
    .toEqual([metadata.uid]);
  await cluster.api.delete(`${infos}/next`);
}

test('after the deletion of all objects, nothing is left behind', async () => {
  for (const { line } of consoleCommands(sectionOf(page('install.md'), 'Uninstall')).slice(0, 2))
    await kubectl(line.replace(/^kubectl /, ''));
  for await (const servers of client.list()) expect(servers).toEqual([]);
  expect([await machinesIn(vcenter), await foldersOf(vcenter)]).toEqual([[], []]);
  await expect.poll(() => audit(cluster)).toEqual({ machines: [], images: [], problems: [] });
  await expectFreeGpu();
  // Some objects are deleted by the garbage collector of Kubernetes, a moment after their owner.
  await expect
    .poll(async () => (await kubectl('get virtualmachines.kubevirt.io,vmi,pvc,dv -A -o name')).stdout)
    .toBe('');
  const [rows] = await ssvirt.query(`SELECT count(*)::int FROM vms WHERE status <> 'DELETED'`);
  expect(rows).toEqual({ count: 0 });
});

test('no request of the operator or the mirror was denied, and the mirror has used all its permissions', async () => {
  const requests = await controlPlane.audited();
  expect(new Set(requests.map(({ user }) => user))).toEqual(new Set([OPERATOR_ACCOUNT, MIRROR_ACCOUNT]));
  expectAllowed(requests);
  expectExactUse(
    requests.filter(({ user }) => user === MIRROR_ACCOUNT),
    await kustomized('ssvirt'),
  );
});
