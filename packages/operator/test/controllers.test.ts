import { readFile } from 'node:fs/promises';
import { field } from '@vmwright/testbed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { vmwright } from './command-line.ts';
import { SYSTEM } from './installed.ts';
import { install, type WithCloud } from './with-cloud.ts';

let env: WithCloud;

beforeAll(async () => {
  env = await install({ args: ['--controllers=*'] });
}, 180_000);
afterAll(() => env[Symbol.asyncDispose]());

test('a controller without settings or CRDs is off with one log line, and the others run', async () => {
  await env.vm('web', 'web');
  await env.until('web', (vm) => field(vm, 'status', 'opStatus') === 'Running');
  const lines = (await readFile(env.operator.log, 'utf8')).split('\n').filter((line) => line !== '');
  const off = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'Controller is off');
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

test('it is an error if a controller that is named cannot run, or if none can', async () => {
  const { cluster } = env.controlPlane;
  const KUBECONFIG = await cluster.kubeconfigFor({ namespace: SYSTEM, name: 'vmwright' });
  const named = await vmwright(['run', '--controllers=kubevirt', '--status-address=127.0.0.1:0'], {
    KUBECONFIG,
  });
  expect(named.code).toBe(1);
  expect(named.stderr).toMatch(
    /^vmwright: the controller kubevirt cannot run: the CRDs virtualmachines\.kubevirt\.io/m,
  );
  const args = ['run', '--controllers=-gpuinfo', '--status-address=127.0.0.1:0'];
  const none = await vmwright(args, { KUBECONFIG });
  expect(none.code).toBe(1);
  expect(none.stderr).toMatch(/^vmwright: no controller can run: vm: CLOUD_URL is not set; set CLOUD_URL/m);
});

test('--log-format=text writes lines for people', async () => {
  const { cluster } = env.controlPlane;
  const KUBECONFIG = await cluster.kubeconfigFor({ namespace: SYSTEM, name: 'vmwright' });
  const args = ['--controllers=-gpuinfo', '--log-format=text', '--status-address=127.0.0.1:0'];
  const { stderr } = await vmwright(['run', ...args], { KUBECONFIG });
  expect(stderr).toMatch(
    /^\d\d:\d\d:\d\d INFO {2}Controller is off {2}controller=vm {2}why="CLOUD_URL is not set"/m,
  );
});
