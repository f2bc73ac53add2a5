import { startVcsim, type Vcsim } from '@vmwright/testbed';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeWorld, methodIn, soap, withLogin } from '../../test/fake-world.ts';
import { until } from '../../test/until.ts';
import { clientOf, resetFaults } from '../../test/vcenter.ts';
import { type Datacenter, VcenterClient } from '../index.ts';

const HOUR = 3_600_000;
let vcsim: Vcsim;
let vcenter: VcenterClient;
let datacenter: Datacenter;
let folders = 0;

beforeAll(async () => {
  vcsim = await startVcsim({ inventory: { vms: 0 } });
});
afterAll(() => vcsim[Symbol.asyncDispose]());
beforeEach(async () => {
  await resetFaults(vcsim);
  vcenter = clientOf(vcsim);
  datacenter = await vcenter.lookup.datacenter();
  await vcsim.control.resetCalls();
  return () => vcenter[Symbol.asyncDispose]();
});

function read(): Promise<unknown> {
  return vcenter.read(datacenter.ref, ['name']);
}

async function hasFolder(name: string): Promise<boolean> {
  const found = await vcenter.list('Folder', ['name']);
  return found.some(({ properties }) => properties.name === name);
}

describe('reads', () => {
  test('a read is retried after a 503 from a proxy in front of vCenter', async () => {
    await vcsim.control.status(503, 3);
    expect(await read()).toEqual({ name: 'DC0' });
    expect(await vcsim.control.calls()).toEqual({ RetrievePropertiesEx: 4 });
  });

  test('a read is retried after a lost connection', async () => {
    await vcsim.control.delay({ methods: { RetrievePropertiesEx: HOUR } });
    const result = read();
    await until(async () => (await vcsim.control.calls()).RetrievePropertiesEx === 1);
    await vcsim.control.drop();
    await vcsim.control.clearDelays();
    expect(await result).toEqual({ name: 'DC0' });
  });

  test('a read fails after four attempts', async () => {
    await vcsim.control.status(503, 100);
    await expect(read()).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      status: 503,
      retryable: true,
      effectUnknown: false,
      message: `RetrievePropertiesEx on PropertyCollector propertyCollector: HTTP status 503`,
    });
    expect(await vcsim.control.calls()).toEqual({ RetrievePropertiesEx: 4 });
  });

  test('a read is not retried after a fault', async () => {
    await vcsim.control.fault({ method: 'RetrievePropertiesEx', fault: 'NoPermission' });
    await expect(read()).rejects.toMatchObject({ code: 'NO_PERMISSION' });
    expect(await vcsim.control.calls()).toEqual({ RetrievePropertiesEx: 1 });
  });
});

describe('changes', () => {
  test('a change is not retried after a lost connection, and its error has effectUnknown', async () => {
    const name = `lost-${++folders}`;
    await vcsim.control.delay({ methods: { CreateFolder: HOUR } });
    const created = vcenter.machines.createFolder(datacenter.vmFolder, name);
    created.catch(() => undefined);
    await until(async () => (await vcsim.control.calls()).CreateFolder === 1);
    await vcsim.control.drop();
    await vcsim.control.clearDelays();
    await expect(created).rejects.toMatchObject({
      code: 'CONNECTION',
      effectUnknown: true,
      message: expect.stringMatching(
        new RegExp(
          `^creating folder '${name}' in Folder group-\\d+: .*; it is unknown whether vCenter carried it out$`,
        ),
      ),
    });
    await until(() => hasFolder(name));
    expect(await vcsim.control.calls()).toMatchObject({ CreateFolder: 1 });
  });

  test('a change is not retried after a 503, because its effect is unknown', async () => {
    const name = `rejected-${++folders}`;
    await vcsim.control.status(503);
    await expect(vcenter.machines.createFolder(datacenter.vmFolder, name)).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      effectUnknown: true,
    });
    expect(await vcsim.control.calls()).toEqual({ CreateFolder: 1 });
    expect(await hasFolder(name)).toBe(false);
  });

  test('before a change is sent, a failed login is retried; if every login fails, the change is not sent', async () => {
    await using fresh = clientOf(vcsim);
    await vcsim.control.status(503, 2);
    await fresh.machines.createFolder(datacenter.vmFolder, `late-login-${++folders}`);
    await vcsim.control.status(503, 100);
    await using never = clientOf(vcsim);
    await expect(never.machines.createFolder(datacenter.vmFolder, 'never')).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      effectUnknown: false,
    });
    await vcsim.control.clearStatus();
    expect(await hasFolder('never')).toBe(false);
  });
});

test('a change is not sent when assertLeader throws', async () => {
  const fenced = new Error('not the leader');
  const created = vcenter.machines.createFolder(datacenter.vmFolder, 'forbidden', {
    assertLeader: () => {
      throw fenced;
    },
  });
  await expect(created).rejects.toBe(fenced);
  expect(await vcsim.control.calls()).toEqual({});
});

test('an aborted call rejects immediately with the reason of the abort', async () => {
  await vcsim.control.delay({ methods: { RetrievePropertiesEx: HOUR } });
  const controller = new AbortController();
  const reason = new Error('enough');
  const result = vcenter.read(datacenter.ref, ['name'], { signal: controller.signal });
  result.catch(() => undefined);
  await until(async () => (await vcsim.control.calls()).RetrievePropertiesEx === 1);
  controller.abort(reason);
  await expect(result).rejects.toBe(reason);
  await expect(vcenter.read(datacenter.ref, ['name'], { signal: controller.signal })).rejects.toBe(reason);
});

describe('without a response in time', () => {
  const never = new Promise<never>(() => undefined);
  const credentials = () => ({ username: 'u', password: 'p' });

  test('a change without a response in time fails with an error that says that its effect is unknown', async () => {
    const world = new FakeWorld(withLogin(() => never));
    const fake = new VcenterClient({ world, server: 'vc.example.com', credentials, timeoutMs: 7_000 });
    const folder = { type: 'Folder', value: 'group-1' } as const;
    await expect(world.runUntilSettled(fake.machines.createFolder(folder, 'x'))).rejects.toThrow(
      "creating folder 'x' in Folder group-1: no response within 7 s; it is unknown whether vCenter carried it out",
    );
    expect(world.requests.filter((request) => methodIn(request) === 'CreateFolder')).toHaveLength(1);
  });

  test('a read without a response in time is retried', async () => {
    let calls = 0;
    const propSet = '<propSet><name>name</name><val xsi:type="xsd:string">n</val></propSet>';
    const object = `<objects><obj type="Folder">group-1</obj>${propSet}</objects>`;
    const text = soap(
      `<RetrievePropertiesExResponse><returnval>${object}</returnval></RetrievePropertiesExResponse>`,
    );
    const world = new FakeWorld(withLogin(() => (++calls === 1 ? never : { text })));
    const fake = new VcenterClient({ world, server: 'vc.example.com', credentials });
    const folder = { type: 'Folder', value: 'group-1' } as const;
    expect(await world.runUntilSettled(fake.read(folder, ['name']))).toEqual({ name: 'n' });
    expect(calls).toBe(2);
  });
});
