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
  await use();
  return () => vcenter[Symbol.asyncDispose]();
});

async function use(options: Partial<VcenterClientOptions> = {}): Promise<void> {
  await vcenter?.stop();
  vcenter = clientOf(vcsim, options);
  datacenter = await vcenter.lookup.datacenter();
  template = await vcenter.lookup.template(datacenter, 'DC0_C0_RP0_VM0');
  await vcsim.control.resetCalls();
}

async function filled() {
  const inventory = vcenter.inventory({
    properties: PROPERTIES,
    indexes: {
      parent: ({ properties: { parent } }: ManagedObject) => (isNamed(parent) ? parent.value : undefined),
    },
  });
  await inventory.synced();
  return inventory;
}

function isNamed(value: unknown): value is Ref {
  return typeof value === 'object' && value !== null && 'value' in value;
}

async function clone(): Promise<string> {
  const name = `clone-${++clones}`;
  await vcenter.tasks.follow(await vcenter.machines.clone({ name, template, folder: datacenter.vmFolder }));
  return name;
}

function isOf(name: string, kind: InventoryChange['kind']) {
  return (change: InventoryChange) => change.kind === kind && change.object.properties.name === name;
}

/** Whether a call for changes is under way after so many that were answered. */
function waits(atLeast: number) {
  return async () => ((await vcsim.control.calls()).WaitForUpdatesEx ?? 0) >= atLeast;
}

test('it has all there is once it is synced, and finds it by type, reference and index', async () => {
  const inventory = await filled();
  const listed = await vcenter.list('VirtualMachine', PROPERTIES.VirtualMachine);
  expect(inventory.isSynced && inventory.isLive).toBe(true);
  expect(inventory.list('VirtualMachine')).toHaveLength(listed.length);
  for (const { ref, properties } of listed) expect(inventory.get(ref)?.properties).toEqual(properties);
  const { value } = datacenter.vmFolder;
  expect(inventory.by('VirtualMachine', 'parent', value)).toHaveLength(listed.length);
  expect(inventory.by('Folder', 'parent', value)).toEqual([]);
  expect(inventory.get(datacenter.vmFolder)?.properties.name).toBe('vm');
});

test('what is told in parts is put together, and it is synced only after the last', async () => {
  await use({ pageSize: 2 });
  const inventory = vcenter.inventory({ properties: PROPERTIES });
  const sizes: number[] = [];
  inventory.onChange(() => sizes.push(inventory.isSynced ? -1 : inventory.size));
  await inventory.synced();
  expect(sizes).toEqual(Array.from({ length: inventory.size }, (_, i) => i + 1));
  expect(inventory.list('VirtualMachine').length).toBeGreaterThanOrEqual(10);
  expect((await vcsim.control.calls()).WaitForUpdatesEx).toBeGreaterThanOrEqual(5);
  const added = waitForChange(inventory, isOf(`clone-${clones + 1}`, 'added'));
  await clone();
  await added;
});

test('it follows what is made, changed and destroyed', async () => {
  const inventory = await filled();
  const added = waitForChange(inventory, isOf(`clone-${clones + 1}`, 'added'));
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
  const removed = waitForChange(inventory, isOf(name, 'removed'));
  await vcenter.tasks.follow(await vcenter.machines.destroy(ref));
  await removed;
  expect(inventory.get(ref)).toBe(undefined);
});

test('an object that is told again without a difference is no change, and one is never changed in place', async () => {
  const inventory = await filled();
  const before = inventory.get(template);
  const seen: InventoryChange[] = [];
  inventory.onChange((change) => seen.push(change));
  // The simulator tells all machines anew for each that is made.
  const added = waitForChange(inventory, isOf(`clone-${clones + 1}`, 'added'));
  const name = await clone();
  await added;
  await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.0.0.9' });
  await until(
    async () => inventory.get(template)?.properties['guest.ipAddress'] === '10.0.0.9' || waits(0)(),
  );
  await changedTo(inventory, '10.0.0.9');
  expect(seen.filter(({ object }) => object.properties.name !== name)).toMatchObject([
    { kind: 'changed', object: { ref: template } },
  ]);
  expect(before?.properties['guest.ipAddress']).not.toBe('10.0.0.9');
});

async function changedTo(inventory: Awaited<ReturnType<typeof filled>>, ip: string): Promise<void> {
  if (inventory.get(template)?.properties['guest.ipAddress'] === ip) return;
  await waitForChange(inventory, ({ object }) => object.properties['guest.ipAddress'] === ip);
}

test('a property that is told without a value is not there any more', () => {
  const inventory = new Inventory({ properties: PROPERTIES }, { watcher: { remove: () => undefined } });
  const tell = (kind: 'enter' | 'modify', changes: Record<string, unknown>) =>
    inventory.applyUpdates([
      {
        kind,
        obj: template,
        changeSet: Object.entries(changes).map(([name, val]) => ({ name, op: 'assign', val })),
      },
    ]);
  tell('enter', { name: 'x', 'guest.ipAddress': '10.0.0.1' });
  tell('modify', { 'guest.ipAddress': undefined });
  expect(inventory.get(template)?.properties).toEqual({ name: 'x' });
  tell('modify', { 'guest.ipAddress': '10.0.0.2' });
  expect(inventory.get(template)?.properties).toEqual({ name: 'x', 'guest.ipAddress': '10.0.0.2' });
  tell('enter', { name: 'y' });
  expect(inventory.get(template)?.properties).toEqual({ name: 'y' });
});

describe('nothing is lost or taken for gone', () => {
  test('when connections break while it waits: it goes on with the version it has', async () => {
    const inventory = await filled();
    const removed: InventoryChange[] = [];
    inventory.onChange((change) => void (change.kind === 'removed' && removed.push(change)));
    await until(waits(2));
    await vcsim.control.drop();
    await vcsim.control.status(503, 2);
    await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.1.1.1' });
    await changedTo(inventory, '10.1.1.1');
    expect(inventory.isLive).toBe(true);
    expect(removed).toEqual([]);
    expect(await vcsim.control.calls()).toMatchObject({ CreatePropertyCollector: 1, CreateContainerView: 1 });
  });

  test('when the session is killed while it waits: what vanished meanwhile is told, and nothing else', async () => {
    const name = await clone();
    const inventory = await filled();
    const all = inventory.size;
    const told: string[] = [];
    await until(waits(2));
    inventory.onChange(({ kind, object }) => told.push(`${kind} ${object.properties.name}`));
    const removed = waitForChange(inventory, isOf(name, 'removed'));
    // The feed is kept out for a while; whether the machine goes before it is back or after, it is told once.
    await vcsim.control.fault({ method: 'Login', fault: 'InvalidState' });
    await vcsim.control.expireSessions();
    await using other = clientOf(vcsim, { userAgent: 'other' });
    await vcsim.control.clearFaults();
    const vm = await other.lookup.template(datacenter, name);
    await other.tasks.follow(await other.machines.destroy(vm));
    await removed;
    await until(async () => inventory.isLive || canLook());
    expect(told).toEqual([`removed ${name}`]);
    expect(inventory.size).toBe(all - 1);
  });

  test('when vCenter is restarted: what it does not have any more is removed', async () => {
    const name = await clone();
    const inventory = await filled();
    const removed = waitForChange(inventory, isOf(name, 'removed'));
    await until(waits(2));
    await vcsim.part.kill();
    expect(inventory.list('VirtualMachine').some(({ properties }) => properties.name === name)).toBe(true);
    await vcsim.part.start();
    await removed;
    expect(inventory.list('VirtualMachine')).toHaveLength(10);
    await changedAfter(inventory);
    expect(await vcsim.control.sessions()).toHaveLength(1);
  });

  test('when vCenter does not know the version any more: all is told anew', async () => {
    const inventory = await filled();
    await until(waits(2));
    await vcsim.control.fault({ method: 'WaitForUpdatesEx', fault: 'InvalidCollectorVersion', max: 1 });
    await vcsim.control.drop();
    await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.2.2.2' });
    await changedTo(inventory, '10.2.2.2');
    expect(await vcsim.control.calls()).toMatchObject({ CreatePropertyCollector: 2 });
    expect(await vcsim.control.sessions()).toHaveLength(1);
    // The one whose version was lost is not kept beside the new one.
    await expect.poll(async () => (await vcsim.control.calls()).DestroyPropertyCollector).toBe(1);
  });

  async function changedAfter(inventory: Awaited<ReturnType<typeof filled>>): Promise<void> {
    await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.3.3.3' });
    await changedTo(inventory, '10.3.3.3');
  }
});

test('while vCenter cannot be reached it says so, keeps what it knows, and tells of the trouble', async () => {
  const troubles: unknown[] = [];
  await use({ observer: { onError: (error) => troubles.push(error) } });
  const inventory = await filled();
  const { size } = inventory;
  await until(waits(2));
  await vcsim.part.kill();
  await until(async () => !inventory.isLive || canLook());
  expect([inventory.size, inventory.isSynced]).toEqual([size, true]);
  expect(troubles[0]).toMatchObject({ code: 'CONNECTION' });
  await vcsim.part.start();
});

/** Something to do that lets the network go on. */
async function canLook(): Promise<boolean> {
  await vcsim.control.calls().catch(() => undefined);
  return false;
}

test('the end of a waiting time is no news', async () => {
  await use({ maxWaitSeconds: 1 });
  const inventory = await filled();
  const seen: InventoryChange[] = [];
  inventory.onChange((change) => seen.push(change));
  await until(waits(4));
  expect([seen, inventory.isLive]).toEqual([[], true]);
  await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.4.4.4' });
  await changedTo(inventory, '10.4.4.4');
});

test('one that comes later is filled without the first being listed again, and both share session and collector', async () => {
  const first = await filled();
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
  const { CreateContainerView, DestroyView, CreateFilter, DestroyPropertyFilter } =
    await vcsim.control.calls();
  expect([CreateContainerView, DestroyView, CreateFilter, DestroyPropertyFilter]).toEqual([2, 1, 2, 1]);
  expect(interruptions()).toBe(0);
});

test('one that comes later is complete where its objects are reported before CreateFilter is answered', async () => {
  const held = holding('<CreateFilter ');
  await use({ world: held.world });
  await filled();
  const { WaitForUpdatesEx: before = 0 } = await vcsim.control.calls();
  const release = held.hold();
  const second = vcenter.inventory({ properties: { Datastore: ['name'] }, container: datacenter.ref });
  // The waiting call ends with the new filter's objects, and the client asks for more.
  await until(waits(before + 1));
  release();
  await second.synced();
  expect(second.list('Datastore').map(({ properties }) => properties.name)).toEqual(['LocalDS_0']);
});

/** A world whose answers to requests with this text in them can be held back. */
function holding(text: string): {
  readonly world: VcenterClientOptions['world'];
  readonly hold: () => () => void;
} {
  let held = Promise.resolve();
  const connect: VcenterClientOptions['world']['connect'] = (server) => {
    const { request, close } = nodeWorld.connect(server);
    return {
      close,
      request: async (asked) => {
        const answer = await request(asked);
        if (asked.body?.includes(text)) await held;
        return answer;
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

test('one below an empty folder is complete at once, though there is nothing to tell of it', async () => {
  const first = await filled();
  const folder = await vcenter.machines.createFolder(datacenter.vmFolder, 'empty');
  const second = vcenter.inventory({ properties: { VirtualMachine: ['name'] }, container: folder });
  await second.synced();
  expect([second.size, first.isLive]).toEqual([0, true]);
});

/** How often an inventory was not live, from here on. */
function watchInterruptions(inventory: Inventory): () => number {
  let count = 0;
  const interrupted = inventory.onInterrupted.bind(inventory);
  inventory.onInterrupted = (error) => {
    count += 1;
    interrupted(error);
  };
  return () => count;
}

test('one that vCenter does not let be looked at keeps the others from nothing, and is tried again', async () => {
  const { world, ring } = minutely();
  await use({ world });
  const first = await filled();
  await vcsim.control.fault({ method: 'CreateContainerView', fault: 'NoPermission', max: 2 });
  const second = vcenter.inventory({ properties: { Datastore: ['name'] }, container: datacenter.ref });
  const refusals = async (wanted: number) => (await vcsim.control.faults()).at(-1)?.injected === wanted;
  await until(() => refusals(1));
  await vcsim.control.vm('DC0_C0_RP0_VM0', { ip: '10.6.6.6' });
  await changedTo(first, '10.6.6.6');
  expect([first.isLive, second.isLive]).toEqual([true, false]);
  await until(async () => ring() && (await refusals(2)));
  expect([first.isLive, second.isLive]).toEqual([true, false]);
  await until(async () => (await waits(1)()) && ring() && second.isLive);
  expect(second.list('Datastore')).toHaveLength(1);
  expect(first.isLive).toBe(true);
});

/** A world in which what is to come in a minute comes when it is rung for. */
function minutely(): { readonly world: VcenterClientOptions['world']; readonly ring: () => true } {
  const alarms = new Set<() => void>();
  const after: VcenterClientOptions['world']['after'] = (ms, callback) => {
    if (ms !== 60_000) return nodeWorld.after(ms, callback);
    alarms.add(callback);
    return { cancel: () => void alarms.delete(callback) };
  };
  const ring = () => {
    const due = [...alarms];
    alarms.clear();
    for (const callback of due) callback();
    return true as const;
  };
  return { world: { ...nodeWorld, after }, ring };
}

test('a listener that fails keeps nothing from the others', async () => {
  const troubles: unknown[] = [];
  await use({ observer: { onError: (error) => troubles.push(error) } });
  const inventory = await filled();
  const wrong = new Error('mine');
  inventory.onChange(() => {
    throw wrong;
  });
  const added = waitForChange(inventory, isOf(`clone-${clones + 1}`, 'added'));
  await clone();
  await added;
  expect(troubles).toContain(wrong);
});

test('values are the same when they say the same', () => {
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

test('who waits for it when the client is stopped is told', async () => {
  await vcsim.control.fault({ method: 'WaitForUpdatesEx', fault: 'NotSupported' });
  const inventory = vcenter.inventory({ properties: PROPERTIES });
  const waiting = inventory.synced();
  waiting.catch(() => undefined);
  await until(waits(1));
  await vcenter.stop();
  await expect(waiting).rejects.toMatchObject({ code: 'STOPPED' });
  expect(() => vcenter.inventory({ properties: PROPERTIES })).toThrow(
    expect.objectContaining({ code: 'STOPPED' }),
  );
});
