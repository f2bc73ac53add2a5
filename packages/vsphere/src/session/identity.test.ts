import { startToxiproxy, startVcsim } from '@vmwright/testbed';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeWorld, methodIn, soap, withLogin } from '../../test/fake-world.ts';
import { until } from '../../test/until.ts';
import { clientOf } from '../../test/vcenter.ts';
import { VcenterChangedError, VcenterClient } from '../index.ts';

const stack = new AsyncDisposableStack();
const A = '11111111-0000-4000-8000-000000000001';
const B = '22222222-0000-4000-8000-000000000002';
let east: Awaited<ReturnType<typeof startVcsim>>;
let west: typeof east;
let proxy: Awaited<ReturnType<Awaited<ReturnType<typeof startToxiproxy>>['proxy']>>;

beforeAll(async () => {
  east = stack.use(await startVcsim({ instanceUuid: A }));
  west = stack.use(await startVcsim({ instanceUuid: B }));
  proxy = await stack.use(await startToxiproxy()).proxy({ name: 'vcenter', upstream: east.host });
});
afterAll(() => stack.disposeAsync());
beforeEach(async () => {
  await proxy.redirect(east.host);
  await Promise.all([east.control.resetCalls(), west.control.resetCalls()]);
});

/** Creates a client that connects through the proxy. */
function throughProxy(): VcenterClient {
  return clientOf(east, {
    server: `https://${proxy.address}/sdk`,
    tls: { insecure: true }, // the client cannot trust the certificates of both vCenters: their subject is the same
  });
}

test('the client sends neither changes nor the password while the address leads to another vCenter', async () => {
  await using vcenter = throughProxy();
  const { vmFolder } = await vcenter.lookup.datacenter();
  await proxy.redirect(west.host);
  await expect(vcenter.lookup.datacenter()).rejects.toBeInstanceOf(VcenterChangedError);
  await expect(vcenter.machines.createFolder(vmFolder, 'elsewhere')).rejects.toMatchObject({
    code: 'VCENTER_CHANGED',
    expected: A,
    actual: B,
    effectUnknown: false,
  });
  const calls = await west.control.calls();
  expect(calls).toHaveProperty('RetrieveServiceContent');
  expect(calls).not.toHaveProperty('CreateFolder');
  expect(calls).not.toHaveProperty('Login');
  await using direct = clientOf(west);
  const names = (await direct.list('Folder', ['name'])).map(({ properties }) => properties.name);
  expect(names).not.toContain('elsewhere');

  await proxy.redirect(east.host);
  const folder = await vcenter.machines.createFolder(vmFolder, 'at-home');
  expect(await vcenter.read(folder, ['name'])).toEqual({ name: 'at-home' });
});

test('an inventory keeps its objects and is not live while the address leads to another vCenter', async () => {
  const changed = Promise.withResolvers<void>();
  await using vcenter = clientOf(east, {
    server: `https://${proxy.address}/sdk`,
    tls: { insecure: true }, // the client cannot trust the certificates of both vCenters: their subject is the same
    observer: { onError: (error) => error instanceof VcenterChangedError && changed.resolve() },
  });
  const inventory = vcenter.inventory({ properties: { VirtualMachine: ['name'] } });
  await inventory.synced();
  const { size } = inventory;
  await proxy.redirect(west.host);
  await changed.promise;
  expect([inventory.isLive, inventory.size]).toEqual([false, size]);
  await proxy.redirect(east.host);
  await until(async () => (await east.control.sessions()).length > 0 && inventory.isLive);
  expect(inventory.size).toBe(size);
});

describe('address that leads to two vCenters in turn', () => {
  /** Returns the response to the read of the server's identity and session, which the client sends after a login. */
  const identity = (uuid: string, key: string) =>
    soap(
      `<RetrievePropertiesExResponse><returnval>` +
        `<objects><obj type="ServiceInstance">ServiceInstance</obj><propSet><name>content.about.instanceUuid</name><val xsi:type="xsd:string">${uuid}</val></propSet></objects>` +
        `<objects><obj type="SessionManager">SessionManager</obj><propSet><name>currentSession</name><val xsi:type="UserSession"><key>${key}</key><userName>u</userName></val></propSet></objects>` +
        `</returnval></RetrievePropertiesExResponse>`,
    );

  function codeOf(respond: (request: number) => string) {
    let reads = 0;
    const accept = withLogin(
      (request) =>
        methodIn(request) === 'Logout' ? { text: soap('<LogoutResponse/>') } : { text: respond(++reads) },
      { instanceUuid: A },
    );
    const world = new FakeWorld(accept);
    const credentials = () => ({ username: 'u', password: 'p' });
    const vcenter = new VcenterClient({ world, server: 'vc.example.com', credentials });
    return world.runUntilSettled(
      vcenter.about().then(
        () => 'in',
        (error) => error.code,
      ),
    );
  }

  test('a login is accepted if the session belongs to the vCenter that was identified before the login', async () => {
    expect(await codeOf((read) => identity(A, `session-${read}`))).toBe('in');
  });

  test('a login is rejected if the session belongs to another vCenter than the one that was identified before the login', async () => {
    expect(await codeOf((read) => identity(B, `session-${read}`))).toBe('VCENTER_CHANGED');
  });

  test('a login is rejected if the responding server does not know the session', async () => {
    expect(await codeOf(() => identity(A, 'another'))).toBe('NOT_AUTHENTICATED');
  });
});
