import { nodeWorld } from '@vmwright/core';
import { startVcsim, type Vcsim } from '@vmwright/testbed';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../test/until.ts';
import { clientOf, resetFaults, waitForChange } from '../../test/vcenter.ts';
import type {
  Datacenter,
  InventoryChange,
  ManagedObject,
  Ref,
  VcenterClient,
  VcenterClientOptions,
} from '../index.ts';
import { isEqual } from './equal.ts';
import { Inventory } from './inventory.ts';

const PROPERTIES = {
  VirtualMachine: ['name', 'parent', 'runtime.powerState', 'guest.ipAddress', 'config.instanceUuid'],
  Folder: ['name', 'parent'],
} as const;

let vcsim: Vcsim;
let vcenter: VcenterClient;
let datacenter: Datacenter;
let template: Ref<'VirtualMachine'>;
let clones = 0;

beforeAll(async () => {
  vcsim = await startVcsim({ inventory: { hosts: 1, vms: 5, standaloneHosts: 1 } });
});
afterAll(() => vcsim[Symbol.asyncDispose]());
beforeEach(async () => {
  await resetFaults(vcsim);
  await connect();
  return () => vcenter[Symbol.asyncDispose]();
});

async function connect(options: Partial<VcenterClientOptions> = {}): Promise<void> {
  await vcenter?.stop();
  vcenter = clientOf(vcsim, options);
  datacenter = await vcenter.lookup.datacenter();
  template = await vcenter.lookup.template(datacenter, 'DC0_C0_RP0_VM0');
  await vcsim.control.resetCalls();
}

async function syncedInventory() {
  const inventory = vcenter.inventory({
    properties: PROPERTIES,
    indexes: {
      parent: ({ properties: { parent } }: ManagedObject) => (isReference(parent) ? parent.value : undefined),
    },
  });
  await inventory.synced();
  return inventory;
}

function isReference(value: unknown): value is Ref {
  return typeof value === 'object' && value !== null && 'value' in value;
}

async function clone(): Promise<string> {
  const name = `clone-${++clones}`;
  await vcenter.tasks.follow(await vcenter.machines.clone({ name, template, folder: datacenter.vmFolder }));
  return name;
}

function matches(name: string, kind: InventoryChange['kind']) {
  return (change: InventoryChange) => change.kind === kind && change.object.properties.name === name;
}

/**
 * Returns a function that checks whether at least this many requests for changes were sent. The last one may be waiting
 * for its response.
 */
function hasPolled(atLeast: number) {
  return async () => ((await vcsim.control.calls()).WaitForUpdatesEx ?? 0) >= atLeast;
}

test('a synced inventory has all objects and finds them by type, reference and index', async () => {
  const inventory = await syncedInventory();
  const listed = await vcenter.list('VirtualMachine', PROPERTIES.VirtualMachine);
  expect(inventory.isSynced && inventory.isLive).toBe(true);
  expect(inventory.list('VirtualMachine')).toHaveLength(listed.length);
  for (const { ref, properties } of listed) expect(inventory.get(ref)?.properties).toEqual(properties);
  const { value } = datacenter.vmFolder;
  expect(inventory.by('VirtualMachine', 'parent', value)).toHaveLength(listed.length);
  expect(inventory.by('Folder', 'parent', value)).toEqual([]);
  expect(inventory.get(datacenter.vmFolder)?.properties.name).toBe('vm');
});

test('objects that arrive in several pages are merged, and the inventory is synced after the last page', async () => {
  await connect({ pageSize: 2 });
  const inventory = vcenter.inventory({ properties: PROPERTIES });
  const sizes: number[] = [];
  inventory.onChange(() => sizes.push(inventory.isSynced ? -1 : inventory.size));
  await inventory.synced();
  expect(sizes).toEqual(Array.from({ length: inventory.size }, (_, i) => i + 1));
  expect(inventory.list('VirtualMachine').length).toBeGreaterThanOrEqual(10);
  expect((await vcsim.control.calls()).WaitForUpdatesEx).toBeGreaterThanOrEqual(5);
  const added = waitForChange(inventory, matches(`clone-${clones + 1}`, 'added'));
  await clone();
  await added;
});

test('creations, changes and deletions in vCenter are applied to the inventory', async () => {
  const inventory = await syncedInventory();
  const added = waitForChange(inventory, matches(`clone-${clones + 1}`, 'added'));
  const name = await clone();
  const { object } = await added;
  expect(inventory.get({ type: 'VirtualMachine', value: object.ref.value })?.properties.name).toBe(name);

  const ref = { type: 'VirtualMachine', value: object.ref.value } as const;
  const isOn = waitForChange(
    inventory,
    ({ object: { properties } }) => properties['runtime.powerState'] === 'poweredOn',
  );
  await vcenter.tasks.follow(await vcenter.machines.powerOn(ref));
  expect(await isOn).toMatchObject({
    kind: 'changed',
    before: { properties: { 'runtime.powerState': 'poweredOff' } },
  });

  await vcenter.tasks.follow(await vcenter.machines.powerOff(ref));
  const removed = waitForChange(inventory, matches(name, 'removed'));
  await vcenter.tasks.follow(await vcenter.machines.destroy(ref));
  await removed;
  expect(inventory.get(ref)).toBe(undefined);
});

test('an object that is reported again unchanged causes no event, and no object is changed in place', async () => {
  const inventory = await syncedInventory();
  const before = inventory.get(template);
  const seen: InventoryChange[] = [];
  inventory.onChange((change) => seen.push(change));
  // vcsim reports all machines again whenever one is created.
  const added = waitForChange(inventory, matches(`clone-${clones + 1}`, 'added'));
  const name = await clone();
  await added;
  await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.0.0.9' });
  await until(
    async () => inventory.get(template)?.properties['guest.ipAddress'] === '10.0.0.9' || hasPolled(0)(),
  );
  await changedTo(inventory, '10.0.0.9');
  expect(seen.filter(({ object }) => object.properties.name !== name)).toMatchObject([
    { kind: 'changed', object: { ref: template } },
  ]);
  expect(before?.properties['guest.ipAddress']).not.toBe('10.0.0.9');
});

async function changedTo(inventory: Awaited<ReturnType<typeof syncedInventory>>, ip: string): Promise<void> {
  if (inventory.get(template)?.properties['guest.ipAddress'] === ip) return;
  await waitForChange(inventory, ({ object }) => object.properties['guest.ipAddress'] === ip);
}

test('a property that is reported without a value is removed', () => {
  const inventory = new Inventory({ properties: PROPERTIES }, { watcher: { remove: () => undefined } });
  const update = (kind: 'enter' | 'modify', changes: Record<string, unknown>) =>
    inventory.applyUpdates([
      {
        kind,
        obj: template,
        changeSet: Object.entries(changes).map(([name, val]) => ({ name, op: 'assign', val })),
      },
    ]);
  update('enter', { name: 'x', 'guest.ipAddress': '10.0.0.1' });
  update('modify', { 'guest.ipAddress': undefined });
  expect(inventory.get(template)?.properties).toEqual({ name: 'x' });
  update('modify', { 'guest.ipAddress': '10.0.0.2' });
  expect(inventory.get(template)?.properties).toEqual({ name: 'x', 'guest.ipAddress': '10.0.0.2' });
  update('enter', { name: 'y' });
  expect(inventory.get(template)?.properties).toEqual({ name: 'y' });
});

describe('interruptions', () => {
  test('after broken connections the watch continues from its last version and removes no object', async () => {
    const inventory = await syncedInventory();
    const removed: InventoryChange[] = [];
    inventory.onChange((change) => void (change.kind === 'removed' && removed.push(change)));
    await until(hasPolled(2));
    await vcsim.control.drop();
    await vcsim.control.status(503, 2);
    await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.1.1.1' });
    await changedTo(inventory, '10.1.1.1');
    expect(inventory.isLive).toBe(true);
    expect(removed).toEqual([]);
    expect(await vcsim.control.calls()).toMatchObject({ CreatePropertyCollector: 1, CreateContainerView: 1 });
  });

  test('if the session is killed and an object is then deleted, the inventory reports only the removal of this object', async () => {
    const name = await clone();
    const inventory = await syncedInventory();
    const all = inventory.size;
    const events: string[] = [];
    await until(hasPolled(2));
    inventory.onChange(({ kind, object }) => events.push(`${kind} ${object.properties.name}`));
    const removed = waitForChange(inventory, matches(name, 'removed'));
    // The watcher cannot log in for a while. The deletion is reported once, whether it happens before or after the new
    // login.
    await vcsim.control.fault({ method: 'Login', fault: 'InvalidState' });
    await vcsim.control.expireSessions();
    await using other = clientOf(vcsim, { userAgent: 'other' });
    await vcsim.control.clearFaults();
    const vm = await other.lookup.template(datacenter, name);
    await other.tasks.follow(await other.machines.destroy(vm));
    await removed;
    await until(async () => inventory.isLive || yieldToNetwork());
    expect(events).toEqual([`removed ${name}`]);
    expect(inventory.size).toBe(all - 1);
  });

  test('after a restart of vCenter, objects that no longer exist are removed', async () => {
    const name = await clone();
    const inventory = await syncedInventory();
    const removed = waitForChange(inventory, matches(name, 'removed'));
    await until(hasPolled(2));
    await vcsim.part.kill();
    expect(inventory.list('VirtualMachine').some(({ properties }) => properties.name === name)).toBe(true);
    await vcsim.part.start();
    await removed;
    expect(inventory.list('VirtualMachine')).toHaveLength(10);
    await changedAfter(inventory);
    expect(await vcsim.control.sessions()).toHaveLength(1);
  });

  test('when vCenter no longer knows the version of the last update, a new collector reports all objects again', async () => {
    const inventory = await syncedInventory();
    await until(hasPolled(2));
    await vcsim.control.fault({ method: 'WaitForUpdatesEx', fault: 'InvalidCollectorVersion', max: 1 });
    await vcsim.control.drop();
    await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.2.2.2' });
    await changedTo(inventory, '10.2.2.2');
    expect(await vcsim.control.calls()).toMatchObject({ CreatePropertyCollector: 2 });
    expect(await vcsim.control.sessions()).toHaveLength(1);
    // The client destroys the collector that it no longer uses.
    await expect.poll(async () => (await vcsim.control.calls()).DestroyPropertyCollector).toBe(1);
  });

  async function changedAfter(inventory: Awaited<ReturnType<typeof syncedInventory>>): Promise<void> {
    await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.3.3.3' });
    await changedTo(inventory, '10.3.3.3');
  }
});

test('while vCenter is unreachable, the inventory is not live and keeps its objects', async () => {
  const errors: unknown[] = [];
  await connect({ observer: { onError: (error) => errors.push(error) } });
  const inventory = await syncedInventory();
  const { size } = inventory;
  await until(hasPolled(2));
  await vcsim.part.kill();
  await until(async () => !inventory.isLive || yieldToNetwork());
  expect([inventory.size, inventory.isSynced]).toEqual([size, true]);
  expect(errors[0]).toMatchObject({ code: 'CONNECTION' });
  await vcsim.part.start();
});

/** Does network I/O, as `until` requires of a check. @returns false */
async function yieldToNetwork(): Promise<boolean> {
  await vcsim.control.calls().catch(() => undefined);
  return false;
}

test('a poll without changes causes no change event', async () => {
  await connect({ maxWaitSeconds: 1 });
  const inventory = await syncedInventory();
  const seen: InventoryChange[] = [];
  inventory.onChange((change) => seen.push(change));
  await until(hasPolled(4));
  expect([seen, inventory.isLive]).toEqual([[], true]);
  await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.4.4.4' });
  await changedTo(inventory, '10.4.4.4');
});

test('a second inventory shares session and collector with the first, and does not interrupt it', async () => {
  const first = await syncedInventory();
  const interruptions = watchInterruptions(first);
  const second = vcenter.inventory({ properties: { Datastore: ['name'] }, container: datacenter.ref });
  await second.synced();
  expect(second.list('Datastore').map(({ properties }) => properties.name)).toEqual(['LocalDS_0']);
  await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.5.5.5' });
  await changedTo(first, '10.5.5.5');
  expect(await vcsim.control.sessions()).toHaveLength(1);
  expect(await vcsim.control.calls()).toMatchObject({ CreatePropertyCollector: 1, CreateContainerView: 2 });
  expect(interruptions()).toBe(0);

  second[Symbol.dispose]();
  await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.5.5.6' });
  await changedTo(first, '10.5.5.6');
  const methods = ['CreateContainerView', 'DestroyView', 'CreateFilter', 'DestroyPropertyFilter'];
  await expect
    .poll(async () => {
      const calls = await vcsim.control.calls();
      return methods.map((method) => calls[method]);
    })
    .toEqual([2, 1, 2, 1]);
  expect(interruptions()).toBe(0);
});

test('a second inventory gets the objects that arrive before the response to its CreateFilter request', async () => {
  const held = holdingWorld('<CreateFilter ');
  await connect({ world: held.world });
  await syncedInventory();
  const { WaitForUpdatesEx: before = 0 } = await vcsim.control.calls();
  const release = held.hold();
  const second = vcenter.inventory({ properties: { Datastore: ['name'] }, container: datacenter.ref });
  // The pending WaitForUpdatesEx request returns the objects of the new filter. Then the client sends the next one.
  await until(hasPolled(before + 1));
  release();
  await second.synced();
  expect(second.list('Datastore').map(({ properties }) => properties.name)).toEqual(['LocalDS_0']);
});

/** Returns a `world` option for the client: its network can hold back responses to requests that contain `text`. */
function holdingWorld(text: string): {
  readonly world: VcenterClientOptions['world'];
  readonly hold: () => () => void;
} {
  let held = Promise.resolve();
  const connect: VcenterClientOptions['world']['connect'] = (server) => {
    const { request, close } = nodeWorld.connect(server);
    return {
      close,
      request: async (sent) => {
        const response = await request(sent);
        if (sent.body?.includes(text)) await held;
        return response;
      },
    };
  };
  const hold = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    return resolve;
  };
  return { world: { ...nodeWorld, connect }, hold };
}

test('an inventory of an empty folder is synced although vCenter reports no object', async () => {
  const first = await syncedInventory();
  const folder = await vcenter.machines.createFolder(datacenter.vmFolder, 'empty');
  const second = vcenter.inventory({ properties: { VirtualMachine: ['name'] }, container: folder });
  await second.synced();
  expect([second.size, first.isLive]).toEqual([0, true]);
});

test('an inventory with `lists` has the listed objects and follows changes of the lists', async () => {
  const inventory = vcenter.inventory({
    properties: {
      ScheduledTask: ['info.name', 'info.action', 'info.nextRunTime'],
      CustomFieldsManager: ['field'],
    },
    lists: ({ scheduledTaskManager: tasks, customFieldsManager: fields }) => [
      ...(tasks === undefined ? [] : [{ owner: tasks, path: 'scheduledTask' }]),
      ...(fields === undefined ? [] : [{ owner: fields }]),
    ],
  });
  await inventory.synced();
  expect(inventory.list('CustomFieldsManager')).toHaveLength(1);
  expect(inventory.list('ScheduledTask')).toEqual([]);
  const at = new Date('2040-01-31T22:00:00Z');
  const isTask = (kind: InventoryChange['kind']) => (change: InventoryChange) =>
    change.kind === kind && change.object.ref.type === 'ScheduledTask';
  const added = waitForChange(inventory, isTask('added'));
  await vcsim.control.scheduleTask('Patch', { entity: 'DC0_C0_H0', method: 'RebootHost_Task', at });
  expect((await added).object.properties).toEqual({
    'info.name': 'Patch',
    'info.action': { _type: 'MethodAction', name: 'RebootHost_Task' },
    'info.nextRunTime': at,
  });
  const removed = waitForChange(inventory, isTask('removed'));
  await vcsim.control.removeScheduledTask('Patch');
  await removed;
});

test('an inventory is empty and live if `lists` is empty, or if the owner of its only list does not exist', async () => {
  const properties = { VirtualMachine: ['name'] } as const;
  const missing = { type: 'HostSystem', value: 'host-0' };
  const empty = vcenter.inventory({ properties, lists: () => [] });
  const gone = vcenter.inventory({ properties, lists: () => [{ owner: missing, path: 'vm' }] });
  await Promise.all([empty.synced(), gone.synced()]);
  expect([empty.size, empty.isLive, gone.size, gone.isLive]).toEqual([0, true, 0, true]);
});

test('an inventory keeps only the part of a value that `reduce` returns', async () => {
  const inventory = vcenter.inventory({
    properties: { VirtualMachine: ['name', 'config.hardware.device'] },
    reduce: (path, value) => (path === 'name' || !Array.isArray(value) ? value : value.slice(0, 1)),
  });
  await inventory.synced();
  const machine = inventory.get(template)?.properties;
  expect(machine?.name).toBe('DC0_C0_RP0_VM0');
  expect(machine?.['config.hardware.device']).toHaveLength(1);
});

test('listeners are notified when an inventory is interrupted and when it is live again', async () => {
  const inventory = await syncedInventory();
  const states: (readonly [boolean, boolean])[] = [];
  const live = new Promise<void>((resolve) => {
    inventory.onLiveness(() => {
      states.push([inventory.isLive, inventory.interruption === undefined]);
      if (inventory.isLive) resolve();
    });
  });
  await vcsim.control.expireSessions();
  await live;
  expect(states).toEqual([
    [false, false],
    [true, true],
  ]);
});

test('after an outage, an inventory is live immediately, even if nothing changes in vCenter', async () => {
  await connect({ maxWaitSeconds: 600 }); // vCenter would hold the request for longer than the test may take
  const inventory = await syncedInventory();
  await until(hasPolled(2));
  const live = new Promise<void>((resolve) => {
    inventory.onLiveness(() => inventory.isLive && resolve());
  });
  await vcsim.control.status(503, 2);
  await vcsim.control.drop();
  await live;
  expect(await vcsim.control.calls()).toMatchObject({ CreatePropertyCollector: 1 });
});

/** Counts the interruptions of an inventory from now on. */
function watchInterruptions(inventory: Inventory): () => number {
  let count = 0;
  const interrupted = inventory.onInterrupted.bind(inventory);
  inventory.onInterrupted = (error) => {
    count += 1;
    interrupted(error);
  };
  return () => count;
}

test('if vCenter rejects the view of an inventory, the client retries every minute, and other inventories stay live', async () => {
  const { world, pending, fire } = manualMinuteTimers();
  await connect({ world });
  const first = await syncedInventory();
  await vcsim.control.fault({ method: 'CreateContainerView', fault: 'NoPermission', max: 2 });
  const second = vcenter.inventory({ properties: { Datastore: ['name'] }, container: datacenter.ref });
  const hasRejected = async (times: number) => (await vcsim.control.faults()).at(-1)?.injected === times;
  await until(() => hasRejected(1));
  await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.6.6.6' });
  await changedTo(first, '10.6.6.6');
  expect([first.isLive, second.isLive]).toEqual([true, false]);
  // Each timer causes one retry. The client sets the next timer when vCenter has rejected that retry.
  await expect.poll(pending).toBe(1);
  fire();
  await until(() => hasRejected(2));
  await expect.poll(pending).toBe(1);
  expect([first.isLive, second.isLive]).toEqual([true, false]);
  fire();
  await expect.poll(() => second.isLive).toBe(true);
  expect(second.list('Datastore')).toHaveLength(1);
  expect(first.isLive).toBe(true);
});

/** Returns a `world` option for the client: its one-minute timers fire only when `fire` is called. */
function manualMinuteTimers() {
  const timers = new Set<() => void>();
  const after: VcenterClientOptions['world']['after'] = (ms, callback) => {
    if (ms !== 60_000) return nodeWorld.after(ms, callback);
    timers.add(callback);
    return { cancel: () => void timers.delete(callback) };
  };
  const fire = () => {
    const due = [...timers];
    timers.clear();
    for (const callback of due) callback();
  };
  return { world: { ...nodeWorld, after }, pending: () => timers.size, fire };
}

test('a listener that throws does not affect the other listeners', async () => {
  const errors: unknown[] = [];
  await connect({ observer: { onError: (error) => errors.push(error) } });
  const inventory = await syncedInventory();
  const failure = new Error('listener failed');
  inventory.onChange(() => {
    throw failure;
  });
  const added = waitForChange(inventory, matches(`clone-${clones + 1}`, 'added'));
  await clone();
  await added;
  expect(errors).toContain(failure);
});

test('isEqual compares values deeply', () => {
  const value = { a: [1, { b: new Date(5) }], c: 'x' };
  expect(isEqual(value, structuredClone(value))).toBe(true);
  for (const other of [
    { ...value, c: 'y' },
    { a: value.a },
    { ...value, d: 1 },
    { ...value, a: [1] },
    [],
    null,
    1,
  ])
    expect(isEqual(value, other)).toBe(false);
  expect(isEqual(new Date(5), {})).toBe(false);
  expect(isEqual([], {})).toBe(false);
});

test('`synced` rejects when the client is stopped', async () => {
  await vcsim.control.fault({ method: 'WaitForUpdatesEx', fault: 'NotSupported' });
  const inventory = vcenter.inventory({ properties: PROPERTIES });
  const waiting = inventory.synced();
  waiting.catch(() => undefined);
  await until(hasPolled(1));
  await vcenter.stop();
  await expect(waiting).rejects.toMatchObject({ code: 'STOPPED' });
  expect(() => vcenter.inventory({ properties: PROPERTIES })).toThrow(
    expect.objectContaining({ code: 'STOPPED' }),
  );
});
