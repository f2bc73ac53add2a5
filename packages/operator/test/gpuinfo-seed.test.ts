import { nodeWorld } from '@vmwright/runtime';
import { field, type KubeObject, type Vcsim } from '@vmwright/testbed';
import { VcenterClient } from '@vmwright/vsphere';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerTimes } from './answer-times.ts';
import { createWorkers, placeMachines, playGpuInfoTutorial, WORKERS } from './gpuinfo-tutorial.ts';
import { install, PATHS, type WithGpus } from './with-gpus.ts';

/* Tests the tutorial that GPUInfo is based on, and changes in vSphere. The nodes are machines of a vCenter. */

let env: WithGpus;
let vcsim: Vcsim;
let vcenter: VcenterClient;
beforeAll(async () => {
  env = await install({
    vcsim: { inventory: { hosts: 3, standaloneHosts: 0, vms: 3 } },
    prepare: placeMachines,
    args: ['--controllers=gpuinfo,vmgroup'],
  });
  if (env.vcsim === undefined) throw new Error('no vCenter');
  vcsim = env.vcsim;
  const { host: server, username, password, ca } = vcsim;
  vcenter = new VcenterClient({
    world: nodeWorld,
    server,
    tls: { ca },
    credentials: () => ({ username, password }),
  });
  await createWorkers(env.controlPlane.cluster, vcenter);
  for (const node of ['worker-a', 'worker-b']) await env.suitable(node);
}, 120_000);
afterAll(async () => {
  await vcenter?.stop();
  await env?.[Symbol.asyncDispose]();
});

const api = () => env.controlPlane.cluster.api;
const status = (info: KubeObject, name: string) => field(info, 'status', name);

test('the commands of the tutorial (api-resources, create, get, delete) print its documented output', async () => {
  await playGpuInfoTutorial(env.controlPlane.cluster);
});

test('the controllers of VmGroups and GPUInfos share one vCenter session', async () => {
  expect(await vcsim.control.sessions()).toHaveLength(2); // the sessions of the operator and of this test
});

test('gpuModel selects a host with GPUs of this model, and the status contains the name of the host', async () => {
  await env.info('h100', { gpuModel: '*h100*' });
  const info = await env.reserved('h100', 'worker-b');
  expect(status(info, 'suitableHostName')).toBe('DC0_C0_H1');
  await api().delete(`${PATHS.infos}/h100`);
});

describe('changes in vSphere', () => {
  const { after } = answerTimes();
  const { machine, host } = WORKERS['worker-a'];
  const refOf = async (name: string) => {
    const found = (await vcenter.list('VirtualMachine', ['name'])).find(
      ({ properties }) => properties.name === name,
    );
    if (found === undefined) throw new Error(`no machine ${name}`);
    return found.ref;
  };

  /**
   * Makes a change that moves the reservation from worker-a to worker-b, and reverts the change.
   * @returns the note of the event `Moved`
   */
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

  test('another node is reserved after the host enters maintenance', async () => {
    const note = await moves(
      'host maintenance',
      () => vcsim.control.host(host, { maintenance: true }),
      () => vcsim.control.host(host, { maintenance: false }),
    );
    expect(note).toContain(`the host ${host} is in maintenance mode`);
  });

  test('another node is reserved after maintenance of the host is planned in a custom attribute', async () => {
    const attributes = (value: string) => ({ attributes: { 'vmwright.dev/maintenance-start': value } });
    const at = new Date(Date.now() + 50 * 3_600_000).toISOString();
    const note = await moves(
      'planned maintenance',
      () => vcsim.control.host(host, attributes(at)),
      () => vcsim.control.host(host, attributes('')),
    );
    expect(note).toContain(`maintenance at ${at} (custom attribute 'vmwright.dev/maintenance-start')`);
  });

  test('another node is reserved after the host is disconnected', async () => {
    const note = await moves(
      'disconnected host',
      () => vcsim.control.host(host, { connection: 'disconnected' }),
      () => vcsim.control.host(host, { connection: 'connected' }),
    );
    expect(note).toContain(`vCenter has no connection to the host ${host}`);
  });

  test('another node is reserved after the machine of the node is powered off', async () => {
    const { machines, tasks } = vcenter;
    const note = await moves(
      'power off',
      async () => tasks.follow(await machines.powerOff(await refOf(machine))),
      async () => tasks.follow(await machines.powerOn(await refOf(machine))),
    );
    expect(note).toContain(`the VM '${machine}' is powered off`);
  });

  test('another node is reserved after the machine moves to a host without GPUs (vMotion)', async () => {
    const note = await moves(
      'vMotion',
      () => vcsim.control.vm(machine, { host: WORKERS['worker-c'].host }),
      () => vcsim.control.vm(machine, { host }),
    );
    expect(note).toContain('it has no GPU');
  });

  test('the node stays reserved after its machine moves to a host with a free GPU', async () => {
    await vcsim.control.host(WORKERS['worker-c'].host, { gpus: 1 });
    await env.suitable('worker-c'); // waits until the operator knows that the GPU is free
    // Without the selector, worker-c would be chosen, because it has the lowest CPU demand.
    await env.info('follows', { nodeSelector: { 'kubernetes.io/hostname': 'worker-a' } });
    await env.reserved('follows', 'worker-a');
    const info = await after(
      'vMotion to a host with GPUs',
      () => vcsim.control.vm(machine, { host: WORKERS['worker-c'].host }),
      () => env.until('follows', (each) => status(each, 'suitableHostName') === WORKERS['worker-c'].host),
    );
    expect(status(info, 'suitableNodeName')).toBe('worker-a');
    expect(await env.event('follows', 'HostChanged')).toBe(
      'Node worker-a moved from host DC0_C0_H0 to DC0_C0_H2',
    );
    await vcsim.control.vm(machine, { host });
    await vcsim.control.host(WORKERS['worker-c'].host, { gpus: 0 });
  });
});
