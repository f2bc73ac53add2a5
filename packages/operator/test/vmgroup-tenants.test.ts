import { mkdir, mkdtemp, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  canary,
  condition,
  field,
  freePort,
  type KubeObject,
  startToxiproxy,
  startVcsim,
  type Vcsim,
} from '@vmwright/testbed';
import { isRef, type Ref, type VcenterClient } from '@vmwright/vsphere';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { install, ready, TEMPLATE, type WithVcenter } from './with-vcenter.ts';

const HOUR = 3_600_000;
const stack = new AsyncDisposableStack();
let env: WithVcenter;
const PASSWORD = canary('vcenter-password');
let other: Vcsim;
let proxy: Awaited<ReturnType<Awaited<ReturnType<typeof startToxiproxy>>['proxy']>>;
let credentials: string;

beforeAll(async () => {
  const toxiproxy = stack.use(await startToxiproxy());
  const inventory = { standaloneHosts: 0, vms: 2 };
  other = stack.use(await startVcsim({ inventory, templates: [TEMPLATE], password: PASSWORD }));
  proxy = await toxiproxy.proxy({ name: 'vcenter', upstream: `127.0.0.1:${await freePort()}` });
  credentials = await mkdtemp(join(tmpdir(), 'credentials-'));
  await setPassword(PASSWORD);
  env = stack.use(
    await install({
      vcsim: { password: PASSWORD },
      env: { VC_HOST: proxy.address, VC_CREDENTIALS: credentials, VC_PASS: '', VC_CA: '' },
      args: ['--insecure', '--vsphere-concurrency=1'],
    }),
  );
  await proxy.redirect(env.vcsim.host);
});
afterAll(() => stack.disposeAsync());
beforeEach(async () => {
  const { control } = env.vcsim;
  await Promise.all([control.clearFaults(), control.clearDelays(), control.clearStatus()]);
});

/** Replaces the operator's password at run time, like the kubelet does for a mounted Secret. */
async function setPassword(password: string): Promise<void> {
  await mkdir(credentials, { recursive: true });
  for (const [key, value] of Object.entries({ VC_USER: 'administrator@vsphere.local', VC_PASS: password })) {
    await writeFile(join(credentials, `.${key}`), value);
    await rename(join(credentials, `.${key}`), join(credentials, key));
  }
}

const hasReason = (reason: string) => (group: KubeObject) => field(ready(group), 'reason') === reason;
const message = (group: KubeObject) => field(group, 'status', 'lastMessage');

async function called(method: string, times = 1): Promise<void> {
  await expect.poll(async () => (await env.vcsim.control.calls())[method] ?? 0).toBeGreaterThanOrEqual(times);
}

async function namesIn(
  vcenter: VcenterClient,
  folder: Ref<'Folder'>,
): Promise<readonly (string | undefined)[]> {
  const all = await vcenter.list('Folder', ['name', 'parent']);
  return all
    .filter(({ properties }) => properties.parent?.value === folder.value)
    .map((each) => each.properties.name);
}

test.each([
  [Array.from({ length: 120 }, (_, i) => `s${i}`).join('/'), 'Too long'],
  ['a/b/c/d/e/f/g/h/i', 'folder must have at most 8 segments'],
  ['x'.repeat(81), 'each segment of folder must have at most 80 characters'],
  ['/', 'folder must be a path such as a/b, without empty segments'],
  ['a//b', 'folder must be a path such as a/b, without empty segments'],
  ['a/../b', "folder must not contain the segments '.' and '..'"],
])('the folder %s is rejected by the API server with a message', async (folder, text) => {
  await expect(env.group('rejected', { placement: { folder } })).rejects.toThrow(text);
});

// Must be the first test with groups, because it counts the views and filters since the start of vCenter. Earlier tests
// would distort the numbers: the views of a lost session end without a call that destroys them, and the operator
// watches an unused folder for another minute.
test('one PropertyCollector watches twelve folders, with one view and one filter per folder', async () => {
  const { control } = env.vcsim;
  const watched = async () => {
    const calls = await control.calls();
    const difference = (created: string, destroyed: string) =>
      (calls[created] ?? 0) - (calls[destroyed] ?? 0);
    return [
      difference('CreateContainerView', 'DestroyView'),
      difference('CreateFilter', 'DestroyPropertyFilter'),
    ];
  };
  const collectors = async () => (await control.calls()).CreatePropertyCollector ?? 0;
  await env.group('first', { replicas: 0 });
  await env.running('first', 0);
  await expect.poll(watched).toEqual([1, 1]); // polled, because garbage collection creates temporary views
  const before = await collectors();
  const names = Array.from({ length: 12 }, (_, i) => `own-${i}`);
  for (const name of names) await env.group(name, { replicas: 0, placement: { folder: `own/${name}` } });
  for (const name of names) await env.running(name, 0);
  await expect.poll(watched).toEqual([13, 13]);
  expect(await collectors()).toBe(before);
  await env.kubectl('delete', 'vmgroup', 'first', ...names);
});

test('a template name that matches an ordinary machine is reported as NotFound', async () => {
  const all = await env.vcenter.list('VirtualMachine', ['name', 'config.template']);
  const template = all.find(({ properties }) => !properties['config.template'])?.properties.name;
  if (template === undefined) throw new Error('vCenter has no machine that is not a template');
  await env.group('not-a-template', { replicas: 1, template });
  const missing = await env.until('not-a-template', hasReason('NotFound'));
  expect(message(missing)).toBe(
    `template '${template}' not found in datacenter 'DC0'; machines that are not templates are ignored`,
  );
  await env.kubectl('delete', 'vmgroup', 'not-a-template');
});

test('a foreign machine that is created in the folder of a group while the operator removes the folder keeps its files', async () => {
  await env.group('dropped', { replicas: 1 });
  await env.running('dropped', 1);
  const { lookup, machines, tasks } = env.vcenter;
  const datacenter = await lookup.datacenter();
  const folder = await lookup.folder(datacenter, 'vm-operator/default-dropped');
  await env.vcsim.control.resetCalls();
  await env.vcsim.control.delay({ methods: { UnregisterAndDestroy_Task: HOUR } });
  await env.kubectl('delete', 'vmgroup', 'dropped', '--wait=false');
  await called('UnregisterAndDestroy_Task');
  const template = await lookup.template(datacenter, TEMPLATE);
  const resourcePool = await lookup.resourcePool(datacenter, 'DC0_C0');
  const task = await machines.clone({ name: 'foreign', template, folder, resourcePool });
  expect(isRef(await tasks.follow(task), 'VirtualMachine')).toBe(true);
  await env.vcsim.control.clearDelays();
  await env.gone('dropped');
  // The operator destroyed only the group's machine. It removed the folder with UnregisterAndDestroy_Task, which keeps
  // the files of the machines in it.
  expect(await env.vcsim.control.calls()).toMatchObject({ Destroy_Task: 1, UnregisterAndDestroy_Task: 1 });
});

test('when a group is deleted, its empty folder stays if people created the folder', async () => {
  const { lookup, machines } = env.vcenter;
  const root = await lookup.folder(await lookup.datacenter(), 'vm-operator');
  await machines.createFolder(root, 'default-theirs');
  await env.group('theirs', { replicas: 1 });
  await env.running('theirs', 1);
  await env.kubectl('delete', 'vmgroup', 'theirs');
  expect(await namesIn(env.vcenter, root)).toContain('default-theirs');
});

test('a folder that vCenter creates slowly does not delay groups in other folders', async () => {
  await env.vcsim.control.delay({ methods: { CreateFolder: HOUR } });
  await env.group('slow', { replicas: 1, placement: { folder: 'slow/to/open' } });
  await called('CreateFolder');
  await env.group('quick', { replicas: 0 });
  await env.running('quick', 0);
  await env.vcsim.control.clearDelays();
  await env.running('slow', 1);
  await env.kubectl('delete', 'vmgroup', 'slow', 'quick');
});

test('a power-on does not wait for a clone of another group; a group reports that its clone waits for a vCenter task slot', async () => {
  await env.group('small', { replicas: 1 });
  const small = await env.running('small', 1);
  await env.vcsim.control.delay({ tasks: { CloneVm: HOUR } });
  await env.group('cloning', { replicas: 1 });
  await env.until('cloning', (group) =>
    JSON.stringify(field(group, 'status', 'replicas') ?? '').includes('"task"'),
  );
  await env.group('waiting', { replicas: 1 });
  const waiting = await env.until('waiting', (group) => String(message(group)).includes('task slot'));
  expect(message(waiting)).toMatch(/; waiting for a vCenter task slot$/);
  const [machine] = await env.machines('default-small');
  const vm = { type: 'VirtualMachine', value: machine?.id ?? '' } as const;
  await env.vcenter.tasks.follow(await env.vcenter.machines.powerOff(vm));
  await env.untilAfter(small, (group) => field(group, 'status', 'readyReplicas') === 0);
  await env.running('small', 1);
  await env.vcsim.control.clearDelays();
  await env.running('waiting', 1);
  await env.kubectl('delete', 'vmgroup', 'small', 'cloning', 'waiting');
});

test('a password that becomes wrong at run time is reported as VcenterUnauthorized', async () => {
  await env.group('outage', { replicas: 1 });
  await env.running('outage', 1);
  await setPassword('wrong');
  await env.vcsim.control.expireSessions();
  const unauthorized = await env.until('outage', hasReason('VcenterUnauthorized'));
  expect(message(unauthorized)).toBe(
    "vCenter 'default' rejects the user name or the password; correct its credentials",
  );
  await setPassword(PASSWORD);
  await env.running('outage', 1);
});

test('if vCenter responds with 503, groups report the HTTP status; a new group reports it immediately', async () => {
  await env.vcsim.control.status(503, 1_000_000);
  await env.vcsim.control.drop();
  // Waits for this text, because calls in flight may report another cause first when the connections are dropped.
  const text = "vCenter 'default' responds with HTTP 503 (service unavailable); retrying automatically";
  const unavailable = await env.until('outage', (group) => message(group) === text);
  expect(field(ready(unavailable), 'reason')).toBe('VcenterUnreachable');
  expect(condition(unavailable, 'VCenterAvailable')).toBe('False');
  // A new group reports the known cause immediately, before its own calls fail.
  await env.group('late', { replicas: 0 });
  expect(message(await env.until('late', (group) => message(group) !== undefined))).toBe(text);
  await env.group('misplaced', { replicas: 0, placement: { datacenter: 'DC9' } });
  const down = await env.until('misplaced', hasReason('VcenterUnreachable'));
  expect(condition(down, 'VCenterAvailable')).toBe('False');
  await env.vcsim.control.clearStatus();
  await env.running('late', 0);
  const up = await env.running('outage', 1);
  expect(condition(up, 'VCenterAvailable')).toBe('True');
  const misplaced = await env.until('misplaced', hasReason('NotFound'));
  expect(condition(misplaced, 'VCenterAvailable')).toBe(undefined);
  await env.kubectl('delete', 'vmgroup', 'misplaced');
});

test('an address that leads to another vCenter is reported, and the operator does not log in there', async () => {
  await other.control.resetCalls();
  await proxy.redirect(other.host);
  const changed = await env.until('outage', hasReason('VcenterChanged'));
  expect(message(changed)).toMatch(
    /leads to another vCenter .* than at the first login .* nothing is changed there/,
  );
  const calls = await other.control.calls();
  for (const method of ['Login', 'CreateFolder', 'CloneVM_Task']) expect(calls).not.toHaveProperty(method);
  await proxy.redirect(env.vcsim.host);
  await env.running('outage', 1);
  await env.kubectl('delete', 'vmgroup', 'outage', 'late');
});
