import { createServer } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  type Answer,
  faultOf,
  type Ref,
  SoapClient,
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
  template = await found(first, 'VirtualMachine', 'DC0_C0_RP0_VM0');
  folder = await found(first, 'Folder', 'vm');
  host = await found(first, 'HostSystem', 'DC0_C0_H0');
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
  const its = new SoapClient(vcsim);
  expect(await its.login(vcsim.username, vcsim.password)).toMatchObject({ status: 200 });
  return its;
}

async function found(its: SoapClient, type: string, name: string): Promise<Ref> {
  const object = await its.find(type, name);
  if (object === undefined) throw new Error(`there is no ${type} ${name}`);
  return object;
}

function clone(config = ''): Promise<Ref> {
  clones += 1;
  const args =
    `${xml('folder', folder)}<name>clone-${clones}</name>` +
    `<spec><location/><template>false</template>${config}<powerOn>false</powerOn></spec>`;
  return client.start('CloneVM_Task', template, args);
}

function currentTime(): Promise<Answer> {
  return client.call('CurrentTime', serviceInstance);
}

/** The next answer for updates, once the simulator has been asked: nothing that follows can come too early. */
async function waiting(collector: Ref, version: string): Promise<{ readonly answer: Promise<Answer> }> {
  const before = (await vcsim.control.calls()).WaitForUpdatesEx ?? 0;
  const answer = client.updates(collector, version);
  answer.catch(() => undefined); // whoever awaits it is told; until then it must not end the run
  await until(async () => ((await vcsim.control.calls()).WaitForUpdatesEx ?? 0) > before, {
    what: 'a call for updates under way',
  });
  return { answer };
}

test('lets in its user and nobody else', async () => {
  await using stranger = new SoapClient(vcsim);
  const refused = await stranger.login(vcsim.username, 'wrong');
  expect(refused.status).toBe(500);
  expect(faultOf(refused)).toBe('InvalidLogin');
  expect(faultOf(await stranger.login('root', vcsim.password))).toBe('InvalidLogin');
  expect((await stranger.login(vcsim.username, vcsim.password)).text).toContain(
    `<userName>${vcsim.username}</userName>`,
  );
});

test('shows a certificate that can be verified', async () => {
  const { ca: foreign } = await startedElsewhere();
  await using stranger = new SoapClient({ url: vcsim.url, ca: foreign });
  await expect(stranger.login(vcsim.username, vcsim.password)).rejects.toMatchObject({
    code: expect.stringMatching(/SELF_SIGNED|SIGNATURE|VERIFY/),
  });

  async function startedElsewhere(): Promise<Vcsim> {
    await using other = await startVcsim({ inventory: { vms: 0 } });
    return other;
  }
});

test('a clone has the cpu and memory asked for', async () => {
  const task = await clone('<config><numCPUs>6</numCPUs><memoryMB>12288</memoryMB></config>');
  expect(await client.finished(task)).toBe('success');
  const vm = await found(client, 'VirtualMachine', `clone-${clones}`);
  expect(await client.property(vm, 'config.hardware.numCPU')).toBe('6');
  expect(await client.property(vm, 'config.hardware.memoryMB')).toBe('12288');
  expect(await client.property(template, 'config.hardware.numCPU')).not.toBe('6');
});

test('a call that names a missing object is refused, and leaves no lock behind', async () => {
  const elsewhere =
    '<spec><location><host type="HostSystem">host-0</host></location><powerOn>false</powerOn></spec>';
  const refused = await client.call(
    'CloneVM_Task',
    template,
    `${xml('folder', folder)}<name>x</name>${elsewhere}`,
  );
  expect(faultOf(refused)).toBe('ManagedObjectNotFound');
  expect(await client.finished(await clone())).toBe('success');
});

test('a custom attribute of a missing object is refused, and leaves no lock behind', async () => {
  const manager = { type: 'CustomFieldsManager', value: 'CustomFieldsManager' };
  const added = await client.call('AddCustomFieldDef', manager, '<name>owner</name>');
  const key = /<key>(\d+)</.exec(added.text)?.[1] ?? '';
  const set = (entity: Ref) =>
    client.call('SetField', manager, `${xml('entity', entity)}<key>${key}</key><value>me</value>`);
  expect(faultOf(await set({ type: 'Folder', value: 'group-0' }))).toBe('ManagedObjectNotFound');
  expect((await set(folder)).status).toBe(200);
  expect(await client.property(folder, 'customValue')).toContain('<value>me</value>');
});

test('a fault strikes exactly the call it is meant for', async () => {
  const rule = { method: 'CurrentTime', fault: 'NoPermission', message: 'not <you>', skip: 2, max: 1 };
  await vcsim.control.fault(rule);
  const answers = [await currentTime(), await currentTime(), await currentTime(), await currentTime()];
  expect(answers.map(faultOf)).toEqual([undefined, undefined, 'NoPermission', undefined]);
  expect(answers[2]?.status).toBe(500);
  expect(answers[2]?.text).toContain('<faultstring>not &lt;you&gt;</faultstring>');
  expect(await vcsim.control.faults()).toMatchObject([{ fault: 'NoPermission', seen: 4, injected: 1 }]);
});

test('a fault strikes as often as it shall when calls come at once', async () => {
  await vcsim.control.fault({ method: 'CurrentTime', fault: 'InvalidState', skip: 20, max: 10 });
  const answers = await Promise.all(Array.from({ length: 50 }, currentTime));
  expect(answers.filter((answer) => faultOf(answer) === 'InvalidState')).toHaveLength(10);
});

test('a fault can be kept to one object', async () => {
  const only = { objectType: 'VirtualMachine', objectName: 'DC0_C0_RP0_VM0' };
  await vcsim.control.fault({ method: 'RefreshStorageInfo', fault: 'InvalidState', ...only });
  const other = await found(client, 'VirtualMachine', 'DC0_C0_RP0_VM1');
  expect(faultOf(await client.call('RefreshStorageInfo', template))).toBe('InvalidState');
  expect(faultOf(await client.call('RefreshStorageInfo', other))).toBe(undefined);

  await vcsim.control.fault({ task: 'ReconfigVm', fault: 'InvalidState', ...only });
  const states = [template, other].map(async (vm) =>
    client.finished(await client.start('ReconfigVM_Task', vm, '<spec/>')),
  );
  expect(await Promise.all(states)).toEqual(['error', 'success']);
});

test('a fault can end a task instead of a call', async () => {
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

test('answers with a status as many times as told', async () => {
  await vcsim.control.status(503, 2);
  const answers = [await currentTime(), await currentTime(), await currentTime()];
  expect(answers.map(({ status }) => status)).toEqual([503, 503, 200]);
  expect(answers[0]?.text).not.toContain('Envelope');
});

test('drops connections, and who asks again misses nothing', async () => {
  const collector = await client.watch([template], 'guest.ipAddress');
  const version = versionOf((await client.updates(collector, '')).text);
  const { answer } = await waiting(collector, version);
  expect(await vcsim.control.drop()).toBeGreaterThan(0);
  await expect(answer).rejects.toThrow();

  await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.9.8.7' });
  const { text } = await client.updates(collector, version);
  expect(text).toContain('10.9.8.7');
  // As after an answer that was lost on its way: the version in hand brings the same once more.
  expect((await client.updates(collector, version)).text).toBe(text);
  expect(faultOf(await client.updates(collector, 'no-such-version'))).toBe('InvalidCollectorVersion');
});

test('who asks without a version is told everything, also a second time', async () => {
  const collector = await client.watch([template], 'name');
  const { text } = await client.updates(collector, '');
  expect(text).toContain('DC0_C0_RP0_VM0');
  // As after a first answer that was lost on its way: it has brought no version, so none can be asked for.
  const again = (await client.updates(collector, '')).text;
  expect(again).toContain('<kind>enter</kind>');
  expect(again).toContain('DC0_C0_RP0_VM0');
  const { answer } = await waiting(collector, versionOf(again));
  expect(await client.finished(await rename(template, 'renamed'))).toBe('success');
  expect((await answer).text).toContain('renamed');
  expect(await client.finished(await rename(template, 'DC0_C0_RP0_VM0'))).toBe('success');

  function rename(vm: Ref, name: string): Promise<Ref> {
    return client.start('Rename_Task', vm, `<newName>${name}</newName>`);
  }
});

test('an object that is destroyed leaves, and one that is made enters, each in one answer', async () => {
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
  const vm = await found(client, 'VirtualMachine', `clone-${clones}`);
  const made = (await client.updates(collector, first)).text;
  expect(made.match(/<kind>\w+</g)).toEqual(['<kind>enter<']);
  expect(made).toContain(`clone-${clones}<`);

  expect(await client.finished(await client.start('Destroy_Task', vm))).toBe('success');
  const destroyed = (await client.updates(collector, versionOf(made))).text;
  expect(destroyed.match(/<kind>\w+</g)).toEqual(['<kind>leave<']);
  expect(destroyed).toContain(`>${vm.value}<`);
});

test('carries out a call that was dropped while it was slow', async () => {
  await vcsim.control.delay({ methods: { CloneVM_Task: HOUR } });
  const answer = clone();
  answer.catch(() => undefined);
  await until(async () => (await vcsim.control.calls()).CloneVM_Task === 1, {
    what: 'the call under way',
  });
  await vcsim.control.drop();
  await expect(answer).rejects.toThrow();
  expect(await client.find('VirtualMachine', `clone-${clones}`)).toBe(undefined);

  await vcsim.control.clearDelays();
  await until(() => client.find('VirtualMachine', `clone-${clones}`), { what: 'the clone' });
});

test('slow tasks run side by side, and end when the delay does', async () => {
  await vcsim.control.delay({ tasks: { CloneVm_Task: HOUR } });
  const tasks = [await clone(), await clone()];
  for (const task of tasks) expect(await client.property(task, 'info.state')).toBe('running');
  expect(await client.property(template, 'name')).toBe('DC0_C0_RP0_VM0');
  expect(await client.find('VirtualMachine', `clone-${clones}`)).toBe(undefined);

  await vcsim.control.clearDelays();
  for (const task of tasks) expect(await client.finished(task)).toBe('success');
  expect(await client.find('VirtualMachine', `clone-${clones}`)).toBeDefined();
});

test('what was asked for is among the recent tasks, and no steps of it', async () => {
  const manager = { type: 'TaskManager', value: 'TaskManager' };
  const listed = async () =>
    (await client.property(manager, 'recentTask'))?.match(/task-\d+(?=<)/g)?.map(String) ?? [];
  const before = await listed();
  const task = await clone(); // which makes a machine, by a task of its own
  expect(await client.finished(task)).toBe('success');
  const added = (await listed()).filter((each) => !before.includes(each));
  expect(added).toEqual([task.value]);
});

test('a slow task that is cancelled stays so, and one whose object goes away fails', async () => {
  expect(await client.finished(await clone())).toBe('success');
  const vm = await found(client, 'VirtualMachine', `clone-${clones}`);
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

test('ends idle sessions', async () => {
  await vcsim.control.sessionTimeout(20);
  await using idle = await loggedIn();
  await until(async () => (await vcsim.control.sessions()).length === 1, { what: 'the idle session gone' });
  expect(faultOf(await idle.call('CurrentTime', serviceInstance))).toBe('NotAuthenticated');
  await vcsim.control.sessionTimeout(HOUR);
});

test('ends all sessions at once, whatever is under way', async () => {
  const collector = await client.watch([template], 'guest.ipAddress');
  const { answer } = await waiting(collector, versionOf((await client.updates(collector, '')).text));
  expect(await vcsim.control.expireSessions()).toBe(1);
  expect(faultOf(await answer)).toBe('NotAuthenticated');
  expect(faultOf(await currentTime())).toBe('NotAuthenticated');
  const read = await client.retrieve(specOf([template], 'name'));
  expect([read.status, faultOf(read)]).toEqual([200, 'NotAuthenticated']);
  expect(await vcsim.control.sessions()).toEqual([]);
  await client.login(vcsim.username, vcsim.password);
  expect((await currentTime()).status).toBe(200);
});

test('a host has the GPUs, the maintenance and the connection it is given, and watchers hear of it', async () => {
  const collector = await client.watch([host], 'runtime');
  const { answer } = await waiting(collector, versionOf((await client.updates(collector, '')).text));
  await vcsim.control.host('DC0_C0_H0', {
    gpus: 2,
    gpuModel: 'NVIDIA H100',
    maintenance: true,
    connection: 'notResponding',
    cpuUsageMhz: 1234,
    memoryUsageMb: 4321,
  });
  expect((await answer).text).toContain('<inMaintenanceMode>true<');
  expect(await client.property(host, 'runtime.inMaintenanceMode')).toBe('true');
  expect(await client.property(host, 'summary.runtime.connectionState')).toBe('notResponding');
  expect(await client.property(host, 'summary.quickStats.overallCpuUsage')).toBe('1234');
  expect(await client.property(host, 'summary.quickStats.overallMemoryUsage')).toBe('4321');
  expect(await devices()).toEqual([2, 2, 2]);
  expect(
    await client.property(await found(client, 'HostSystem', 'DC0_C0_H1'), 'config.graphicsInfo'),
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

test('a machine has the usage and the address it is given, and watchers hear of it', async () => {
  const collector = await client.watch([template], 'summary.quickStats.overallCpuDemand');
  const { answer } = await waiting(collector, versionOf((await client.updates(collector, '')).text));
  const usage = { cpuUsageMhz: 11, cpuDemandMhz: 22, guestMemoryMb: 33, hostMemoryMb: 44 };
  await vcsim.control.vm('DC0_C0_RP0_VM0', { ...usage, ip: '10.1.2.3' });
  expect((await answer).text).toMatch(/>22</);
  const paths = ['overallCpuUsage', 'overallCpuDemand', 'guestMemoryUsage', 'hostMemoryUsage'];
  const read = paths.map((path) => client.property(template, `summary.quickStats.${path}`));
  expect(await Promise.all(read)).toEqual(['11', '22', '33', '44']);
  expect(await client.property(template, 'guest.ipAddress')).toBe('10.1.2.3');
  expect(await client.property(template, 'guest.net')).toContain('10.1.2.3');

  await vcsim.control.vm(template.value, { ip: '' });
  expect(await client.property(template, 'guest.ipAddress')).toBe(undefined);
});

test('counts calls by method, answered or not', async () => {
  await Promise.all([currentTime(), currentTime(), currentTime()]);
  await vcsim.control.status(503);
  await currentTime();
  await client.property(template, 'name');
  expect(await vcsim.control.calls()).toEqual({ CurrentTime: 4, RetrievePropertiesEx: 1 });
  await vcsim.control.resetCalls();
  expect(await vcsim.control.calls()).toEqual({});
});

test('counts sessions', async () => {
  expect(await vcsim.control.sessions()).toMatchObject([{ user: vcsim.username }]);
  await using second = await loggedIn();
  expect(await vcsim.control.sessions()).toHaveLength(2);
  await second.call('Logout', sessionManager);
  expect(await vcsim.control.sessions()).toHaveLength(1);
});

test('refuses what it does not understand with a sentence, and goes on', async () => {
  const { control } = vcsim;
  const refusals = [
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
  ].map((refusal) => expect(refusal).rejects.toMatchObject({ code: 'REQUEST_FAILED' }));
  await Promise.all(refusals);
  await expect(control.host('no-such-host', { gpus: 1 })).rejects.toThrow('there is no host "no-such-host"');
  expect((await currentTime()).status).toBe(200);
});

test('says so when its port is in use', async () => {
  const port = await freePort();
  const holder = createServer();
  await new Promise<void>((listening) => holder.listen(port, '127.0.0.1', listening));
  await expect(startVcsim({ port })).rejects.toMatchObject({
    code: 'PORT_BUSY',
    message: expect.stringMatching(`port ${port}, wanted for vcsim, is in use`),
  });
  const { code, stderr } = await tryRun(await new Assets().path('vcsim'), [`-listen=127.0.0.1:${port}`]);
  expect(code).toBe(1);
  expect(stderr).toMatch(new RegExp(`^vcsim: the address 127.0.0.1:${port} is in use; .*\n$`));
  await new Promise((closed) => holder.close(closed));
});

test('stops when asked, and starts again with the same certificate', async () => {
  await using other = await startVcsim({ inventory: { standaloneHosts: 0, vms: 1 } });
  const ended = other.part.exited();
  await other.part.stop();
  expect(await ended).toEqual({ code: 0, signal: null });
  await other.part.start();
  await using again = new SoapClient(other);
  expect((await again.login(other.username, other.password)).status).toBe(200);
});
