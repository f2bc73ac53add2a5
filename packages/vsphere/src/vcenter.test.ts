import { X509Certificate } from 'node:crypto';
import type { TlsOptions } from '@vmwright/core';
import { startVcsim, type Vcsim } from '@vmwright/testbed';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeWorld } from '../test/fake-world.ts';
import { clientOf } from '../test/vcenter.ts';
import { VcenterClient } from './index.ts';

let vcsim: Vcsim;
let thumbprint: string;

beforeAll(async () => {
  vcsim = await startVcsim({ inventory: { vms: 0 } });
  thumbprint = new X509Certificate(vcsim.ca).fingerprint256;
});
afterAll(() => vcsim[Symbol.asyncDispose]());

describe('the server is trusted', () => {
  async function outcome(tls: TlsOptions): Promise<string> {
    await using vcenter = clientOf(vcsim, { tls });
    return await vcenter.about().then(
      ({ about }) => about.name,
      (error) => `${error.code}: ${error.message}`,
    );
  }

  test('by an authority that is given', async () => {
    expect(await outcome({ ca: vcsim.ca })).toContain('vCenter');
  });

  test('by the thumbprint of its certificate, colons or not', async () => {
    expect(await outcome({ thumbprint })).toContain('vCenter');
    expect(await outcome({ thumbprint: thumbprint.replaceAll(':', '').toLowerCase() })).toContain('vCenter');
  });

  test('when that is said to be insecure', async () => {
    expect(await outcome({ insecure: true })).toContain('vCenter');
  });

  test("not by the system's authorities, which do not know it", async () => {
    expect(await outcome({})).toMatch(/^CONNECTION: .*self-signed certificate/);
  });

  test('not by another thumbprint, and it is sent nothing', async () => {
    await vcsim.control.resetCalls();
    expect(await outcome({ thumbprint: '0'.repeat(64) })).toMatch(
      /^CONNECTION: .*another certificate than the pinned/,
    );
    expect(await vcsim.control.calls()).toEqual({});
  });

  test('by what is said at the time of the connection', async () => {
    let tls: TlsOptions = {};
    await using vcenter = clientOf(vcsim, { tls: async () => tls });
    await expect(vcenter.about()).rejects.toMatchObject({ code: 'CONNECTION' });
    tls = { ca: vcsim.ca };
    expect((await vcenter.about()).about.name).toContain('vCenter');
  });
});

describe('options that make no sense are refused at once', () => {
  const credentials = () => ({ username: 'u', password: 'p' });
  const world = new FakeWorld(() => ({ text: '' }));
  const make = (server: string, tls: TlsOptions = {}) =>
    new VcenterClient({ world, server, credentials, tls });

  test.each([
    ['ftp://vc', {}, "'ftp://vc' is no address of a vCenter"],
    ['', {}, "'' is no address of a vCenter"],
    ['https://root:secret@vc/sdk', {}, 'must not hold a user or a password'],
    ['vc', { thumbprint: 'a'.repeat(64) }, 'this world does not verify by thumbprints'],
  ])('%s %o', (server, tls, message) => {
    expect(() => make(server, tls)).toThrow(message);
    expect(() => make(server, tls)).toThrow(expect.objectContaining({ code: 'INVALID_OPTIONS' }));
  });

  test('a thumbprint that is too short', () => {
    expect(() => clientOf(vcsim, { tls: { thumbprint: 'AB:CD' } })).toThrow(
      'the thumbprint is not a SHA-256 one',
    );
  });
});

test('the address is taken as people write it', async () => {
  for (const server of [
    vcsim.host,
    `https://${vcsim.host}`,
    `https://${vcsim.host}/sdk`,
    `${vcsim.host}/sdk`,
  ]) {
    await using vcenter = clientOf(vcsim, { server });
    expect((await vcenter.about()).about.name).toContain('vCenter');
  }
});

test('each answer is told to the observer', async () => {
  const told: string[] = [];
  await using vcenter = clientOf(vcsim, {
    observer: { answered: (method, code) => told.push(`${method} ${code}`) },
  });
  await vcsim.control.fault({ method: 'CreateContainerView', fault: 'NoPermission', max: 1 });
  await vcenter.list('Folder', ['name']).catch(() => undefined);
  const login = ['RetrieveServiceContent ok', 'Login ok', 'RetrievePropertiesEx ok'];
  expect(told).toEqual([...login, 'CreateContainerView NoPermission']);
});
