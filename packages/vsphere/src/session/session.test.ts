import { startVcsim, type Vcsim } from '@vmwright/testbed';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeWorld, faultResponse, methodIn, soap, withLogin } from '../../test/fake-world.ts';
import { until } from '../../test/until.ts';
import { clientOf, resetFaults } from '../../test/vcenter.ts';
import { FaultError, VcenterClient } from '../index.ts';

const HOUR = 3_600_000;
let vcsim: Vcsim;

beforeAll(async () => {
  vcsim = await startVcsim();
});
afterAll(() => vcsim[Symbol.asyncDispose]());
beforeEach(async () => {
  await resetFaults(vcsim);
  await vcsim.control.expireSessions();
  await vcsim.control.resetCalls();
});

function names(vcenter: VcenterClient): Promise<unknown> {
  return vcenter.list('Datacenter', ['name']).then((all) => all.map(({ properties }) => properties.name));
}

async function failureOf(promise: Promise<unknown>): Promise<Error> {
  const error = await promise.then(
    () => undefined,
    (caught) => caught,
  );
  if (error instanceof Error) return error;
  throw new Error('expected a rejection');
}

test('concurrent calls share one session, and disposing of the client ends that session', async () => {
  {
    await using vcenter = clientOf(vcsim);
    const all = await Promise.all(Array.from({ length: 20 }, () => names(vcenter)));
    expect(all).toEqual(Array.from({ length: 20 }, () => ['DC0']));
    expect(await vcsim.control.sessions()).toHaveLength(1);
    expect(await vcsim.control.calls()).toMatchObject({ Login: 1 });
  }
  expect(await vcsim.control.sessions()).toEqual([]);
});

describe('reads in an ended session', () => {
  test('a read in an ended session succeeds after one new login when vCenter responds with a fault', async () => {
    await using vcenter = clientOf(vcsim);
    await names(vcenter);
    await vcsim.control.expireSessions();
    // The first call of each read is CreateContainerView, which fails with a fault.
    expect(await Promise.all([names(vcenter), names(vcenter), names(vcenter)])).toEqual([
      ['DC0'],
      ['DC0'],
      ['DC0'],
    ]);
    expect(await vcsim.control.sessions()).toHaveLength(1);
    expect(await vcsim.control.calls()).toMatchObject({ Login: 2 });
  });

  test('a read in an ended session succeeds after one new login when vCenter responds with missing properties instead of a fault', async () => {
    await using vcenter = clientOf(vcsim);
    const datacenter = await vcenter.lookup.datacenter();
    await vcsim.control.expireSessions();
    expect(await vcenter.read(datacenter.ref, ['name'])).toEqual({ name: 'DC0' });
    expect(await vcsim.control.sessions()).toHaveLength(1);
    expect(await vcsim.control.calls()).toMatchObject({ Login: 2 });
  });

  test('if vCenter reports a valid session as ended, a read succeeds in a new session, and the old session is logged out', async () => {
    await using vcenter = clientOf(vcsim);
    await names(vcenter);
    await vcsim.control.fault({ method: 'CreateContainerView', fault: 'NotAuthenticated', max: 1 });
    expect(await names(vcenter)).toEqual(['DC0']);
    await expect.poll(() => vcsim.control.sessions()).toHaveLength(1);
  });

  test('a read is retried with a new session only once: it fails if the new session has ended, too', async () => {
    await using vcenter = clientOf(vcsim);
    await vcsim.control.fault({ method: 'CreateContainerView', fault: 'NotAuthenticated' });
    await expect(names(vcenter)).rejects.toMatchObject({ code: 'NOT_AUTHENTICATED' });
    expect(await vcsim.control.calls()).toMatchObject({ Login: 2, CreateContainerView: 2 });
  });
});

test('concurrent reads share one session even if it is killed repeatedly', async () => {
  await using vcenter = clientOf(vcsim);
  const inventory = vcenter.inventory({ properties: { Folder: ['name'] } });
  await inventory.synced();
  for (let round = 0; round < 8; round++) {
    const reads = Array.from({ length: 12 }, () => names(vcenter));
    await vcsim.control.expireSessions();
    // A read that loses its session twice fails with NOT_AUTHENTICATED. No other error may occur.
    for (const { status, ...read } of await Promise.allSettled(reads))
      expect(read).toMatchObject(
        status === 'fulfilled' ? { value: ['DC0'] } : { reason: { code: 'NOT_AUTHENTICATED' } },
      );
    expect((await vcsim.control.sessions()).length).toBeLessThanOrEqual(1);
  }
  await names(vcenter);
  expect(await vcsim.control.sessions()).toHaveLength(1);
});

test('assertLeader is called again before a change is repeated in a new session', async () => {
  await using vcenter = clientOf(vcsim);
  const { vmFolder } = await vcenter.lookup.datacenter();
  await vcsim.control.expireSessions();
  await vcsim.control.resetCalls();
  let checks = 0;
  const folder = await vcenter.machines.createFolder(vmFolder, 'after-relogin', {
    assertLeader: () => {
      checks++;
    },
  });
  expect(await vcenter.read(folder, ['name'])).toEqual({ name: 'after-relogin' });
  expect(await vcsim.control.calls()).toMatchObject({ CreateFolder: 2, Login: 1 });
  // assertLeader runs twice for each send: before waiting for a connection, and when one is available
  expect(checks).toBe(4);
});

test('assertLeader is called again when a connection is available; if this call throws, the change is not sent', async () => {
  await using vcenter = clientOf(vcsim);
  const { vmFolder } = await vcenter.lookup.datacenter();
  await vcsim.control.resetCalls();
  const fenced = new Error('not the leader');
  let checks = 0;
  const assertLeader = () => {
    checks += 1;
    if (checks > 1) throw fenced;
  };
  await expect(vcenter.machines.createFolder(vmFolder, 'never', { assertLeader })).rejects.toBe(fenced);
  expect(await vcsim.control.calls()).not.toHaveProperty('CreateFolder');
});

test('the next login uses a changed password', async () => {
  const given = ['wrong', vcsim.password];
  await using vcenter = clientOf(vcsim, {
    credentials: async () => ({ username: vcsim.username, password: given.shift() ?? 'none left' }),
  });
  await expect(names(vcenter)).rejects.toMatchObject({ code: 'INVALID_LOGIN' });
  expect(await names(vcenter)).toEqual(['DC0']);
  await vcsim.control.expireSessions();
  await expect(names(vcenter)).rejects.toMatchObject({ code: 'INVALID_LOGIN' });
});

test('if the response to a login is lost, the session of that login is terminated after the next login', async () => {
  await using vcenter = clientOf(vcsim);
  await vcsim.control.delay({ methods: { Login: HOUR } });
  const read = names(vcenter);
  read.catch(() => undefined);
  await until(async () => (await vcsim.control.calls()).Login === 1);
  await vcsim.control.drop(); // vCenter completes the login, but the client does not get its session
  await vcsim.control.clearDelays();
  expect(await read).toEqual(['DC0']);
  expect(await vcsim.control.calls()).toMatchObject({ Login: 2, TerminateSession: 1 });
  expect(await vcsim.control.sessions()).toHaveLength(1);
});

test('a stop during the login leaves no session', async () => {
  await vcsim.control.delay({ methods: { Login: HOUR } });
  const vcenter = clientOf(vcsim);
  const read = names(vcenter);
  read.catch(() => undefined);
  await until(async () => (await vcsim.control.calls()).Login === 1);
  const stopped = vcenter.stop();
  await vcsim.control.clearDelays();
  await stopped;
  expect(await vcsim.control.sessions()).toEqual([]);
  await expect(names(vcenter)).rejects.toMatchObject({ code: 'STOPPED' });
});

test('the error of a rejected login does not contain the password', async () => {
  const password = 'T0p-s3cret&<>';
  const seen: string[] = [];
  await using vcenter = clientOf(vcsim, {
    credentials: () => ({ username: vcsim.username, password }),
    observer: {
      onError: (error) => seen.push(String(error)),
      onCall: (...call) => seen.push(call.join()),
    },
  });
  vcenter.inventory({ properties: { Folder: ['name'] } });
  const error = await failureOf(names(vcenter));
  expect(error).toBeInstanceOf(FaultError);
  expect(error.message).toBe(
    `logging in as '${vcsim.username}': vCenter rejected the user name or password (Login failure)`,
  );
  expect(`${error.stack}${JSON.stringify(error)}${seen}`).not.toContain(password);
});

describe('rejected passwords', () => {
  function rejectingServer() {
    let password = 'wrong';
    let logins = 0;
    const accept = withLogin(() => ({ text: soap('<RetrievePropertiesExResponse/>') }));
    const world = new FakeWorld((request) => {
      if (methodIn(request) !== 'Login') return accept(request);
      logins++;
      return password === 'right'
        ? accept(request)
        : faultResponse('InvalidLogin', `${password} is not valid`);
    });
    const vcenter = new VcenterClient({
      world,
      server: 'vc.example.com',
      credentials: () => ({ username: 'u', password }),
    });
    const outcome = () =>
      vcenter.about().then(
        () => 'in',
        (error) => error.code,
      );
    return {
      world,
      outcome,
      logins: () => logins,
      message: () => vcenter.about().catch((error) => error.message),
      change: (to: string) => {
        password = to;
      },
    };
  }

  test('a rejected password is tried again only with exponential back-off, so that the account is not locked', async () => {
    const { world, outcome, logins } = rejectingServer();
    for (let i = 0; i < 10; i++) expect(await outcome()).toBe('INVALID_LOGIN');
    expect(logins()).toBe(1);
    world.advance(30_000);
    for (let i = 0; i < 10; i++) expect(await outcome()).toBe('INVALID_LOGIN');
    expect(logins()).toBe(2);
    world.advance(59_000);
    await outcome();
    expect(logins()).toBe(2);
    world.advance(1_000);
    await outcome();
    expect(logins()).toBe(3);
  });

  test('a rejected password does not delay a login with another password', async () => {
    const { outcome, change, logins } = rejectingServer();
    expect(await outcome()).toBe('INVALID_LOGIN');
    change('right');
    expect(await outcome()).toBe('in');
    expect(logins()).toBe(2);
  });

  test('a rejected password is redacted from the error when the server includes it in its response', async () => {
    expect(await rejectingServer().message()).toBe(
      "logging in as 'u': vCenter rejected the user name or password ([redacted] is not valid)",
    );
  });
});
