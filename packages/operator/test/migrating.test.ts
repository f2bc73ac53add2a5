import { fileURLToPath } from 'node:url';
import { CloudClient } from '@vmwright/cloud';
import { nodeWorld } from '@vmwright/runtime';
import {
  Assets,
  type Cluster,
  consoleCommands,
  field,
  type KubeObject,
  run,
  startCloud,
  startControlPlane,
  startDeployedOperator,
  startKwok,
  startVcsim,
  temporaryFolder,
} from '@vmwright/testbed';
import { VcenterClient } from '@vmwright/vsphere';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { page, ROOT, sectionOf } from './doc-commands.ts';
import { createWorkers, placeMachines } from './gpuinfo-tutorial.ts';
import { configureBackends, SYSTEM } from './installed.ts';
import { foldersOf, machinesIn } from './vcenter-inventory.ts';
import { VMS } from './with-cloud.ts';
import { GROUPS, isRunning, TEMPLATE } from './with-vcenter.ts';

/* Runs the steps of docs/migrating.md with objects of the earlier controllers. The tests build on each other. */

const PAGE = page('migrating.md');
const INFO = '/apis/topology.corinternal.com/v1/namespaces/default/gpuinfoes/training';
const fixture = (name: string) => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));

const stack = new AsyncDisposableStack();
let cluster: Cluster;
let client: CloudClient;
let vcenter: VcenterClient;
let serverId: string;
let start: () => Promise<void>;

beforeAll(async () => {
  const cloud = stack.use(await startCloud());
  client = stack.use(new CloudClient({ world: nodeWorld, url: cloud.url, apiKey: cloud.apiKey }));
  const inventory = { hosts: 3, standaloneHosts: 0, vms: 4 };
  const vcsim = stack.use(await startVcsim({ inventory, templates: [TEMPLATE] }));
  const { host: server, username, password, ca } = vcsim;
  const credentials = () => ({ username, password });
  vcenter = stack.use(new VcenterClient({ world: nodeWorld, server, credentials, tls: { ca } }));
  ({ cluster } = stack.use(await startControlPlane({ endpointRouting: true })));
  stack.use(await startKwok(cluster));
  await placeMachines(vcsim);
  await createWorkers(cluster, vcenter);
  start = async () => {
    await configureBackends(cluster, { cloud, vcsim });
    stack.use(await startDeployedOperator(cluster, SYSTEM));
  };

  await cluster.kubectl(['apply', '-f', fixture('earlier-crds.yaml')]);
  await cluster.kubectl(['wait', '--for=condition=Established', '-f', fixture('earlier-crds.yaml')]);
  await cluster.kubectl(['apply', '-f', fixture('earlier-objects.yaml')]);
  ({ id: serverId } = await client.create({ name: 'vmweb' }, undefined));
  await cluster.api.merge(`${VMS}/web`, { status: { vmId: serverId } });
  await cluster.api.merge(`${groupV1alpha1('web')}/status`, {
    status: { phase: 'RUNNING', currentReplicas: 2, lastMessage: 'successfully reconciled VmGroup' },
  });
  await cluster.api.merge(`${INFO}/status`, {
    status: { suitableNodeName: 'gone', suitableHostName: 'gone', availableAcceleratorTime: 399 },
  });
}, 120_000);
afterAll(() => stack.disposeAsync());

const groupV1alpha1 = (name: string) => `${GROUPS.replace('v1beta1', 'v1alpha1')}/${name}`;

/** Runs the commands of a section in a shell, and returns the output of the last one. */
async function follow(heading: string, first = 0, end?: number): Promise<string> {
  const commands = consoleCommands(sectionOf(PAGE, heading)).slice(first, end);
  expect(commands).not.toEqual([]);
  let output = '';
  for (const { line } of commands) ({ stdout: output } = await shell(line));
  return output;
}

let folder: string | undefined;
async function shell(line: string) {
  folder ??= await temporaryFolder('migrating');
  const kubectl = await new Assets().path('kubectl');
  const script = `cd ${folder}; kubectl() { ${kubectl} "$@"; }; ${line.replaceAll(/(?<=\s)(?=config\/)/g, ROOT)}`;
  return run('sh', ['-ec', script], { env: { ...process.env, KUBECONFIG: cluster.kubeconfig } });
}

test('the documented commands save the manifest of a VmGroup without its finalizer, and delete the VmGroup', async () => {
  const HEADING = 'From the Code Connect VM operator';
  await follow(HEADING, 0, 1);
  const deletion = follow(HEADING, 1, 2);
  // The test removes the finalizer in place of the earlier operator, which would delete the machines first.
  await cluster.waitFor(groupV1alpha1('web'), ({ metadata }) => metadata.deletionTimestamp !== undefined);
  await cluster.api.merge(groupV1alpha1('web'), { metadata: { finalizers: null } });
  await deletion;
});

test('existing objects are kept when the CRDs of vmwright replace the CRDs of the earlier controllers', async () => {
  await follow('From a VM controller for a private cloud', 0, 1); // removes the finalizer
  const before = [await cluster.api.get(`${VMS}/web`), await cluster.api.get(INFO)];
  await follow('Migrating');
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all']);
  const after = [await cluster.api.get(`${VMS}/web`), await cluster.api.get(INFO)];
  expect(after.map(identity)).toEqual(before.map(identity));
});

test('a VM and its server are managed once the server has a label with the UID of the VM', async () => {
  const printed = await follow('From a VM controller for a private cloud', 1);
  const [uid = '', vmId = ''] = printed.split(' ');
  expect(vmId).toBe(serverId);
  await client.relabel(vmId, { 'vmwright.dev/uid': uid });
  await shell('kubectl apply --server-side -k config/default');
  await start();
  const isManaged = (vm: KubeObject) => typeof field(vm, 'status', 'cpuUtilization') === 'number';
  expect(field(await cluster.waitFor(`${VMS}/web`, isManaged), 'status', 'vmId')).toBe(serverId);
  await expect.poll(async () => Object.keys((await client.get(serverId)).labels).length).toBeGreaterThan(1);
  await shell('kubectl delete cvm web');
  await expect(client.get(serverId)).rejects.toThrow();
});

test('a GPUInfo that was created before the migration gets a reservation', async () => {
  const isAnswered = (info: KubeObject) => field(info, 'status', 'phase') === 'Reserved';
  expect((await cluster.waitFor(INFO, isAnswered)).status).toMatchObject({ suitableNodeName: 'worker-a' });
  await shell('kubectl delete gpu training');
});

test('a VmGroup that is created from the saved manifest gets new machines, and can be deleted', async () => {
  await follow('From the Code Connect VM operator', 2);
  await cluster.waitFor(`${GROUPS}/web`, (group) => isRunning(group, 2));
  expect(await machinesIn(vcenter, 'default-web')).toHaveLength(2);
  await shell('kubectl delete vg web --timeout=60s');
  expect(await foldersOf(vcenter)).toEqual([]);
});

function identity({ metadata: { uid }, spec }: KubeObject): object {
  return { uid, spec };
}
