import { createServer } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  faultOf,
  type Ref,
  SoapClient,
  type SoapResponse,
  serviceInstance,
  sessionManager,
  specOf,
  versionOf,
  xml,
} from '../../test/soap.ts';
import { Assets } from '../assets/assets.ts';
import { freePort } from '../process/ports.ts';
import { tryRun } from '../process/run.ts';
import { until } from '../process/until.ts';
import { startVcsim, type Vcsim } from './vcsim.ts';

const HOUR = 3_600_000;

let vcsim: Vcsim;
let client: SoapClient;
let template: Ref;
let folder: Ref;
let host: Ref;
let clones = 0;

beforeAll(async () => {
  vcsim = await startVcsim();
  await using first = await loggedIn();
  template = await mustFind(first, 'VirtualMachine', 'DC0_C0_RP0_VM0');
  folder = await mustFind(first, 'Folder', 'vm');
  host = await mustFind(first, 'HostSystem', 'DC0_C0_H0');
});

afterAll(() => vcsim[Symbol.asyncDispose]());

beforeEach(async () => {
  const { control } = vcsim;
  await Promise.all([control.clearFaults(), control.clearDelays(), control.clearStatus()]);
  await control.expireSessions();
  client = await loggedIn();
  await control.resetCalls();
  return () => client[Symbol.asyncDispose]();
});

async function loggedIn(): Promise<SoapClient> {
  const session = new SoapClient(vcsim);
  expect(await session.login(vcsim.username, vcsim.password)).toMatchObject({ status: 200 });
  return session;
}

async function mustFind(session: SoapClient, type: string, name: string): Promise<Ref> {
  const object = await session.find(type, name);
  if (object === undefined) throw new Error(`${type} ${name} does not exist`);
  return object;
}

function clone(config = ''): Promise<Ref> {
  clones += 1;
  const args =
    `${xml('folder', folder)}<name>clone-${clones}</name>` +
    `<spec><location/><template>false</template>${config}<powerOn>false</powerOn></spec>`;
  return client.start('CloneVM_Task', template, args);
}

function currentTime(): Promise<SoapResponse> {
  return client.call('CurrentTime', serviceInstance);
}

/** Calls WaitForUpdatesEx and waits until the simulator has received the call. */
async function waitForUpdates(
  collector: Ref,
  version: string,
): Promise<{ readonly response: Promise<SoapResponse> }> {
  const before = (await vcsim.control.calls()).WaitForUpdatesEx ?? 0;
  const response = client.updates(collector, version);
  response.catch(() => undefined); // prevents an unhandled rejection until the caller awaits it
  await until(async () => ((await vcsim.control.calls()).WaitForUpdatesEx ?? 0) > before, {
    what: 'the simulator has received WaitForUpdatesEx',
  });
  return { response };
}

test('only the configured user can log in', async () => {
  await using other = new SoapClient(vcsim);
  const rejected = await other.login(vcsim.username, 'wrong');
  expect(rejected.status).toBe(500);
  expect(faultOf(rejected)).toBe('InvalidLogin');
  expect(faultOf(await other.login('root', vcsim.password))).toBe('InvalidLogin');
  expect((await other.login(vcsim.username, vcsim.password)).text).toContain(
    `<userName>${vcsim.username}</userName>`,
  );
});

test('a client that does not trust the certificate cannot connect', async () => {
  const { ca: otherCa } = await startOther();
  await using other = new SoapClient({ url: vcsim.url, ca: otherCa });
  await expect(other.login(vcsim.username, vcsim.password)).rejects.toMatchObject({
    code: expect.stringMatching(/SELF_SIGNED|SIGNATURE|VERIFY/),
  });

  async function startOther(): Promise<Vcsim> {
    await using vcenter = await startVcsim({ inventory: { vms: 0 } });
    return vcenter;
  }
});

test('a clone has the requested CPUs and memory', async () => {
  const task = await clone('<config><numCPUs>6</numCPUs><memoryMB>12288</memoryMB></config>');
  expect(await client.finished(task)).toBe('success');
  const vm = await mustFind(client, 'VirtualMachine', `clone-${clones}`);
  expect(await client.property(vm, 'config.hardware.numCPU')).toBe('6');
  expect(await client.property(vm, 'config.hardware.memoryMB')).toBe('12288');
  expect(await client.property(template, 'config.hardware.numCPU')).not.toBe('6');
});

test('a call that refers to a nonexistent object is rejected and leaves no lock behind', async () => {
  const missingHost =
    '<spec><location><host type="HostSystem">host-0</host></location><powerOn>false</powerOn></spec>';
  const rejected = await client.call(
    'CloneVM_Task',
    template,
    `${xml('folder', folder)}<name>x</name>${missingHost}`,
  );
  expect(faultOf(rejected)).toBe('ManagedObjectNotFound');
  expect(await client.finished(await clone())).toBe('success');
});

test('setting a custom attribute on a missing object is rejected and leaves no lock behind', async () => {
  const manager = { type: 'CustomFieldsManager', value: 'CustomFieldsManager' };
  const added = await client.call('AddCustomFieldDef', manager, '<name>owner</name>');
  const key = /<key>(\d+)</.exec(added.text)?.[1] ?? '';
  const set = (entity: Ref) =>
    client.call('SetField', manager, `${xml('entity', entity)}<key>${key}</key><value>me</value>`);
  expect(faultOf(await set({ type: 'Folder', value: 'group-0' }))).toBe('ManagedObjectNotFound');
  expect((await set(folder)).status).toBe(200);
  expect(await client.property(folder, 'customValue')).toContain('<value>me</value>');
});

test('skip and max of a fault rule select the calls that get the fault', async () => {
  const rule = { method: 'CurrentTime', fault: 'NoPermission', message: 'not <you>', skip: 2, max: 1 };
  await vcsim.control.fault(rule);
  const answers = [await currentTime(), await currentTime(), await currentTime(), await currentTime()];
  expect(answers.map(faultOf)).toEqual([undefined, undefined, 'NoPermission', undefined]);
  expect(answers[2]?.status).toBe(500);
  expect(answers[2]?.text).toContain('<faultstring>not &lt;you&gt;</faultstring>');
  expect(await vcsim.control.faults()).toMatchObject([{ fault: 'NoPermission', seen: 4, injected: 1 }]);
});

test('skip and max of a fault rule count concurrent calls exactly', async () => {
  await vcsim.control.fault({ method: 'CurrentTime', fault: 'InvalidState', skip: 20, max: 10 });
  const answers = await Promise.all(Array.from({ length: 50 }, currentTime));
  expect(answers.filter((answer) => faultOf(answer) === 'InvalidState')).toHaveLength(10);
});

test('a fault rule can be limited to one object', async () => {
  const only = { objectType: 'VirtualMachine', objectName: 'DC0_C0_RP0_VM0' };
  await vcsim.control.fault({ method: 'RefreshStorageInfo', fault: 'InvalidState', ...only });
  const other = await mustFind(client, 'VirtualMachine', 'DC0_C0_RP0_VM1');
  expect(faultOf(await client.call('RefreshStorageInfo', template))).toBe('InvalidState');
  expect(faultOf(await client.call('RefreshStorageInfo', other))).toBe(undefined);

  await vcsim.control.fault({ task: 'ReconfigVm', fault: 'InvalidState', ...only });
  const states = [template, other].map(async (vm) =>
    client.finished(await client.start('ReconfigVM_Task', vm, '<spec/>')),
  );
  expect(await Promise.all(states)).toEqual(['error', 'success']);
});

test('a fault rule can fail a task instead of a call', async () => {
  const message = 'The host does not have sufficient memory';
  await vcsim.control.fault({ task: 'CloneVm', fault: 'InsufficientMemoryResourcesFault', message, max: 1 });
  const task = await clone();
  expect(await client.finished(task)).toBe('error');
  const error = await client.property(task, 'info.error');
  expect(error).toContain('InsufficientMemoryResourcesFault');
  expect(error).toContain(message);
  expect(await client.find('VirtualMachine', `clone-${clones}`)).toBe(undefined);
  expect(await client.finished(await clone())).toBe('success');
});

test('control.status makes the given number of calls fail with an HTTP status', async () => {
  await vcsim.control.status(503, 2);
  const answers = [await currentTime(), await currentTime(), await currentTime()];
  expect(answers.map(({ status }) => status)).toEqual([503, 503, 200]);
  expect(answers[0]?.text).not.toContain('Envelope');
});

test('after a dropped connection, WaitForUpdatesEx with the last version misses no update', async () => {
  const collector = await client.watch([template], 'guest.ipAddress');
  const version = versionOf((await client.updates(collector, '')).text);
  const { response } = await waitForUpdates(collector, version);
  expect(await vcsim.control.drop()).toBeGreaterThan(0);
  await expect(response).rejects.toThrow();

  await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.9.8.7' });
  const { text } = await client.updates(collector, version);
  expect(text).toContain('10.9.8.7');
  // A client repeats the call after a lost response: the same version returns the same updates again.
  expect((await client.updates(collector, version)).text).toBe(text);
  expect(faultOf(await client.updates(collector, 'no-such-version'))).toBe('InvalidCollectorVersion');
});

test('WaitForUpdatesEx without a version returns all objects each time it is called', async () => {
  const collector = await client.watch([template], 'name');
  const { text } = await client.updates(collector, '');
  expect(text).toContain('DC0_C0_RP0_VM0');
  // If the first response is lost, a client has no version to continue from, and repeats this call.
  const again = (await client.updates(collector, '')).text;
  expect(again).toContain('<kind>enter</kind>');
  expect(again).toContain('DC0_C0_RP0_VM0');
  const { response } = await waitForUpdates(collector, versionOf(again));
  expect(await client.finished(await rename(template, 'renamed'))).toBe('success');
  expect((await response).text).toContain('renamed');
  expect(await client.finished(await rename(template, 'DC0_C0_RP0_VM0'))).toBe('success');

  function rename(vm: Ref, name: string): Promise<Ref> {
    return client.start('Rename_Task', vm, `<newName>${name}</newName>`);
  }
});

test('a created object enters the view and a destroyed object leaves it, each in one update', async () => {
  const view = await client.start(
    'CreateContainerView',
    { type: 'ViewManager', value: 'ViewManager' },
    `${xml('container', folder)}<type>VirtualMachine</type><recursive>true</recursive>`,
  );
  const collector = await client.start('CreatePropertyCollector', {
    type: 'PropertyCollector',
    value: 'propertyCollector',
  });
  const select =
    '<selectSet xsi:type="TraversalSpec"><type>ContainerView</type><path>view</path><skip>false</skip></selectSet>';
  await client.start(
    'CreateFilter',
    collector,
    '<spec><propSet><type>VirtualMachine</type><pathSet>name</pathSet></propSet>' +
      `<objectSet>${xml('obj', view)}<skip>true</skip>${select}</objectSet></spec><partialUpdates>false</partialUpdates>`,
  );
  const first = versionOf((await client.updates(collector, '')).text);
  expect(await client.finished(await clone())).toBe('success');
  const vm = await mustFind(client, 'VirtualMachine', `clone-${clones}`);
  const made = (await client.updates(collector, first)).text;
  expect(made.match(/<kind>\w+</g)).toEqual(['<kind>enter<']);
  expect(made).toContain(`clone-${clones}<`);

  expect(await client.finished(await client.start('Destroy_Task', vm))).toBe('success');
  const destroyed = (await client.updates(collector, versionOf(made))).text;
  expect(destroyed.match(/<kind>\w+</g)).toEqual(['<kind>leave<']);
  expect(destroyed).toContain(`>${vm.value}<`);
});

test('a delayed call is executed even if its connection is dropped during the delay', async () => {
  await vcsim.control.delay({ methods: { CloneVM_Task: HOUR } });
  const response = clone();
  response.catch(() => undefined);
  await until(async () => (await vcsim.control.calls()).CloneVM_Task === 1, {
    what: 'the simulator has received the call',
  });
  await vcsim.control.drop();
  await expect(response).rejects.toThrow();
  expect(await client.find('VirtualMachine', `clone-${clones}`)).toBe(undefined);

  await vcsim.control.clearDelays();
  await until(() => client.find('VirtualMachine', `clone-${clones}`), { what: 'the clone exists' });
});

test('delayed tasks run concurrently and finish when the delay is cleared', async () => {
  await vcsim.control.delay({ tasks: { CloneVm_Task: HOUR } });
  const tasks = [await clone(), await clone()];
  for (const task of tasks) expect(await client.property(task, 'info.state')).toBe('running');
  expect(await client.property(template, 'name')).toBe('DC0_C0_RP0_VM0');
  expect(await client.find('VirtualMachine', `clone-${clones}`)).toBe(undefined);

  await vcsim.control.clearDelays();
  for (const task of tasks) expect(await client.finished(task)).toBe('success');
  expect(await client.find('VirtualMachine', `clone-${clones}`)).toBeDefined();
});

test('recentTask lists the requested task but not its internal subtasks', async () => {
  const manager = { type: 'TaskManager', value: 'TaskManager' };
  const listed = async () =>
    (await client.property(manager, 'recentTask'))?.match(/task-\d+(?=<)/g)?.map(String) ?? [];
  const before = await listed();
  const task = await clone(); // the simulator creates the VM in a subtask, which must not be listed
  expect(await client.finished(task)).toBe('success');
  const added = (await listed()).filter((each) => !before.includes(each));
  expect(added).toEqual([task.value]);
});

test('a delayed task fails without effect if it is cancelled or its object is destroyed', async () => {
  expect(await client.finished(await clone())).toBe('success');
  const vm = await mustFind(client, 'VirtualMachine', `clone-${clones}`);
  await vcsim.control.delay({ tasks: { CloneVm: HOUR, ReconfigVm: HOUR } });
  const cancelled = await clone();
  await client.call('CancelTask', cancelled);
  const orphaned = await client.start('ReconfigVM_Task', vm, '<spec><numCPUs>2</numCPUs></spec>');
  expect(await client.finished(await client.start('Destroy_Task', vm))).toBe('success');

  await vcsim.control.clearDelays();
  expect(await client.finished(orphaned)).toBe('error');
  expect(await client.property(orphaned, 'info.error')).toContain('ManagedObjectNotFound');
  expect(await client.property(cancelled, 'info.error')).toContain('RequestCanceled');
  expect(await client.find('VirtualMachine', `clone-${clones}`)).toBe(undefined);
});

test('idle sessions expire', async () => {
  await vcsim.control.sessionTimeout(20);
  await using idle = await loggedIn();
  await until(async () => (await vcsim.control.sessions()).length === 1, {
    what: 'the idle session has expired',
  });
  expect(faultOf(await idle.call('CurrentTime', serviceInstance))).toBe('NotAuthenticated');
  await vcsim.control.sessionTimeout(HOUR);
});

test('expireSessions ends all sessions and pending calls', async () => {
  const collector = await client.watch([template], 'guest.ipAddress');
  const { response } = await waitForUpdates(collector, versionOf((await client.updates(collector, '')).text));
  expect(await vcsim.control.expireSessions()).toBe(1);
  expect(faultOf(await response)).toBe('NotAuthenticated');
  expect(faultOf(await currentTime())).toBe('NotAuthenticated');
  const read = await client.retrieve(specOf([template], 'name'));
  expect([read.status, faultOf(read)]).toEqual([200, 'NotAuthenticated']);
  expect(await vcsim.control.sessions()).toEqual([]);
  await client.login(vcsim.username, vcsim.password);
  expect((await currentTime()).status).toBe(200);
});

test('GPUs, maintenance mode and connection state of a host can be set, and watchers are notified', async () => {
  const collector = await client.watch([host], 'runtime');
  const { response } = await waitForUpdates(collector, versionOf((await client.updates(collector, '')).text));
  await vcsim.control.host('DC0_C0_H0', {
    gpus: 2,
    gpuModel: 'NVIDIA H100',
    maintenance: true,
    connection: 'notResponding',
    cpuUsageMhz: 1234,
    memoryUsageMb: 4321,
  });
  expect((await response).text).toContain('<inMaintenanceMode>true<');
  expect(await client.property(host, 'runtime.inMaintenanceMode')).toBe('true');
  expect(await client.property(host, 'summary.runtime.connectionState')).toBe('notResponding');
  expect(await client.property(host, 'summary.quickStats.overallCpuUsage')).toBe('1234');
  expect(await client.property(host, 'summary.quickStats.overallMemoryUsage')).toBe('4321');
  expect(await devices()).toEqual([2, 2, 2]);
  expect(
    await client.property(await mustFind(client, 'HostSystem', 'DC0_C0_H1'), 'config.graphicsInfo'),
  ).not.toContain('H100');

  await vcsim.control.host('DC0_C0_H0', { gpus: 0, maintenance: false, connection: 'connected' });
  expect(await client.property(host, 'runtime.inMaintenanceMode')).toBe('false');
  expect(await devices()).toEqual([0, 0, 0]);

  async function devices(): Promise<number[]> {
    const paths = ['config.graphicsInfo', 'hardware.pciDevice', 'config.pciPassthruInfo'];
    const properties = await Promise.all(paths.map((path) => client.property(host, path)));
    return properties.map((text) => text?.match(/<(?:pciId|id)>0000:af:/g)?.length ?? 0);
  }
});

test('usage and IP address of a VM can be set, and watchers are notified', async () => {
  const collector = await client.watch([template], 'summary.quickStats.overallCpuDemand');
  const { response } = await waitForUpdates(collector, versionOf((await client.updates(collector, '')).text));
  const usage = { cpuUsageMhz: 11, cpuDemandMhz: 22, guestMemoryMb: 33, hostMemoryMb: 44 };
  await vcsim.control.vm('DC0_C0_RP0_VM0', { ...usage, ip: '10.1.2.3' });
  expect((await response).text).toMatch(/>22</);
  const paths = ['overallCpuUsage', 'overallCpuDemand', 'guestMemoryUsage', 'hostMemoryUsage'];
  const read = paths.map((path) => client.property(template, `summary.quickStats.${path}`));
  expect(await Promise.all(read)).toEqual(['11', '22', '33', '44']);
  expect(await client.property(template, 'guest.ipAddress')).toBe('10.1.2.3');
  expect(await client.property(template, 'guest.net')).toContain('10.1.2.3');

  await vcsim.control.vm(template.value, { ip: '' });
  expect(await client.property(template, 'guest.ipAddress')).toBe(undefined);
});

test('UUID, host and PCI devices of a VM can be set through the control API', async () => {
  const from = await client.property(template, 'runtime.host');
  const to = from === host.value ? await mustFind(client, 'HostSystem', 'DC0_C0_H1') : host;
  const uuid = '420a1b2c-3d4e-5f60-7182-93a4b5c6d7e8';
  await vcsim.control.vm(template.value, {
    uuid,
    instanceUuid: uuid,
    host: to.value,
    pciDevices: [{ id: '0000:af:00.0' }, { id: '0000:af:01.0', dynamic: true }, { vgpu: 'grid_a100-10c' }],
  });
  for (const path of ['config.uuid', 'config.instanceUuid'])
    expect(await client.property(template, path)).toBe(uuid);
  expect(await client.property(template, 'runtime.host')).toBe(to.value);
  expect(await client.property(to, 'vm')).toContain(`>${template.value}<`);
  expect(await client.property({ type: 'HostSystem', value: from ?? '' }, 'vm')).not.toContain(
    `>${template.value}<`,
  );
  const devices = await client.property(template, 'config.hardware.device');
  expect(devices?.match(/VirtualPCIPassthrough\w*BackingInfo/g)).toEqual([
    'VirtualPCIPassthroughDeviceBackingInfo',
    'VirtualPCIPassthroughDynamicBackingInfo',
    'VirtualPCIPassthroughVmiopBackingInfo',
  ]);
  await vcsim.control.vm(template.value, { pciDevices: [], host: from ?? '' });
  expect(await client.property(template, 'config.hardware.device')).not.toContain('PCIPassthrough');
});

test('custom attributes of a host can be set, and watchers are notified', async () => {
  const collector = await client.watch([host], 'customValue');
  const { response } = await waitForUpdates(collector, versionOf((await client.updates(collector, '')).text));
  await vcsim.control.host('DC0_C0_H0', { attributes: { maintenance: 'now' } });
  expect((await response).text).toContain('<value>now<');
  const manager = { type: 'CustomFieldsManager', value: 'CustomFieldsManager' };
  expect(await client.property(manager, 'field')).toContain('<name>maintenance<');
  await vcsim.control.host('DC0_C0_H0', { attributes: { maintenance: '' } });
  expect(await client.property(host, 'customValue')).not.toContain('now');
});

test('scheduled tasks can be set and removed, and watchers are notified', async () => {
  const manager = { type: 'ScheduledTaskManager', value: 'ScheduledTaskManager' };
  const collector = await client.watch([manager], 'scheduledTask');
  const { response } = await waitForUpdates(collector, versionOf((await client.updates(collector, '')).text));
  const at = new Date('2040-01-31T22:00:00Z');
  const entity = 'DC0_C0_H0';
  await vcsim.control.scheduleTask('Patch', { entity, method: 'EnterMaintenanceMode_Task', at });
  expect((await response).text).toContain('>schedule-Patch<');
  const task = { type: 'ScheduledTask', value: 'schedule-Patch' };
  const info = await client.property(task, 'info');
  for (const part of ['<name>Patch<', '<enabled>true<', '2040-01-31T22:00:00', `>${host.value}<`])
    expect(info).toContain(part);
  await vcsim.control.removeScheduledTask('Patch');
  expect(await client.property(manager, 'scheduledTask')).not.toContain('Patch');
});

test('calls are counted by method, including failed ones', async () => {
  await Promise.all([currentTime(), currentTime(), currentTime()]);
  await vcsim.control.status(503);
  await currentTime();
  await client.property(template, 'name');
  expect(await vcsim.control.calls()).toEqual({ CurrentTime: 4, RetrievePropertiesEx: 1 });
  await vcsim.control.resetCalls();
  expect(await vcsim.control.calls()).toEqual({});
});

test('control.sessions returns the open sessions', async () => {
  expect(await vcsim.control.sessions()).toMatchObject([{ user: vcsim.username }]);
  await using second = await loggedIn();
  expect(await vcsim.control.sessions()).toHaveLength(2);
  await second.call('Logout', sessionManager);
  expect(await vcsim.control.sessions()).toHaveLength(1);
});

test('invalid control requests are rejected with a reason, and the simulator keeps running', async () => {
  const { control } = vcsim;
  const rejections = [
    control.fault({ method: 'CloneVM_Task', fault: 'NoSuchFault' }),
    control.fault({ method: 'NoSuchMethod', fault: 'NoPermission' }),
    control.fault({ method: 'CloneVM_Task', fault: 'NoPermission', skip: -1 }),
    control.status(42),
    control.delay({ methods: { CloneVM_Task: -1 } }),
    control.sessionTimeout(0),
    control.host('no-such-host', { gpus: 1 }),
    control.host('DC0_C0_H0', { gpus: 1.5 }),
    control.host('DC0_C0_H0', {}),
    control.vm('DC0_C0_RP0_VM0', { ip: 'nowhere' }),
    control.vm('DC0_C0_RP0_VM0', { host: 'no-such-host' }),
    control.vm('DC0_C0_RP0_VM0', { pciDevices: [{ id: '' }] }),
    control.scheduleTask('Patch', { entity: 'no-such-host', method: 'RebootHost_Task' }),
    control.scheduleTask('Patch', { entity: 'DC0_C0_H0', method: 'NoSuchMethod' }),
    control.removeScheduledTask('no-such-task'),
  ].map((request) => expect(request).rejects.toMatchObject({ code: 'REQUEST_FAILED' }));
  await Promise.all(rejections);
  await expect(control.host('no-such-host', { gpus: 1 })).rejects.toThrow('host "no-such-host" not found');
  expect((await currentTime()).status).toBe(200);
});

test('startVcsim fails with PORT_BUSY when the port is in use', async () => {
  const port = await freePort();
  const holder = createServer();
  await new Promise<void>((listening) => holder.listen(port, '127.0.0.1', listening));
  await expect(startVcsim({ port })).rejects.toMatchObject({
    code: 'PORT_BUSY',
    message: expect.stringMatching(`port ${port} for vcsim is in use`),
  });
  const { code, stderr } = await tryRun(await new Assets().path('vcsim'), [`-listen=127.0.0.1:${port}`]);
  expect(code).toBe(1);
  expect(stderr).toMatch(new RegExp(`^vcsim: address 127.0.0.1:${port} is in use; .*\n$`));
  await new Promise((closed) => holder.close(closed));
});

test('SIGTERM stops vcsim, and a restart keeps the certificate', async () => {
  await using other = await startVcsim({ inventory: { standaloneHosts: 0, vms: 1 } });
  const ended = other.part.exited();
  await other.part.stop();
  expect(await ended).toEqual({ code: 0, signal: null });
  await other.part.start();
  await using again = new SoapClient(other);
  expect((await again.login(other.username, other.password)).status).toBe(200);
});
