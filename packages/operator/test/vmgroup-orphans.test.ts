import { expect, test } from 'vitest';
import { vmwright } from './command-line.ts';
import { SYSTEM } from './installed.ts';
import { VcenterUser } from './vcenter-user.ts';
import { GROUPS, install } from './with-vcenter.ts';

const ARGS = ['--vmgroup-sweep=1s', '--cluster-id=production'];

test('vmwright orphans --delete --yes deletes machines without a group, but not a machine that a user moved', async () => {
  await using env = await install({ args: ARGS });
  await env.group('web', { replicas: 2 });
  await env.running('web', 2);
  const [held] = await env.machines();
  if (held === undefined) throw new Error('the group has no machine');
  await env.operator.stop();
  // Deletes the group without its finalizer, so that the operator does not witness the deletion.
  const { api } = env.controlPlane.cluster;
  await api.merge(`${GROUPS}/web`, { metadata: { finalizers: [] } });
  await api.delete(`${GROUPS}/web`);
  const { lookup } = env.vcenter;
  const parent = await lookup.folder(await lookup.datacenter(), 'vm-operator');
  await new VcenterUser(env.vcsim, env.vcenter).move(held.id, parent.value);
  const { host, username, password, caFile } = env.vcsim;
  const { cluster } = env.controlPlane;
  const KUBECONFIG = await cluster.kubeconfigFor({ namespace: SYSTEM, name: 'vmwright' });
  const variables = { KUBECONFIG, VC_HOST: host, VC_USER: username, VC_PASS: password, VC_CA: caFile };
  const { code, stdout, stderr } = await vmwright(['orphans', '--delete', '--yes', ...ARGS], variables);
  expect(stdout).toMatch(
    new RegExp(`default/${held.id} .* a user moved it or turned it into a template$`, 'm'),
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^\{.*\}$/m) });
  const lines = stderr.split('\n').flatMap((line) => (line.includes('"audit"') ? [JSON.parse(line)] : []));
  const task = expect.stringMatching(/^task-/);
  const about = { kind: 'VmGroup', reason: 'vmwright orphans --delete', task };
  expect(lines).toMatchObject([
    { ...about, audit: 'powerOff', resource: 'VirtualMachine', object: 'default/web' },
    { ...about, audit: 'delete', resource: 'VirtualMachine', object: 'default/web' },
    { ...about, audit: 'delete', resource: 'Folder', object: 'default/-', machineName: 'default-web' },
  ]);
  expect(stderr).not.toContain(held.id);
  expect((await env.machines()).map(({ id }) => id)).toEqual([held.id]);
  const after = await vmwright(['orphans', '-o', 'json', ...ARGS], variables);
  expect(JSON.parse(after.stdout)).toMatchObject([{ id: `default/${held.id}`, isDeleted: false }]);
}, 180_000);
