import { startVcsim, type Vcsim } from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeWorld, soap, withLogin } from '../../test/fake-world.ts';
import { clientOf } from '../../test/vcenter.ts';
import { type Datacenter, type Ref, VcenterClient } from '../index.ts';

let vcsim: Vcsim;
let vcenter: VcenterClient;
let datacenter: Datacenter;

beforeAll(async () => {
  vcsim = await startVcsim({
    inventory: { datacenters: 2, clusters: 2, hosts: 1, pools: 1, vms: 1, standaloneHosts: 0, datastores: 2 },
  });
  vcenter = clientOf(vcsim, { pageSize: 1 });
  datacenter = await vcenter.lookup.datacenter('DC0');
});
afterAll(async () => {
  await vcenter.stop();
  await vcsim[Symbol.asyncDispose]();
});

async function nameOf(ref: Ref): Promise<unknown> {
  const type = ref.type === 'DistributedVirtualPortgroup' ? 'Network' : ref.type;
  if (type === 'VirtualMachine') return (await vcenter.read({ ...ref, type }, ['name'])).name;
  if (type === 'Folder') return (await vcenter.read({ ...ref, type }, ['name'])).name;
  if (type === 'ResourcePool') return (await vcenter.read({ ...ref, type }, ['name'])).name;
  if (type === 'ClusterComputeResource') return (await vcenter.read({ ...ref, type }, ['name'])).name;
  if (type === 'Datastore') return (await vcenter.read({ ...ref, type }, ['name'])).name;
  throw new Error(type);
}

test('VcenterClient.list reads all pages', async () => {
  const all = await vcenter.list('VirtualMachine', ['name', 'config.template']);
  expect(all.map(({ properties }) => properties.name).sort()).toEqual([
    ...['DC0_C0_RP1_VM0', 'DC0_C1_RP1_VM0', 'DC1_C0_RP1_VM0', 'DC1_C1_RP1_VM0'],
  ]);
  await vcsim.control.resetCalls();
  await vcenter.list('VirtualMachine', ['name'], { container: datacenter.vmFolder });
  expect(await vcsim.control.calls()).toMatchObject({
    RetrievePropertiesEx: 1,
    ContinueRetrievePropertiesEx: 1,
  });
});

describe('template', () => {
  test('lookup.template finds a template by name, relative path and absolute path', async () => {
    const inner = await vcenter.machines.createFolder(
      await vcenter.machines.createFolder(datacenter.vmFolder, 'outer'),
      'inner',
    );
    const template = await vcenter.lookup.template(datacenter, 'DC0_C0_RP1_VM0');
    const resourcePool = await vcenter.lookup.resourcePool(datacenter, 'DC0_C0');
    const task = await vcenter.machines.clone({ name: 'golden', template, folder: inner, resourcePool });
    const golden = await vcenter.tasks.follow(task);
    for (const name of ['golden', 'outer/inner/golden', '/outer/inner/golden', '/DC0/vm/outer/inner/golden'])
      expect(await vcenter.lookup.template(datacenter, name)).toEqual(golden);
    expect(await vcenter.lookup.folder(datacenter, 'outer/inner')).toEqual(inner);
    expect(await vcenter.lookup.folder(datacenter, 'inner')).toEqual(inner);
    expect(await vcenter.lookup.folder(datacenter, '/')).toEqual(datacenter.vmFolder);

    const second = await vcenter.machines.createFolder(datacenter.vmFolder, 'second');
    await vcenter.tasks.follow(
      await vcenter.machines.clone({ name: 'golden', template, folder: second, resourcePool }),
    );
    await expect(vcenter.lookup.template(datacenter, 'golden')).rejects.toMatchObject({
      code: 'AMBIGUOUS',
      message: "datacenter 'DC0' has 2 templates 'golden'; specify one by its path",
    });
    // With `folder`, only the template in that folder is found.
    for (const name of ['golden', '/golden', 'second/golden', '/DC0/vm/second/golden'])
      expect(await vcenter.lookup.template(datacenter, name, { folder: second })).not.toEqual(golden);
    for (const name of ['outer/inner/golden', 'DC0_C0_RP1_VM0'])
      await expect(vcenter.lookup.template(datacenter, name, { folder: second })).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
    await expect(vcenter.lookup.template(datacenter, 'golden', { onlyTemplates: true })).rejects.toThrow(
      "template 'golden' not found in datacenter 'DC0'; machines that are not templates are ignored",
    );
  });

  test('the error for a missing template contains its name and the datacenter', async () => {
    for (const name of ['nope', 'outer/nope', 'nowhere/x', 'DC1_C0_RP1_VM0'])
      await expect(vcenter.lookup.template(datacenter, name)).rejects.toMatchObject({
        code: 'NOT_FOUND',
        message: `template '${name}' not found in datacenter 'DC0'`,
      });
  });
});

test('lookup.folder rejects a path that leads to a machine', async () => {
  await expect(vcenter.lookup.folder(datacenter, 'DC0_C0_RP1_VM0')).rejects.toThrow(
    "folder 'DC0_C0_RP1_VM0' not found in datacenter 'DC0'",
  );
});

test('lookup.datacenter requires a name when there are several datacenters', async () => {
  expect((await vcenter.lookup.datacenter('DC1')).name).toBe('DC1');
  await expect(vcenter.lookup.datacenter()).rejects.toThrow(
    'vCenter has 2 datacenters: specify one by its path (available: DC0, DC1)',
  );
  await expect(vcenter.lookup.datacenter('DC7')).rejects.toThrow(
    "datacenter 'DC7' not found (available: DC0, DC1)",
  );
});

test('cluster, resourcePool, datastore and network find objects by name and path', async () => {
  const { lookup } = vcenter;
  expect(await nameOf(await lookup.cluster(datacenter, 'DC0_C1'))).toBe('DC0_C1');
  expect(await nameOf(await lookup.resourcePool(datacenter, 'DC0_C1'))).toBe('Resources');
  expect(await nameOf(await lookup.resourcePool(datacenter, 'DC0_C1/Resources/DC0_C1_RP1'))).toBe(
    'DC0_C1_RP1',
  );
  expect(await nameOf(await lookup.resourcePool(datacenter, 'DC0_C0_RP1'))).toBe('DC0_C0_RP1');
  expect(await nameOf(await lookup.datastore(datacenter, 'LocalDS_1'))).toBe('LocalDS_1');
  expect((await lookup.network(datacenter, 'VM Network')).type).toBe('Network');
  expect((await lookup.network(datacenter, 'DC0_DVPG0')).type).toBe('DistributedVirtualPortgroup');
  await expect(lookup.cluster(datacenter)).rejects.toThrow(
    "datacenter 'DC0' has 2 clusters: specify one by its path (available: DC0_C0, DC0_C1)",
  );
  // The message does not list pools, because they may belong to other tenants.
  await expect(lookup.resourcePool(datacenter, 'Resources')).rejects.toThrow(
    /^datacenter 'DC0' has 2 resource pools 'Resources': specify one by its path$/,
  );
  await expect(lookup.datastore(datacenter, 'tape')).rejects.toThrow(
    "datastore 'tape' not found in datacenter 'DC0'",
  );
  await expect(lookup.network(datacenter, 'x')).rejects.toThrow("network 'x' not found in datacenter 'DC0'");
});

test('lookup.byInstanceUuid returns the machine, or undefined when there is none', async () => {
  const uuid = '5f0c2c1e-7f4e-4a8e-9d0e-0c6f0a5d1b11';
  const world = new FakeWorld(
    withLogin(({ body = '' }) => {
      const search = `<uuid>${uuid}</uuid><vmSearch>true</vmSearch><instanceUuid>true</instanceUuid></FindByUuid>`;
      const found = body.includes(search) ? '<returnval type="VirtualMachine">vm-7</returnval>' : '';
      return { text: soap(`<FindByUuidResponse>${found}</FindByUuidResponse>`) };
    }),
  );
  const credentials = () => ({ username: 'u', password: 'p' });
  const { lookup } = new VcenterClient({ world, server: 'vc.example.com', credentials });
  expect(await lookup.byInstanceUuid(uuid)).toEqual({ type: 'VirtualMachine', value: 'vm-7' });
  expect(await lookup.byInstanceUuid('00000000-0000-4000-8000-000000000000')).toBe(undefined);
});

test('lookups destroy the views that they create', async () => {
  await vcsim.control.resetCalls();
  await vcenter.lookup.datacenter('DC0');
  await expect(vcenter.lookup.template(datacenter, 'nope')).rejects.toThrow();
  const { CreateContainerView, DestroyView } = await vcsim.control.calls();
  expect([CreateContainerView, DestroyView]).toEqual([2, 2]);
});
