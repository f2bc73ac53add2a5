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

describe('server certificate', () => {
  async function outcome(tls: TlsOptions): Promise<string> {
    await using vcenter = clientOf(vcsim, { tls });
    return await vcenter.about().then(
      ({ about }) => about.name,
      (error) => `${error.code}: ${error.message}`,
    );
  }

  test('the server certificate is accepted if tls.ca contains its authority', async () => {
    expect(await outcome({ ca: vcsim.ca })).toContain('vCenter');
  });

  test('the server certificate is accepted with its thumbprint, with and without colons', async () => {
    expect(await outcome({ thumbprint })).toContain('vCenter');
    expect(await outcome({ thumbprint: thumbprint.replaceAll(':', '').toLowerCase() })).toContain('vCenter');
  });

  test('the server certificate is accepted with insecure: true', async () => {
    expect(await outcome({ insecure: true })).toContain('vCenter');
  });

  test('the server certificate is rejected if only the system authorities are trusted', async () => {
    expect(await outcome({})).toMatch(/^CONNECTION: .*self-signed certificate/);
  });

  test('the server certificate is rejected with another thumbprint, before anything is sent', async () => {
    await vcsim.control.resetCalls();
    expect(await outcome({ thumbprint: '0'.repeat(64) })).toMatch(
      /^CONNECTION: .*does not match the pinned thumbprint/,
    );
    expect(await vcsim.control.calls()).toEqual({});
  });

  test('each new connection uses the TLS options that the function `tls` returns at that time', async () => {
    let tls: TlsOptions = {};
    await using vcenter = clientOf(vcsim, { tls: async () => tls });
    await expect(vcenter.about()).rejects.toMatchObject({ code: 'CONNECTION' });
    tls = { ca: vcsim.ca };
    expect((await vcenter.about()).about.name).toContain('vCenter');
  });
});

describe('constructor options', () => {
  const credentials = () => ({ username: 'u', password: 'p' });
  const world = new FakeWorld(() => ({ text: '' }));
  const make = (server: string, tls: TlsOptions = {}) =>
    new VcenterClient({ world, server, credentials, tls });

  test.each([
    ['ftp://vc', {}, "'ftp://vc' is not a valid vCenter address"],
    ['', {}, "'' is not a valid vCenter address"],
    ['https://root:secret@vc/sdk', {}, 'must not contain a user name or password'],
    ['vc', { thumbprint: 'a'.repeat(64) }, 'this world does not support certificate pinning'],
  ])('the constructor rejects server %j with tls %j', (server, tls, message) => {
    expect(() => make(server, tls)).toThrow(message);
    expect(() => make(server, tls)).toThrow(expect.objectContaining({ code: 'INVALID_OPTIONS' }));
  });

  test('the constructor rejects a thumbprint that is too short', () => {
    expect(() => clientOf(vcsim, { tls: { thumbprint: 'AB:CD' } })).toThrow(
      'tls.thumbprint must be a SHA-256 thumbprint',
    );
  });
});

test('the server may be a host name or a URL, with or without /sdk', async () => {
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

test('the observer is called after each API call', async () => {
  const calls: string[] = [];
  await using vcenter = clientOf(vcsim, {
    observer: { onCall: (method, code) => calls.push(`${method} ${code}`) },
  });
  await vcsim.control.fault({ method: 'CreateContainerView', fault: 'NoPermission', max: 1 });
  await vcenter.list('Folder', ['name']).catch(() => undefined);
  const login = ['RetrieveServiceContent ok', 'Login ok', 'RetrievePropertiesEx ok'];
  expect(calls).toEqual([...login, 'CreateContainerView NoPermission']);
});
