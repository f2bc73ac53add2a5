import { X509Certificate } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { field, type KubeObject, startVcsim, type Vcsim } from '@vmwright/testbed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GROUPS, install, isRunning, ready, TEMPLATE, type WithVcenter } from './with-vcenter.ts';

const PASSWORD = 'Tr0ub4dor&3';
const stack = new AsyncDisposableStack();
let it: WithVcenter;
let east: Vcsim;
let west: Vcsim;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'vcenters-'));
  const options = { inventory: { standaloneHosts: 0 }, templates: [TEMPLATE], password: PASSWORD };
  [east, west] = [stack.use(await startVcsim(options)), stack.use(await startVcsim(options))];
  await credentials('east', east.username, PASSWORD);
  await credentials('west', west.username, 'not this one');
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
  it = stack.use(await install({ args: [`--vcenters=${folder}/vcenters.yaml`] }));
  for (const namespace of ['team-east', 'team-west']) await it.kubectl('create', 'namespace', namespace);
});
afterAll(() => stack.disposeAsync());

/** As kubelet replaces what a Secret mounts: all at once. */
async function credentials(name: string, username: string, password: string): Promise<void> {
  await mkdir(join(folder, name), { recursive: true });
  for (const [key, value] of Object.entries({ VC_USER: username, VC_PASS: password })) {
    await writeFile(join(folder, name, `.${key}`), value);
    await rename(join(folder, name, `.${key}`), join(folder, name, key));
  }
}

async function create(namespace: string, name: string, placement?: object): Promise<void> {
  await it.controlPlane.cluster.api.create(GROUPS.replace('/default/', `/${namespace}/`), {
    apiVersion: 'vm.codeconnect.vmworld.com/v1beta1',
    kind: 'VmGroup',
    metadata: { name },
    spec: { replicas: 2, cpu: 1, memory: 1, template: TEMPLATE, ...(placement && { placement }) },
  });
}

function until(namespace: string, name: string, is: (group: KubeObject) => boolean): Promise<KubeObject> {
  return it.controlPlane.cluster.waitFor(`${GROUPS.replace('/default/', `/${namespace}/`)}/${name}`, is);
}

const running = (group: KubeObject) => isRunning(group, 2);
const because = (reason: string) => (group: KubeObject) => field(ready(group), 'reason') === reason;

test('each namespace has its vCenter, may name the one for all, and no other; the rest goes to the one for all', async () => {
  await create('team-east', 'web');
  await create('default', 'web');
  await create('team-east', 'elsewhere', { vcenter: 'default' });
  await create('default', 'foreign', { vcenter: 'east' });
  expect(await until('team-east', 'web', running)).toMatchObject({ status: { vcenter: 'east' } });
  expect(await until('default', 'web', running)).toMatchObject({ status: { vcenter: 'default' } });
  expect(await until('team-east', 'elsewhere', running)).toMatchObject({ status: { vcenter: 'default' } });
  // The same as of a vCenter that does not exist, and without the names of others.
  const foreign = await until('default', 'foreign', because('UnknownVcenter'));
  expect(field(foreign, 'status', 'lastMessage')).toBe(
    "no vCenter 'east' is available to the namespace 'default' (available: default); correct spec.placement.vcenter",
  );
  await it.kubectl('delete', 'vmgroup', 'foreign');
});

test('an unknown vCenter is reported, and a changed placement is rejected', async () => {
  await create('default', 'lost', { vcenter: 'north' });
  const lost = await until('default', 'lost', because('UnknownVcenter'));
  expect(field(lost, 'status', 'lastMessage')).toBe(
    "no vCenter 'north' is available to the namespace 'default' (available: default); correct spec.placement.vcenter",
  );
  await it.kubectl('delete', 'vmgroup', 'lost');
  await create('default', 'settled');
  await until('default', 'settled', running);
  await expect(it.change('settled', { placement: { folder: 'another' } })).rejects.toThrow(
    'placement.folder is immutable',
  );
  await it.kubectl('delete', 'vmgroup', 'settled');
  expect(await it.machines('default-settled')).toEqual([]);
});

test('a datacenter may be written as a path; one that is not there is told, however long the answer takes', async () => {
  await create('default', 'slashed', { datacenter: '/DC0' });
  const first = await until('default', 'slashed', running);
  await it.change('slashed', { replicas: 3 });
  await until('default', 'slashed', (group) => isRunning(group, 3));
  expect(field(first, 'status', 'datacenter')).toBe('DC0');
  await it.kubectl('delete', 'vmgroup', 'slashed');

  await it.vcsim.control.delay({ methods: { RetrievePropertiesEx: 1_500 } });
  await create('default', 'mistyped', { datacenter: 'DC7' });
  const told = await until('default', 'mistyped', because('NotFound'));
  expect(field(told, 'status', 'lastMessage')).toContain("datacenter 'DC7' not found");
  await it.vcsim.control.clearDelays();
  await it.kubectl('delete', 'vmgroup', 'mistyped');
});

test('a password that is refused is told, and a new one in its file is taken up; it is in no log and no object', async () => {
  await create('team-west', 'web');
  const waiting = await until('team-west', 'web', because('VcenterUnauthorized'));
  expect(field(waiting, 'status', 'lastMessage')).toBe(
    "vCenter 'west' rejects the user name or the password; correct its credentials",
  );
  await credentials('west', west.username, PASSWORD);
  const healed = await until('team-west', 'web', running);
  expect(healed).toMatchObject({ status: { vcenter: 'west', folder: 'groups/of-west' } });
  const told = [
    await readFile(it.operator.log, 'utf8'),
    await it.kubectl('get', 'vmgroups,events', '-A', '-o', 'yaml'),
    await it.metrics(it.operator),
  ].join('\n');
  expect(told).not.toContain(PASSWORD);
  expect(told).not.toContain('not this one');
});

test('one that is down does not touch the others, and its groups say so until it is back', async () => {
  await east.part.kill();
  await until('team-east', 'web', because('VcenterUnreachable'));
  await create('default', 'beside');
  await until('default', 'beside', running);
  await east.part.start(); // with its first inventory: what it has lost is made again
  await until('team-east', 'web', running);
  expect(await it.vcsim.control.sessions()).toHaveLength(2);
});

test('one that hangs keeps no group of another waiting, however many it has itself', async () => {
  west.part.pause();
  const names = Array.from({ length: 12 }, (_, i) => `hanging-${i}`);
  for (const name of names) await create('team-west', name, { folder: `groups/${name}` });
  await until('team-west', 'hanging-11', because('VcenterUnreachable'));
  await create('default', 'in-time');
  await until('default', 'in-time', running);
  west.part.resume();
  for (const name of names) await until('team-west', name, running);
});
