import { VcenterClient as Client, type Datacenter, type Ref } from '@vmwright/vsphere';
import { describe, expect, test } from 'vitest';
import { type Simulation, seeded } from '../world/simulation.ts';
import type { VcenterEnvironment } from './environment.ts';
import type { Machine } from './machine.ts';
import { VCENTER } from './simulated.ts';
import { Vcenter } from './vcenter.ts';

/*
 * What the simulator does not do as vCenter does, or does in real time; all else is in test/vcenter-differential.
 */

const USER = { username: 'somebody', password: 'secret' };

interface World {
  readonly simulation: Simulation;
  readonly vcenter: Vcenter;
  readonly client: Client;
  readonly datacenter: Datacenter;
  readonly template: Machine;
  /** What comes of a call, with as much virtual time as it takes. */
  during<T>(call: Promise<T>): Promise<T>;
}

/** A vCenter that its only user can reach without any trouble. */
async function world(environment: Partial<VcenterEnvironment> = {}): Promise<World> {
  const simulation = seeded(1);
  const { schedule } = simulation;
  const vcenter = new Vcenter({
    ...USER,
    environment: {
      after: (ms, act) => schedule.after(ms, act),
      uuid: () => simulation.uuid(),
      taskMs: () => 5_000,
      taskFault: () => undefined,
      shutdownMs: () => 100,
      lagMs: () => 0,
      forgetsVersions: () => false,
      recentTasks: 10,
      longestPage: 2,
      note: () => undefined,
      unmodelled: (sentence) => schedule.fail(new Error(sentence)),
      ...environment,
    },
  });
  simulation.network.serve(VCENTER, vcenter);
  const client = new Client({
    world: simulation.start('client'),
    server: VCENTER,
    credentials: () => USER,
  });
  const during = async <T>(call: Promise<T>) => {
    let done = false;
    const end = () => {
      done = true;
    };
    call.then(end, end);
    await schedule.run({ until: schedule.now + 3_600_000, done: () => done });
    return call;
  };
  const template = vcenter.machines.add(
    {
      ...{ name: 'template', folder: vcenter.place.vmFolder.ref.value, instanceUuid: simulation.uuid() },
      ...{ isTemplate: true, power: 'poweredOff', host: 'host-6', cpus: 2, memoryMb: 1_024 },
      ...{ canAddCpus: true, canAddMemory: false, extraConfig: {}, ip: undefined },
    },
    'itself',
  );
  const datacenter = await during(client.lookup.datacenter());
  return { simulation, vcenter, client, datacenter, template, during };
}

async function cloned(
  { client, datacenter, template, during }: World,
  name: string,
  folder = datacenter.vmFolder,
) {
  const resourcePool = await during(client.lookup.resourcePool(datacenter));
  const source: Ref<'VirtualMachine'> = { type: 'VirtualMachine', value: template.id };
  const instanceUuid = '5f0c2c1e-7f4e-4a8e-9d0e-000000000001';
  return during(
    client.machines.clone({ name, folder, template: source, resourcePool, instanceUuid, powerOn: true }),
  );
}

function named({ vcenter }: World, name: string): Machine | undefined {
  return [...vcenter.machines.all()].find((machine) => machine.name === name);
}

describe('the modelled vCenter', () => {
  test('gives a running machine what it was prepared for, and no other size', async () => {
    const it = await world();
    const { client, during } = it;
    await during(client.tasks.follow(await cloned(it, 'a')));
    const vm = { type: 'VirtualMachine', value: named(it, 'a')?.id ?? '' } as const;
    await during(client.tasks.follow(await during(client.machines.reconfigure(vm, { cpus: 4 }))));
    expect(named(it, 'a')).toMatchObject({ cpus: 4, power: 'poweredOn' });
    for (const config of [{ cpus: 1 }, { memoryMb: 2_048 }]) {
      const task = await during(client.machines.reconfigure(vm, config));
      await expect(during(client.tasks.follow(task))).rejects.toMatchObject({ code: 'INVALID_POWER_STATE' });
    }
    expect(named(it, 'a')).toMatchObject({ cpus: 4, memoryMb: 1_024 });
  });

  test('makes one of two machines of one name that are asked for at a time', async () => {
    const it = await world();
    const { client, during } = it;
    const [first, second] = [await cloned(it, 'a'), await cloned(it, 'a')];
    await during(client.tasks.follow(first));
    const { id = '' } = named(it, 'a') ?? {};
    await expect(during(client.tasks.follow(second))).rejects.toMatchObject({
      code: 'DUPLICATE_NAME',
      detail: { object: { type: 'VirtualMachine', value: id } },
    });
  });

  test('has no UUID twice', async () => {
    const it = await world();
    const { client, datacenter, during } = it;
    const folder = await during(client.machines.createFolder(datacenter.vmFolder, 'other'));
    await during(client.tasks.follow(await cloned(it, 'a')));
    await during(client.tasks.follow(await cloned(it, 'b', folder)));
    expect(named(it, 'a')?.instanceUuid).toBe('5f0c2c1e-7f4e-4a8e-9d0e-000000000001');
    expect(named(it, 'b')?.instanceUuid).not.toBe(named(it, 'a')?.instanceUuid);
  });

  test('destroys with a folder what is in it, and what comes too late finds it gone', async () => {
    const it = await world({ taskMs: (what) => (what === 'Destroy' ? 1_000 : 5_000) });
    const { client, datacenter, during } = it;
    const folder = await during(client.machines.createFolder(datacenter.vmFolder, 'doomed'));
    await during(client.tasks.follow(await cloned(it, 'a', folder)));
    const late = await cloned(it, 'b', folder);
    await during(client.tasks.follow(await during(client.machines.destroy(folder))));
    expect(named(it, 'a')).toBe(undefined);
    await expect(during(client.tasks.follow(late))).rejects.toMatchObject({
      code: 'OBJECT_NOT_FOUND',
      detail: { obj: folder },
    });
  });

  test('ends calls of a session that is killed, and who follows a task hears of its end all the same', async () => {
    const it = await world();
    const { client, vcenter, simulation, during } = it;
    const task = await cloned(it, 'a');
    const followed = client.tasks.follow(task);
    await simulation.run({ until: simulation.schedule.now + 2_000 });
    for (const { key } of vcenter.sessions) vcenter.kill(key);
    await during(followed);
    expect(named(it, 'a')?.power).toBe('poweredOn');
    expect(vcenter.sessions).toHaveLength(1);
  });

  test('tells of changes late and in parts, and all of them', async () => {
    const it = await world({ lagMs: () => 3_000, taskMs: () => 100 });
    const { client, datacenter, during } = it;
    const inventory = client.inventory({
      container: datacenter.vmFolder,
      properties: { VirtualMachine: ['name', 'runtime.powerState'], Folder: ['name'] },
    });
    await during(inventory.synced());
    for (const name of ['b', 'c', 'd']) await during(client.machines.createFolder(datacenter.vmFolder, name));
    await during(client.tasks.follow(await cloned(it, 'a')));
    expect(inventory.list('VirtualMachine')).toHaveLength(1);
    await it.simulation.run({ until: it.simulation.schedule.now + 10_000 });
    expect(inventory.list('Folder').map(({ properties }) => properties.name)).toEqual(['b', 'c', 'd']);
    const power = inventory.list('VirtualMachine').map(({ properties }) => properties['runtime.powerState']);
    expect(power).toEqual(['poweredOff', 'poweredOn']);
  });

  test('refuses a version of a collector that it does not know', async () => {
    const it = await world();
    const { vcenter, during, client } = it;
    await during(client.read(it.datacenter.ref, ['name']));
    const [session] = vcenter.sessions;
    const collector = session?.collector(session.collect());
    expect(() => collector?.wait('7', 0, 10)).toThrow('InvalidCollectorVersion');
  });
});
