import { field, type KubeObject, startOperator, type Vcsim } from '@vmwright/testbed';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { SYSTEM } from './installed.ts';
import { conditionOf, install, PATHS, type WithGpus } from './with-gpus.ts';

/* Tests facts from vCenter that change or become stale, and simulated facts. VC_* variables configure the vCenter. */

const NODES = {
  'worker-a': { machine: 'DC0_C0_RP0_VM0', host: 'DC0_C0_H0', uuid: '420a1b2c-3d4e-5f60-7182-93a4b5c6d7a0' },
  'worker-b': { machine: 'DC0_C0_RP0_VM1', host: 'DC0_C0_H1', uuid: '420a1b2c-3d4e-5f60-7182-93a4b5c6d7b0' },
} as const;
const { host } = NODES['worker-a'];
/** A machine that is not a node. */
const OTHER = 'DC0_C0_RP0_VM2';
const ATTRIBUTE = 'vmwright.dev/maintenance-start';

let env: WithGpus;
let vcsim: Vcsim;
beforeAll(async () => {
  env = await install({ vcsim: { inventory: { hosts: 2, standaloneHosts: 0, vms: 3 } }, variables: 'VC' });
  if (env.vcsim === undefined) throw new Error('no vCenter');
  vcsim = env.vcsim;
  for (const [name, { machine, host: on, uuid }] of Object.entries(NODES)) {
    await vcsim.control.host(on, { gpus: 1 });
    await vcsim.control.vm(machine, { host: on, uuid });
    await env.node(name);
    await api().merge(`${PATHS.nodes}/${name}`, { spec: { providerID: `vsphere://${uuid}` } });
  }
  await vcsim.control.vm(OTHER, { host });
  for (const name of Object.keys(NODES)) await env.suitable(name);
}, 120_000);
afterAll(() => env?.[Symbol.asyncDispose]());

afterEach(async () => {
  for (const { metadata } of await api().list(PATHS.infos)) {
    await api().delete(`${PATHS.infos}/${metadata.name}`);
    await env.controlPlane.cluster.waitForGone(`${PATHS.infos}/${metadata.name}`);
  }
});

const api = () => env.controlPlane.cluster.api;
const status = (info: KubeObject, name: string) => field(info, 'status', name);
const onA = { nodeSelector: { 'kubernetes.io/hostname': 'worker-a' } };

test('with a vCenter from VC_* variables, the status names the host that runs the VM of the node', async () => {
  await env.info('train', onA);
  expect(status(await env.reserved('train', 'worker-a'), 'suitableHostName')).toBe(host);
});

test('status.availableUntil follows a scheduled task and the custom attribute of the host', async () => {
  const until = (time: string, source: string) =>
    env.until(
      'train',
      (info) => status(info, 'availableUntil') === time && status(info, 'decidedBy') === source,
    );
  const [first, second] = ['2099-01-01T00:00:00.000Z', '2099-02-01T00:00:00.000Z'];
  await env.info('train', { ...onA, desAccTime: 0 });
  await env.reserved('train', 'worker-a');
  const task = { entity: host, method: 'EnterMaintenanceMode_Task', at: new Date(second) };
  await vcsim.control.scheduleTask('Patch', task);
  await until(second, "vCenter scheduled task 'Patch'");
  await vcsim.control.host(host, { attributes: { [ATTRIBUTE]: first } });
  await until(first, `custom attribute '${ATTRIBUTE}'`);

  // An attribute that cannot be parsed may stand for planned maintenance. So the node keeps its reservation, but gets
  // no new one.
  await vcsim.control.host(host, { attributes: { [ATTRIBUTE]: 'soon' } });
  await env.until('train', (info) => conditionOf(info, 'FactsComplete') !== undefined);
  expect(status(await env.reserved('train', 'worker-a'), 'availableUntil')).toBe(first);
  await api().delete(`${PATHS.infos}/train`);
  await env.info('next', onA);
  const pending = await env.pending('next');
  expect(reasonFor(pending, 'worker-a')).toBe('FactsUnknown');
  await vcsim.control.host(host, { attributes: { [ATTRIBUTE]: '' } });
  await vcsim.control.removeScheduledTask('Patch');
  await env.reserved('next', 'worker-a');
});

test('a GPU that another VM takes is no longer available', async () => {
  await env.info('train');
  await env.reserved('train', 'worker-a');
  await vcsim.control.vm(OTHER, { pciDevices: [{ id: '0000:af:00.0' }] });
  await env.reserved('train', 'worker-b');
  expect(await env.event('train', 'Moved')).toContain('Node worker-a is no longer reserved');
  await env.info('next', onA);
  expect(reasonFor(await env.pending('next'), 'worker-a')).toBe('InUse');
  await vcsim.control.vm(OTHER, { pciDevices: [] });
  await env.reserved('next', 'worker-a');
});

test('while vCenter does not respond, reservations stay, and new requests wait', async () => {
  await env.info('train', onA);
  await env.reserved('train', 'worker-a');
  const reservation = await env.reservation('train');
  await vcsim.control.status(503, 1_000_000);
  await vcsim.control.drop();
  const stale = await env.until('train', (info) => conditionOf(info, 'FactsComplete') !== undefined);
  expect(field(conditionOf(stale, 'FactsComplete'), 'message')).toContain('are not current');
  expect(status(stale, 'suitableNodeName')).toBe('worker-a');
  await env.info('late');
  const late = await env.pending('late');
  expect([reasonFor(late, 'worker-a'), reasonFor(late, 'worker-b')]).toEqual([
    'FactsUnknown',
    'FactsUnknown',
  ]);
  await vcsim.control.clearStatus();
  await env.reserved('late', 'worker-b');
  await env.until('train', (info) => conditionOf(info, 'FactsComplete') === undefined);
  expect(await env.reservation('train')).toEqual(reservation);
}, 120_000);

test('with --gpu-source=simulated, GPUs and maintenance are random, and the status says so', async () => {
  await env.operator.stop();
  const { cluster } = env.controlPlane;
  const args = ['--leader-elect=false', '--gpu-source=simulated'];
  const options = { cluster, namespace: SYSTEM, gpuinfo: true, args };
  {
    await using _operator = await startOperator(options);
    // The node has a random number of GPUs. If it has any, only the first request gets the node; else only the second.
    await env.info('with-gpu', onA);
    await env.info('without-gpu', { ...onA, gpuRequired: false });
    const answers = await Promise.all(
      ['with-gpu', 'without-gpu'].map((name) =>
        env.until(name, (info) => conditionOf(info, 'Ready') !== undefined),
      ),
    );
    for (const info of answers)
      expect(conditionOf(info, 'Simulated')).toMatchObject({ status: 'True', reason: 'GpuSource' });
    const [reserved, ...others] = answers.filter((info) => status(info, 'phase') === 'Reserved');
    expect(others).toEqual([]);
    expect(reserved?.status).toMatchObject({ suitableNodeName: 'worker-a', decidedBy: 'simulation' });
    const hours = Number(reserved && status(reserved, 'availableAcceleratorTime'));
    expect(hours).toBeGreaterThanOrEqual(299); // simulated: 300 to 400 hours; one hour is a margin
    expect(hours).toBeLessThanOrEqual(400);
  }
  await env.operator.start();
}, 120_000);

/** Returns the reason why a node is not suitable. */
function reasonFor(info: KubeObject, node: string): unknown {
  const candidates = status(info, 'candidates');
  if (!Array.isArray(candidates)) return undefined;
  return field(
    candidates.find((each) => field(each, 'node') === node),
    'reason',
  );
}
