import { startVcsim, type Vcsim } from '@vmwright/testbed';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../test/until.ts';
import { clientOf, resetFaults } from '../../test/vcenter.ts';
import { type Datacenter, isRef, type Ref, type TaskRef, type VcenterClient } from '../index.ts';

const HOUR = 3_600_000;
let vcsim: Vcsim;
let vcenter: VcenterClient;
let datacenter: Datacenter;
let template: Ref<'VirtualMachine'>;
let clones = 0;

beforeAll(async () => {
  vcsim = await startVcsim({ inventory: { hosts: 1, standaloneHosts: 0, vms: 1 } });
});
afterAll(() => vcsim[Symbol.asyncDispose]());
beforeEach(async () => {
  await resetFaults(vcsim);
  vcenter = clientOf(vcsim);
  datacenter = await vcenter.lookup.datacenter();
  template = await vcenter.lookup.template(datacenter, 'DC0_C0_RP0_VM0');
  await vcsim.control.resetCalls();
  return () => vcenter[Symbol.asyncDispose]();
});

function clone(): Promise<TaskRef> {
  return vcenter.machines.clone({ name: `clone-${++clones}`, template, folder: datacenter.vmFolder });
}

/** Whether the client has received the first response and waits for changes. */
function isWaiting(): Promise<boolean> {
  return vcsim.control.calls().then(({ WaitForUpdatesEx = 0 }) => WaitForUpdatesEx >= 2);
}

async function nameOf(result: unknown): Promise<unknown> {
  if (!isRef(result, 'VirtualMachine')) throw new Error('the result is not a machine');
  return (await vcenter.read(result, ['name'])).name;
}

test('many followed tasks share one property filter', async () => {
  await vcsim.control.delay({ tasks: { CloneVm: HOUR } });
  const first = clones + 1;
  const tasks = await Promise.all(Array.from({ length: 8 }, clone));
  const results = tasks.map((task) => vcenter.tasks.follow(task));
  await until(isWaiting);
  await vcsim.control.clearDelays();
  const names = await Promise.all((await Promise.all(results)).map(nameOf));
  expect(names).toEqual(tasks.map((_, i) => `clone-${first + i}`));
  const calls = await vcsim.control.calls();
  expect(calls).toMatchObject({ CreateFilter: 1, CloneVM_Task: 8 });
});

test('every follower of a task gets the result, even if the task has already ended', async () => {
  const task = await clone();
  const [one, two] = await Promise.all([vcenter.tasks.follow(task), vcenter.tasks.follow(task)]);
  expect(await nameOf(one)).toBe(`clone-${clones}`);
  expect(two).toEqual(one);
  expect(await vcenter.tasks.follow(task)).toEqual(one);
});

test('follow rejects with the fault of a failed task', async () => {
  const message = 'The host does not have sufficient memory';
  await vcsim.control.fault({ task: 'CloneVm', fault: 'InsufficientMemoryResourcesFault', message, max: 1 });
  const task = await clone();
  await expect(vcenter.tasks.follow(task, { description: "cloning 'x'" })).rejects.toMatchObject({
    code: 'INSUFFICIENT_RESOURCES',
    type: 'InsufficientMemoryResourcesFault',
    message: `cloning 'x' (${task.value}): ${message} (InsufficientMemoryResourcesFault)`,
  });
});

test('follow rejects with REQUEST_CANCELED when the task is cancelled', async () => {
  await vcsim.control.delay({ tasks: { CloneVm: HOUR } });
  const task = await clone();
  const result = vcenter.tasks.follow(task);
  result.catch(() => undefined);
  await vcenter.tasks.cancel(task);
  await vcsim.control.clearDelays();
  await expect(result).rejects.toMatchObject({ code: 'REQUEST_CANCELED' });
});

test('follow rejects with TASK_GONE for an unknown task, and other followed tasks are not affected', async () => {
  const gone = vcenter.tasks.follow({ type: 'Task', value: 'task-0' }, { description: "cloning 'x'" });
  gone.catch(() => undefined);
  const result = vcenter.tasks.follow(await clone());
  await expect(gone).rejects.toMatchObject({
    code: 'TASK_GONE',
    effectUnknown: true,
    message:
      "cloning 'x' (task-0): vCenter does not know the task any more; check whether it was carried out",
  });
  expect(await nameOf(await result)).toBe(`clone-${clones}`);
});

test('a followed task that has dropped out of the list of recent tasks is read directly', async () => {
  await vcsim.control.delay({ tasks: { CloneVm: HOUR } });
  const result = vcenter.tasks.follow(await clone());
  await until(isWaiting);
  // More tasks than vCenter lists, so that the followed task drops out of the list before it ends.
  for (let others = 0; others < 200; others += 10) {
    const reconfigured = Array.from({ length: 10 }, () =>
      vcenter.machines.reconfigure(template, { cpus: 1 }),
    );
    await Promise.all(reconfigured);
  }
  await until(() => vcsim.control.calls().then(({ RetrievePropertiesEx = 0 }) => RetrievePropertiesEx > 0));
  await vcsim.control.clearDelays();
  expect(await nameOf(await result)).toBe(`clone-${clones}`);
});

test('vCenter is not polled while no task is followed, and polling resumes with the next followed task', async () => {
  await vcenter.tasks.follow(await clone());
  const { WaitForUpdatesEx: before } = await vcsim.control.calls();
  const other = await clone();
  await until(async () => (await vcenter.read(other, ['info.state']))['info.state'] === 'success');
  expect(await vcsim.control.calls()).toMatchObject({ WaitForUpdatesEx: before });
  expect(await nameOf(await vcenter.tasks.follow(await clone()))).toBe(`clone-${clones}`);
  expect(await vcsim.control.calls()).toMatchObject({ CreateFilter: 1 });
});

test('an aborted follower does not affect the other followers', async () => {
  await vcsim.control.delay({ tasks: { CloneVm: HOUR } });
  const task = await clone();
  const controller = new AbortController();
  const aborted = vcenter.tasks.follow(task, { signal: controller.signal });
  aborted.catch(() => undefined);
  const other = vcenter.tasks.follow(task);
  const reason = new Error('enough');
  controller.abort(reason);
  await expect(aborted).rejects.toBe(reason);
  await vcsim.control.clearDelays();
  expect(await nameOf(await other)).toBe(`clone-${clones}`);
});

describe('outcome of a task', () => {
  async function started() {
    await vcsim.control.delay({ tasks: { CloneVm: HOUR } });
    const task = await clone();
    const result = vcenter.tasks.follow(task);
    result.catch(() => undefined);
    await until(isWaiting);
    return { result, task };
  }

  test('follow returns the outcome of a task although the session is killed', async () => {
    const { result } = await started();
    await vcsim.control.expireSessions();
    await vcsim.control.clearDelays();
    expect(await nameOf(await result)).toBe(`clone-${clones}`);
    expect(await vcsim.control.sessions()).toHaveLength(1);
    expect(await vcsim.control.calls()).toMatchObject({ CloneVM_Task: 1 });
  });

  test('follow returns the outcome of a task when connections are lost', async () => {
    const { result } = await started();
    await vcsim.control.drop();
    await vcsim.control.status(503, 2);
    await vcsim.control.clearDelays();
    expect(await nameOf(await result)).toBe(`clone-${clones}`);
    expect(await vcsim.control.calls()).toMatchObject({ CreateFilter: 1, CloneVM_Task: 1 });
  });

  test('follow rejects with TASK_GONE when vCenter restarts and no longer knows the task', async () => {
    const { result, task } = await started();
    await vcsim.part.kill();
    await vcsim.part.start();
    await expect(result).rejects.toMatchObject({
      code: 'TASK_GONE',
      message: expect.stringContaining(task.value),
    });
    expect(await vcsim.control.sessions()).toHaveLength(1);
  });
});

test('stop rejects all followers', async () => {
  await vcsim.control.delay({ tasks: { CloneVm: HOUR } });
  const result = vcenter.tasks.follow(await clone());
  result.catch(() => undefined);
  await vcenter.stop();
  await expect(result).rejects.toMatchObject({ code: 'STOPPED' });
  await expect(vcenter.tasks.follow({ type: 'Task', value: 'task-1' })).rejects.toMatchObject({
    code: 'STOPPED',
  });
  await vcsim.control.clearDelays();
});
