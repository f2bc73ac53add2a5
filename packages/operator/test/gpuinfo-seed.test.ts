import { fileURLToPath } from 'node:url';
import { nodeWorld } from '@vmwright/runtime';
import { field, type KubeObject, shapeOf, type Vcsim } from '@vmwright/testbed';
import { VcenterClient } from '@vmwright/vsphere';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerTimes } from './answer-times.ts';
import { install, PATHS, type WithGpus } from './with-gpus.ts';

/* Tests the tutorial that GPUInfo is based on, and changes in vSphere: nodes are machines of a vCenter. */

/** The manifest of the tutorial. */
const SAMPLE = fileURLToPath(new URL('../../../config/samples/gpuinfo.yaml', import.meta.url));

/** Machine of each node. The nodes with GPUs are on the first two hosts. */
const MACHINES = { 'worker-a': 'DC0_C0_RP0_VM0', 'worker-b': 'DC0_C0_RP0_VM1', 'worker-c': 'DC0_C0_RP0_VM2' };
const HOSTS = { 'worker-a': 'DC0_C0_H0', 'worker-b': 'DC0_C0_H1', 'worker-c': 'DC0_C0_H2' };
type NodeName = keyof typeof MACHINES;

let env: WithGpus;
let vcsim: Vcsim;
let vcenter: VcenterClient;
beforeAll(async () => {
  env = await install({
    vcsim: { inventory: { hosts: 3, standaloneHosts: 0, vms: 3 } },
    args: ['--controllers=gpuinfo,vmgroup'],
  });
  if (env.vcsim === undefined) throw new Error('no vCenter');
  vcsim = env.vcsim;
  const { host: server, username, password, ca } = vcsim;
  vcenter = new VcenterClient({
    ...{ world: nodeWorld, server, tls: { ca } },
    credentials: () => ({ username, password }),
  });
  const machines = await vcenter.list('VirtualMachine', ['name', 'config.uuid']);
  await vcsim.control.host(HOSTS['worker-a'], { gpus: 1 });
  await vcsim.control.host(HOSTS['worker-b'], { gpus: 1, gpuModel: 'NVIDIA H100' });
  const usage = { 'worker-a': 87, 'worker-b': 500, 'worker-c': 10 };
  for (const node of nodes) {
    const machine = MACHINES[node];
    await vcsim.control.vm(machine, { host: HOSTS[node], cpuDemandMhz: usage[node], guestMemoryMb: 327 });
    await env.node(node);
    const uuid = machines.find(({ properties }) => properties.name === machine)?.properties['config.uuid'];
    await api().merge(`${PATHS.nodes}/${node}`, { spec: { providerID: `vsphere://${uuid}` } });
  }
}, 120_000);
afterAll(async () => {
  await vcenter?.stop();
  await env?.[Symbol.asyncDispose]();
});

const nodes: readonly NodeName[] = ['worker-a', 'worker-b', 'worker-c'];
const api = () => env.controlPlane.cluster.api;
const status = (info: KubeObject, name: string) => field(info, 'status', name);

test('the commands of the tutorial (api-resources, create, get, delete) print what it shows', async () => {
  const kubectl = async (line: string) =>
    (await env.kubectl(...line.split(' '))).trimEnd().split('\n').map(shapeOf);
  expect(await kubectl('api-resources --api-group=topology.corinternal.com')).toEqual(
    [
      'NAME SHORTNAMES APIVERSION NAMESPACED KIND',
      'gpuinfoes gpu topology.corinternal.com/v1 true GPUInfo',
    ].map(shapeOf),
  );
  const { cluster } = env.controlPlane;
  const created = await cluster.kubectl(['create', '-f', SAMPLE]);
  expect(created.stdout).toBe('gpuinfo.topology.corinternal.com/gpuinfo-sample created\n');
  const path = '/apis/topology.corinternal.com/v1/namespaces/default/gpuinfoes/gpuinfo-sample';
  const answered = await cluster.waitFor(path, (info) => status(info, 'phase') === 'Reserved');
  expect(answered.status).toMatchObject({
    availableAcceleratorTime: 8_760,
    nodeCPUUsage: 87,
    nodeMemoryUsage: 327,
    suitableHostName: 'DC0_C0_H0',
    suitableNodeName: 'worker-a',
  });
  for (const name of ['gpuinfo', 'gpu'])
    expect(await kubectl(`get ${name}`)).toEqual(
      [
        'NAME DESIRED ACCESS TIME (HRS) GPU REQUIRED NODE HOST AVAILABLE',
        'gpuinfo-sample 100 true worker-a DC0_C0_H0 8760',
      ].map(shapeOf),
    );
  expect(await env.kubectl('get', 'gpu', 'gpuinfo-sample', '-o', 'yaml')).toContain(
    '  suitableNodeName: worker-a\n',
  );
  expect((await env.kubectl('delete', 'gpuinfo', 'gpuinfo-sample')).trim()).toMatch(
    /^gpuinfo\.topology\.corinternal\.com "gpuinfo-sample" deleted/,
  );
});

test('VmGroups and GPUInfos share one session', async () => {
  expect(await vcsim.control.sessions()).toHaveLength(2); // of the operator and of this test
});

test('a model selects a host, and its name is printed', async () => {
  await env.info('h100', { gpuModel: '*h100*' });
  const info = await env.reserved('h100', 'worker-b');
  expect(status(info, 'suitableHostName')).toBe('DC0_C0_H1');
  await api().delete(`${PATHS.infos}/h100`);
});

describe('the answer changes within seconds after', () => {
  const { after } = answerTimes();
  const { 'worker-a': host } = HOSTS;
  const machine = MACHINES['worker-a'];
  const refOf = async (name: string) => {
    const found = (await vcenter.list('VirtualMachine', ['name'])).find(
      ({ properties }) => properties.name === name,
    );
    if (found === undefined) throw new Error(`no machine ${name}`);
    return found.ref;
  };

  /** Makes a change that moves the answer from worker-a to worker-b, and takes it back. @returns the note of the event */
  async function moves(what: string, change: () => Promise<unknown>, undo: () => Promise<unknown>) {
    const name = what.replaceAll(' ', '-').toLowerCase();
    await env.info(name);
    await env.reserved(name, 'worker-a');
    await after(what, change, () => env.reserved(name, 'worker-b'));
    const note = await env.event(name, 'Moved');
    await undo();
    await api().delete(`${PATHS.infos}/${name}`);
    await env.suitable('worker-a');
    return note;
  }

  test('the host enters maintenance', async () => {
    const note = await moves(
      'host maintenance',
      () => vcsim.control.host(host, { maintenance: true }),
      () => vcsim.control.host(host, { maintenance: false }),
    );
    expect(note).toContain(`the host ${host} is in maintenance mode`);
  });

  test('maintenance of the host is planned in a custom attribute', async () => {
    const attributes = (value: string) => ({ attributes: { 'vmwright.dev/maintenance-start': value } });
    const at = new Date(Date.now() + 50 * 3_600_000).toISOString();
    const note = await moves(
      'planned maintenance',
      () => vcsim.control.host(host, attributes(at)),
      () => vcsim.control.host(host, attributes('')),
    );
    expect(note).toContain(`maintenance at ${at} (custom attribute 'vmwright.dev/maintenance-start')`);
  });

  test('the host is disconnected', async () => {
    const note = await moves(
      'disconnected host',
      () => vcsim.control.host(host, { connection: 'disconnected' }),
      () => vcsim.control.host(host, { connection: 'connected' }),
    );
    expect(note).toContain(`vCenter has no connection to the host ${host}`);
  });

  test('the machine of the node is powered off', async () => {
    const { machines, tasks } = vcenter;
    const note = await moves(
      'power off',
      async () => tasks.follow(await machines.powerOff(await refOf(machine))),
      async () => tasks.follow(await machines.powerOn(await refOf(machine))),
    );
    expect(note).toContain(`the VM '${machine}' is powered off`);
  });

  test('the machine moves to a host without GPUs (vMotion)', async () => {
    const note = await moves(
      'vMotion',
      () => vcsim.control.vm(machine, { host: HOSTS['worker-c'] }),
      () => vcsim.control.vm(machine, { host }),
    );
    expect(note).toContain('it has no GPU');
  });

  test('the machine moves to a host with a free GPU: the node stays, and its host changes', async () => {
    await vcsim.control.host(HOSTS['worker-c'], { gpus: 1 });
    await env.info('follows');
    await env.reserved('follows', 'worker-a');
    const info = await after(
      'vMotion to a host with GPUs',
      () => vcsim.control.vm(machine, { host: HOSTS['worker-c'] }),
      () => env.until('follows', (each) => status(each, 'suitableHostName') === HOSTS['worker-c']),
    );
    expect(status(info, 'suitableNodeName')).toBe('worker-a');
    expect(await env.event('follows', 'HostChanged')).toBe(
      'Node worker-a moved from host DC0_C0_H0 to DC0_C0_H2',
    );
    await vcsim.control.vm(machine, { host });
    await vcsim.control.host(HOSTS['worker-c'], { gpus: 0 });
  });
});
