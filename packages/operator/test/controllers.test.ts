import { field, startOperator } from '@vmwright/testbed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { vmwright } from './command-line.ts';
import { SYSTEM } from './installed.ts';
import { logLines } from './log-lines.ts';
import { kustomized, operatorContainer } from './rendered.ts';
import { install, type WithCloud } from './with-cloud.ts';

let env: WithCloud;

beforeAll(async () => {
  env = await install({ args: ['--controllers=*'] });
}, 180_000);
afterAll(() => env[Symbol.asyncDispose]());

test('a controller is disabled if a setting or CRD that it needs is missing, and the others run', async () => {
  await env.vm('web', 'web');
  await env.until('web', (vm) => field(vm, 'status', 'opStatus') === 'Running');
  const off = (await logLines(env.operator)).filter((line) => field(line, 'msg') === 'Controller is off');
  expect(off).toMatchObject([
    {
      controller: 'vmgroup',
      why: 'neither VC_HOST nor --vcenters is set',
      remedy: expect.stringMatching(/^set VC_HOST to /),
    },
    {
      controller: 'kubevirt',
      why: expect.stringMatching(/^the CRDs virtualmachines\.kubevirt\.io, .* are not installed$/),
      remedy: expect.stringContaining('restart the operator'),
    },
  ]);
});

test('the operator exits with an error if a controller named in --controllers cannot run', async () => {
  const { cluster } = env.controlPlane;
  const KUBECONFIG = await cluster.kubeconfigFor({ namespace: SYSTEM, name: 'vmwright' });
  const named = await vmwright(['run', '--controllers=kubevirt', '--status-address=127.0.0.1:0'], {
    KUBECONFIG,
  });
  expect(named.code).toBe(1);
  expect(named.stderr).toMatch(
    /^vmwright: the controller kubevirt cannot run: the CRDs virtualmachines\.kubevirt\.io/m,
  );
});

test('without KubeVirt, the operator with the flags of config/overlays/kubevirt starts, but runs no controller', async () => {
  const args = [String(field(operatorContainer(await kustomized('overlays/kubevirt')), 'args', '2'))];
  expect(args).toEqual(['--controllers=*,-vm,-vmgroup,-gpuinfo']);
  await using operator = await startOperator({ cluster: env.controlPlane.cluster, namespace: SYSTEM, args });
  const lines = await logLines(operator);
  expect(lines.filter((line) => field(line, 'msg') === 'Controller is off')).toMatchObject([
    { controller: 'vm', why: '--controllers excludes it' },
    { controller: 'vmgroup', why: '--controllers excludes it' },
    { controller: 'gpuinfo', why: '--controllers excludes it' },
    { controller: 'kubevirt', why: expect.stringContaining('are not installed') },
  ]);
  expect(lines.filter((line) => field(line, 'level') === 'warn')).toMatchObject([
    { msg: 'No controller runs' },
  ]);
});

test('--log-format=text writes human-readable lines', async () => {
  const { cluster } = env.controlPlane;
  const KUBECONFIG = await cluster.kubeconfigFor({ namespace: SYSTEM, name: 'vmwright' });
  const args = ['--controllers=*,kubevirt', '--log-format=text', '--status-address=127.0.0.1:0'];
  const { stderr } = await vmwright(['run', ...args], { KUBECONFIG });
  expect(stderr).toMatch(
    /^\d\d:\d\d:\d\d INFO {2}Controller is off {2}controller=vm {2}why="CLOUD_URL is not set"/m,
  );
});
