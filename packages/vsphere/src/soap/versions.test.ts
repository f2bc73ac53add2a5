import { describe, expect, test } from 'vitest';
import { FakeWorld, soap, withLogin } from '../../test/fake-world.ts';
import { VcenterClient } from '../index.ts';
import { KNOWN_VERSION } from '../vim25/schema.generated.ts';
import { cappedVersion, isNewer, negotiateVersion, parseVersions } from './versions.ts';

const credentials = () => ({ username: 'u', password: 'p' });

function list(newest: string, ...prior: string[]): string {
  const older = prior.map((version) => `<version>${version}</version>`).join('');
  return `<?xml version="1.0"?><namespaces version="1.0"><namespace><name>urn:other</name><version>99.0</version></namespace>
    <namespace><name>urn:vim25</name><version>${newest}</version><priorVersions>${older}</priorVersions></namespace></namespaces>`;
}

test('isNewer compares versions by their numbers', () => {
  expect(isNewer('8.0.10.0', '8.0.9.0')).toBe(true);
  expect(isNewer('6.7', '6.7.3')).toBe(false);
  expect(isNewer('7.0', '7.0.0.0')).toBe(false);
  expect(isNewer('10.0', '9.1.0.0')).toBe(true);
});

describe('the client uses the newest version that both client and server know', () => {
  test.each([
    ['an old vCenter', list('6.7.3', '6.7.2', '6.7', '6.5'), '6.7.3'],
    ['a current vCenter', list('8.0.3.0', '8.0.2.0', '7.0.3.0'), '8.0.3.0'],
    [
      'a vCenter that is newer than this client',
      list('99.1.0.0', '99.0', KNOWN_VERSION, '8.0.3.0'),
      KNOWN_VERSION,
    ],
    ['a vCenter that offers no version that this client knows', list('99.1.0.0'), undefined],
  ])('negotiateVersion returns the newest common version, if any, for %s', (_, text, expected) => {
    expect(negotiateVersion(parseVersions(text))).toBe(expected);
  });

  test.each([
    ['from the list of versions', { versions: list('7.0.3.0', '6.7.3'), apiVersion: '7.0.3.0' }, '7.0.3.0'],
    ['from about.apiVersion when there is no list', { apiVersion: '8.0.2.0' }, '8.0.2.0'],
    ['from about.apiVersion, up to the newest known one', { apiVersion: '99.0.0.0' }, KNOWN_VERSION],
    [
      'from about.apiVersion when a proxy returns a page instead of the list',
      { versions: '<html>not here</html>', apiVersion: '7.0.3.0' },
      '7.0.3.0',
    ],
  ])('the API version is taken %s', async (_, server, expected) => {
    const time = soap(
      '<CurrentTimeResponse><returnval>2026-01-01T00:00:00Z</returnval></CurrentTimeResponse>',
    );
    const world = new FakeWorld(withLogin(() => ({ text: time }), server));
    await using vcenter = new VcenterClient({ world, server: 'vc.example.com', credentials });
    expect((await vcenter.about()).version).toBe(expected);
    expect(world.requests.at(-1)?.headers.soapaction).toBe(`urn:vim25/${expected}`);
  });

  test('the apiVersion option overrides the negotiation', async () => {
    const world = new FakeWorld(withLogin(() => ({ text: '' }), { apiVersion: '8.0.2.0' }));
    await using vcenter = new VcenterClient({
      world,
      server: 'vc.example.com',
      credentials,
      apiVersion: '7.0',
    });
    expect((await vcenter.about()).version).toBe('7.0');
    expect(cappedVersion('7.0')).toBe('7.0');
  });
});
