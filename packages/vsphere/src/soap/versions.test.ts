import { describe, expect, test } from 'vitest';
import { FakeWorld, loggingIn, soap } from '../../test/fake-world.ts';
import { VcenterClient } from '../index.ts';
import { KNOWN_VERSION } from '../vim25/schema.generated.ts';
import { agreedVersion, cappedVersion, isNewer, versionsIn } from './versions.ts';

const credentials = () => ({ username: 'u', password: 'p' });

function list(newest: string, ...prior: string[]): string {
  const older = prior.map((version) => `<version>${version}</version>`).join('');
  return `<?xml version="1.0"?><namespaces version="1.0"><namespace><name>urn:other</name><version>99.0</version></namespace>
    <namespace><name>urn:vim25</name><version>${newest}</version><priorVersions>${older}</priorVersions></namespace></namespaces>`;
}

test('versions are compared by their numbers', () => {
  expect(isNewer('8.0.10.0', '8.0.9.0')).toBe(true);
  expect(isNewer('6.7', '6.7.3')).toBe(false);
  expect(isNewer('7.0', '7.0.0.0')).toBe(false);
  expect(isNewer('10.0', '9.1.0.0')).toBe(true);
});

describe('the version spoken is the newest that both know', () => {
  test.each([
    ['an old vCenter', list('6.7.3', '6.7.2', '6.7', '6.5'), '6.7.3'],
    ['a vCenter of today', list('8.0.3.0', '8.0.2.0', '7.0.3.0'), '8.0.3.0'],
    [
      'a vCenter that is younger than this client',
      list('99.1.0.0', '99.0', KNOWN_VERSION, '8.0.3.0'),
      KNOWN_VERSION,
    ],
    ['a vCenter that speaks none that we know', list('99.1.0.0'), undefined],
  ])('%s', (_, text, expected) => {
    expect(agreedVersion(versionsIn(text))).toBe(expected);
  });

  test.each([
    ['from its list', { versions: list('7.0.3.0', '6.7.3'), apiVersion: '7.0.3.0' }, '7.0.3.0'],
    ['from what it says of itself, where it has no list', { apiVersion: '8.0.2.0' }, '8.0.2.0'],
    ['at most what we know', { apiVersion: '99.0.0.0' }, KNOWN_VERSION],
    [
      'whatever a proxy shows in its place',
      { versions: '<html>not here</html>', apiVersion: '7.0.3.0' },
      '7.0.3.0',
    ],
  ])('%s', async (_, server, expected) => {
    const time = soap(
      '<CurrentTimeResponse><returnval>2026-01-01T00:00:00Z</returnval></CurrentTimeResponse>',
    );
    const world = new FakeWorld(loggingIn(() => ({ text: time }), server));
    await using vcenter = new VcenterClient({ world, server: 'vc.example.com', credentials });
    expect((await vcenter.about()).version).toBe(expected);
    expect(world.requests.at(-1)?.headers.soapaction).toBe(`urn:vim25/${expected}`);
  });

  test('unless another is asked for', async () => {
    const world = new FakeWorld(loggingIn(() => ({ text: '' }), { apiVersion: '8.0.2.0' }));
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
