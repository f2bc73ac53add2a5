import { VcenterClient as Client, type Datacenter, type Ref } from '@vmwright/vsphere';
import { describe, expect, test } from 'vitest';
import { type Simulation, seeded } from '../world/simulation.ts';
import type { VcenterEnvironment } from './environment.ts';
import type { Machine } from './machine.ts';
import { VCENTER } from './simulated.ts';
import { Vcenter } from './vcenter.ts';

/*
 * Tests behaviour of the model in which vcsim differs from vCenter, or which takes real time in vcsim. All other
 * behaviour is compared with vcsim in test/vcenter-differential.
 */

const USER = { username: 'user', password: 'secret' };

interface Env {
  readonly simulation: Simulation;
  readonly vcenter: Vcenter;
  readonly client: Client;
  readonly datacenter: Datacenter;
  readonly template: Machine;
  /** Advances virtual time until the call has settled, and returns its result. */
  during<T>(call: Promise<T>): Promise<T>;
}

/** Starts a client and a vCenter without network faults. */
async function setup(environment: Partial<VcenterEnvironment> = {}): Promise<Env> {
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
      maxPageSize: 2,
      note: () => undefined,
      unmodelled: (message) => schedule.fail(new Error(message)),
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
      name: 'template',
      folder: vcenter.place.vmFolder.ref.value,
      instanceUuid: simulation.uuid(),
      isTemplate: true,
      power: 'poweredOff',
      host: 'host-6',
      cpus: 2,
      memoryMb: 1_024,
      canAddCpus: true,
      canAddMemory: false,
      extraConfig: {},
      ip: undefined,
    },
    'itself',
  );
  const datacenter = await during(client.lookup.datacenter());
  return { simulation, vcenter, client, datacenter, template, during };
}

async function cloned(
  { client, datacenter, template, during }: Env,
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

function named({ vcenter }: Env, name: string): Machine | undefined {
  return [...vcenter.machines.all()].find((machine) => machine.name === name);
}

describe('Vcenter', () => {
  test('a running machine can be resized only by hot-add, and only if hot-add is enabled', async () => {
    const env = await setup();
    const { client, during } = env;
    await during(client.tasks.follow(await cloned(env, 'a')));
    const vm = { type: 'VirtualMachine', value: named(env, 'a')?.id ?? '' } as const;
    await during(client.tasks.follow(await during(client.machines.reconfigure(vm, { cpus: 4 }))));
    expect(named(env, 'a')).toMatchObject({ cpus: 4, power: 'poweredOn' });
    for (const config of [{ cpus: 1 }, { memoryMb: 2_048 }]) {
      const task = await during(client.machines.reconfigure(vm, config));
      await expect(during(client.tasks.follow(task))).rejects.toMatchObject({ code: 'INVALID_POWER_STATE' });
    }
    expect(named(env, 'a')).toMatchObject({ cpus: 4, memoryMb: 1_024 });
  });

  test('the second of two concurrent clones with the same name fails with DUPLICATE_NAME', async () => {
    const env = await setup();
    const { client, during } = env;
    const [first, second] = [await cloned(env, 'a'), await cloned(env, 'a')];
    await during(client.tasks.follow(first));
    const { id = '' } = named(env, 'a') ?? {};
    await expect(during(client.tasks.follow(second))).rejects.toMatchObject({
      code: 'DUPLICATE_NAME',
      detail: { object: { type: 'VirtualMachine', value: id } },
    });
  });

  test('if a clone requests the instance UUID of another machine, it gets a new UUID', async () => {
    const env = await setup();
    const { client, datacenter, during } = env;
    const folder = await during(client.machines.createFolder(datacenter.vmFolder, 'other'));
    await during(client.tasks.follow(await cloned(env, 'a')));
    await during(client.tasks.follow(await cloned(env, 'b', folder)));
    expect(named(env, 'a')?.instanceUuid).toBe('5f0c2c1e-7f4e-4a8e-9d0e-000000000001');
    expect(named(env, 'b')?.instanceUuid).not.toBe(named(env, 'a')?.instanceUuid);
  });

  test('destroying a folder destroys its machines, and an unfinished task that clones a machine into the folder fails', async () => {
    const env = await setup({ taskMs: (what) => (what === 'Destroy' ? 1_000 : 5_000) });
    const { client, datacenter, during } = env;
    const folder = await during(client.machines.createFolder(datacenter.vmFolder, 'doomed'));
    await during(client.tasks.follow(await cloned(env, 'a', folder)));
    const late = await cloned(env, 'b', folder);
    await during(client.tasks.follow(await during(client.machines.destroy(folder))));
    expect(named(env, 'a')).toBe(undefined);
    await expect(during(client.tasks.follow(late))).rejects.toMatchObject({
      code: 'OBJECT_NOT_FOUND',
      detail: { obj: folder },
    });
  });

  test('waiting for a task continues after the session of the client was terminated', async () => {
    const env = await setup();
    const { client, vcenter, simulation, during } = env;
    const task = await cloned(env, 'a');
    const followed = client.tasks.follow(task);
    await simulation.run({ until: simulation.schedule.now + 2_000 });
    for (const { key } of vcenter.sessions) vcenter.kill(key);
    await during(followed);
    expect(named(env, 'a')?.power).toBe('poweredOn');
    expect(vcenter.sessions).toHaveLength(1);
  });

  test('a collector that lags and truncates its responses eventually reports all changes', async () => {
    const env = await setup({ lagMs: () => 3_000, taskMs: () => 100 });
    const { client, datacenter, during } = env;
    const inventory = client.inventory({
      container: datacenter.vmFolder,
      properties: { VirtualMachine: ['name', 'runtime.powerState'], Folder: ['name'] },
    });
    await during(inventory.synced());
    for (const name of ['b', 'c', 'd']) await during(client.machines.createFolder(datacenter.vmFolder, name));
    await during(client.tasks.follow(await cloned(env, 'a')));
    expect(inventory.list('VirtualMachine')).toHaveLength(1);
    await env.simulation.run({ until: env.simulation.schedule.now + 10_000 });
    expect(inventory.list('Folder').map(({ properties }) => properties.name)).toEqual(['b', 'c', 'd']);
    const power = inventory.list('VirtualMachine').map(({ properties }) => properties['runtime.powerState']);
    expect(power).toEqual(['poweredOff', 'poweredOn']);
  });

  test('a collector rejects an unknown version', async () => {
    const env = await setup();
    const { vcenter, during, client } = env;
    await during(client.read(env.datacenter.ref, ['name']));
    const [session] = vcenter.sessions;
    const collector = session?.collector(session.collect());
    expect(() => collector?.wait('7', 0, 10)).toThrow('InvalidCollectorVersion');
  });
});
