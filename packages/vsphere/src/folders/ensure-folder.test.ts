import { startVcsim, type Vcsim } from '@vmwright/testbed';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { clientOf, resetFaults } from '../../test/vcenter.ts';
import type { Datacenter, VcenterClient } from '../index.ts';
import { createFolder, ensureFolder } from './ensure-folder.ts';

let vcsim: Vcsim;
let client: VcenterClient;
let datacenter: Datacenter;

beforeAll(async () => {
  vcsim = await startVcsim({ inventory: { hosts: 1, standaloneHosts: 0, vms: 1 } });
  client = clientOf(vcsim);
  datacenter = await client.lookup.datacenter();
});
afterAll(async () => {
  await client.stop();
  await vcsim[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await resetFaults(vcsim);
  await vcsim.control.resetCalls();
});

describe('ensureFolder', () => {
  test('ensureFolder creates every missing folder of the path', async () => {
    const folder = await ensureFolder(client, datacenter, 'a/b/c');
    expect(await client.lookup.folder(datacenter, '/DC0/vm/a/b/c')).toEqual(folder);
    expect(await vcsim.control.calls()).toMatchObject({ CreateFolder: 3 });
  });

  test('ensureFolder returns an existing folder for a relative and an absolute path, and creates nothing', async () => {
    const folder = await ensureFolder(client, datacenter, 'relative/path');
    await vcsim.control.resetCalls();
    expect(await ensureFolder(client, datacenter, '/relative/path/')).toEqual(folder);
    expect(await ensureFolder(client, datacenter, '/DC0/vm/relative/path')).toEqual(folder);
    expect(await vcsim.control.calls()).not.toHaveProperty('CreateFolder');
  });

  test('ensureFolder returns the VM folder of the datacenter for an empty path', async () => {
    expect(await ensureFolder(client, datacenter, '')).toEqual(datacenter.vmFolder);
    expect(await vcsim.control.calls()).toEqual({});
  });

  test('ensureFolder fails when an object on the path is not a folder', async () => {
    const path = 'DC0_C0_RP0_VM0/below';
    await expect(ensureFolder(client, datacenter, path)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: `'DC0_C0_RP0_VM0' in the folder path '${path}' is a VirtualMachine, not a folder`,
    });
  });

  test('ensureFolder creates nothing when assertLeader throws', async () => {
    const assertLeader = () => {
      throw new Error('not the leader');
    };
    await expect(ensureFolder(client, datacenter, 'fenced', { assertLeader })).rejects.toThrow(
      'not the leader',
    );
    expect(await vcsim.control.calls()).not.toHaveProperty('CreateFolder');
  });
});

describe('createFolder', () => {
  test('createFolder reports whether it created the folder', async () => {
    const first = await createFolder(client, datacenter.vmFolder, 'once');
    expect(first).toMatchObject({ created: true });
    const second = await createFolder(client, datacenter.vmFolder, 'once');
    expect(second).toEqual({ folder: first.folder, created: false });
  });

  test('createFolder fails when the name belongs to a virtual machine', async () => {
    const created = createFolder(client, datacenter.vmFolder, 'DC0_C0_RP0_VM0');
    await expect(created).rejects.toMatchObject({ code: 'DUPLICATE_NAME' });
  });
});
