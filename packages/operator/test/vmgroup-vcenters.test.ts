import { X509Certificate } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canary, field, type KubeObject, startVcsim, type Vcsim } from '@vmwright/testbed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GROUPS, install, isRunning, ready, TEMPLATE, type WithVcenter } from './with-vcenter.ts';

const PASSWORD = canary('vcenter-password');
const WRONG_PASSWORD = canary('wrong-vcenter-password');
const stack = new AsyncDisposableStack();
let env: WithVcenter;
let east: Vcsim;
let west: Vcsim;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'vcenters-'));
  const options = { inventory: { standaloneHosts: 0 }, templates: [TEMPLATE], password: PASSWORD };
  [east, west] = [stack.use(await startVcsim(options)), stack.use(await startVcsim(options))];
  await credentials('east', east.username, PASSWORD);
  await credentials('west', west.username, WRONG_PASSWORD);
  const thumbprint = new X509Certificate(west.ca).fingerprint256;
  await writeFile(
    join(folder, 'vcenters.yaml'),
    `vcenters:
  - name: east
    server: ${east.host}
    credentials: ${folder}/east
    ca: ${east.caFile}
    namespaces: [team-east]
  - name: west
    server: ${west.host}
    credentials: ${folder}/west
    thumbprint: ${thumbprint}
    namespaces: [team-west]
    placement: { folder: groups/of-west, cluster: DC0_C0 }
`,
  );
  env = stack.use(await install({ args: [`--vcenters=${folder}/vcenters.yaml`] }));
  for (const namespace of ['team-east', 'team-west']) await env.kubectl('create', 'namespace', namespace);
});
afterAll(() => stack.disposeAsync());

/** Replaces each file atomically, like the kubelet does for a mounted Secret. */
async function credentials(name: string, username: string, password: string): Promise<void> {
  await mkdir(join(folder, name), { recursive: true });
  for (const [key, value] of Object.entries({ VC_USER: username, VC_PASS: password })) {
    await writeFile(join(folder, name, `.${key}`), value);
    await rename(join(folder, name, `.${key}`), join(folder, name, key));
  }
}

async function create(namespace: string, name: string, placement?: object): Promise<void> {
  await env.controlPlane.cluster.api.create(GROUPS.replace('/default/', `/${namespace}/`), {
    apiVersion: 'vm.codeconnect.vmworld.com/v1beta1',
    kind: 'VmGroup',
    metadata: { name },
    spec: { replicas: 2, cpu: 1, memory: 1, template: TEMPLATE, ...(placement && { placement }) },
  });
}

function until(
  namespace: string,
  name: string,
  predicate: (group: KubeObject) => boolean,
): Promise<KubeObject> {
  return env.controlPlane.cluster.waitFor(
    `${GROUPS.replace('/default/', `/${namespace}/`)}/${name}`,
    predicate,
  );
}

const running = (group: KubeObject) => isRunning(group, 2);
const hasReason = (reason: string) => (group: KubeObject) => field(ready(group), 'reason') === reason;

test('a group may use a vCenter of its own namespace or of all namespaces, but not a vCenter of another namespace', async () => {
  await create('team-east', 'web');
  await create('default', 'web');
  await create('team-east', 'elsewhere', { vcenter: 'default' });
  await create('default', 'foreign', { vcenter: 'east' });
  expect(await until('team-east', 'web', running)).toMatchObject({ status: { vcenter: 'east' } });
  expect(await until('default', 'web', running)).toMatchObject({ status: { vcenter: 'default' } });
  expect(await until('team-east', 'elsewhere', running)).toMatchObject({ status: { vcenter: 'default' } });
  // The text is the same as for an unknown vCenter, and does not reveal the vCenters of other namespaces.
  const foreign = await until('default', 'foreign', hasReason('UnknownVcenter'));
  expect(field(foreign, 'status', 'lastMessage')).toBe(
    "no vCenter 'east' is available to the namespace 'default' (available: default); create the group again with another spec.placement.vcenter, or add this vCenter to the operator's configuration",
  );
  await env.kubectl('delete', 'vmgroup', 'foreign');
});

test('an unknown vCenter is reported, and a change of placement.folder is rejected', async () => {
  await create('default', 'lost', { vcenter: 'north' });
  const lost = await until('default', 'lost', hasReason('UnknownVcenter'));
  expect(field(lost, 'status', 'lastMessage')).toBe(
    "no vCenter 'north' is available to the namespace 'default' (available: default); create the group again with another spec.placement.vcenter, or add this vCenter to the operator's configuration",
  );
  await env.kubectl('delete', 'vmgroup', 'lost');
  await create('default', 'settled');
  await until('default', 'settled', running);
  await expect(env.change('settled', { placement: { folder: 'another' } })).rejects.toThrow(
    'placement.folder is immutable',
  );
  await env.kubectl('delete', 'vmgroup', 'settled');
  expect(await env.machines('default-settled')).toEqual([]);
});

test('a datacenter can be given as a path, and a missing datacenter is reported even if vCenter responds slowly', async () => {
  await create('default', 'slashed', { datacenter: '/DC0' });
  const first = await until('default', 'slashed', running);
  await env.change('slashed', { replicas: 3 });
  await until('default', 'slashed', (group) => isRunning(group, 3));
  expect(field(first, 'status', 'datacenter')).toBe('DC0');
  await env.kubectl('delete', 'vmgroup', 'slashed');

  await env.vcsim.control.delay({ methods: { RetrievePropertiesEx: 1_500 } });
  await create('default', 'mistyped', { datacenter: 'DC7' });
  const missing = await until('default', 'mistyped', hasReason('NotFound'));
  expect(field(missing, 'status', 'lastMessage')).toContain("datacenter 'DC7' not found");
  await env.vcsim.control.clearDelays();
  await env.kubectl('delete', 'vmgroup', 'mistyped');
});

test('a rejected password is reported until it is corrected, and appears in no log, object or metric', async () => {
  await create('team-west', 'web');
  const waiting = await until('team-west', 'web', hasReason('VcenterUnauthorized'));
  expect(field(waiting, 'status', 'lastMessage')).toBe(
    "vCenter 'west' rejects the user name or the password; correct its credentials",
  );
  await credentials('west', west.username, PASSWORD);
  const recovered = await until('team-west', 'web', running);
  expect(recovered).toMatchObject({ status: { vcenter: 'west', folder: 'groups/of-west' } });
  const output = [
    await readFile(env.operator.log, 'utf8'),
    await env.kubectl('get', 'vmgroups,events', '-A', '-o', 'yaml'),
    await env.metrics(env.operator),
  ].join('\n');
  expect(output).not.toContain(PASSWORD);
  expect(output).not.toContain(WRONG_PASSWORD);
});

test('a vCenter that is down is reported by its groups until it is back, and does not affect other vCenters', async () => {
  await east.part.kill();
  await until('team-east', 'web', hasReason('VcenterUnreachable'));
  await create('default', 'unaffected');
  await until('default', 'unaffected', running);
  await east.part.start(); // restarts with its initial inventory, so the operator clones the machines again
  await until('team-east', 'web', running);
  expect(await env.vcsim.control.sessions()).toHaveLength(2);
});

test('a vCenter that hangs does not delay groups on other vCenters, even if twelve groups wait for it', async () => {
  west.part.pause();
  const names = Array.from({ length: 12 }, (_, i) => `hanging-${i}`);
  for (const name of names) await create('team-west', name, { folder: `groups/${name}` });
  await until('team-west', 'hanging-11', hasReason('VcenterUnreachable'));
  await create('default', 'in-time');
  await until('default', 'in-time', running);
  west.part.resume();
  for (const name of names) await until('team-west', name, running);
});
