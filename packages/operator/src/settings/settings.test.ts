import { describe, expect, test } from 'vitest';
import { duration } from './duration.ts';
import { settingsFrom } from './settings.ts';

const VCENTER = { VC_HOST: 'vc.example', VC_USER: 'admin', VC_PASS: 's3cret' };
const ENVIRONMENT = { CLOUD_URL: 'https://cloud.example:8480', CLOUD_API_KEY: 'k-1', ...VCENTER };

test('settings come from flags and the environment', () => {
  const settings = settingsFrom(
    ['--vm-refresh=1m30s', '--namespaces=a, b', '--status-address=127.0.0.1:0'],
    ENVIRONMENT,
  );
  expect(settings).toMatchObject({
    namespace: 'vmwright-system',
    namespaces: ['a', 'b'],
    election: { leaseMs: 15_000, renewMs: 10_000, retryMs: 2_000 },
    status: { host: '127.0.0.1', port: 0, secure: undefined, openMetrics: false },
    webhook: { port: 9443, url: undefined, certificateFolder: undefined, clients: undefined },
    revision: 'unknown',
    logLevel: 'info',
    cloud: {
      url: 'https://cloud.example:8480',
      apiKey: 'k-1',
      ca: undefined,
      timeoutMs: 10_000,
      refreshMs: 90_000,
      unknownAfterMs: 25_000,
      sweepMs: 60_000,
      concurrency: 8,
    },
    vsphere: {
      vcenter: {
        name: 'default',
        server: 'vc.example',
        credentials: { username: 'admin', password: 's3cret' },
        insecure: false,
      },
      placement: { folder: 'vm-operator' },
      timeoutMs: 30_000,
      concurrency: 3,
      sweepMs: 60_000,
    },
  });
  expect(settingsFrom([], { ...ENVIRONMENT, POD_NAMESPACE: 'there', WATCH_NAMESPACES: '' })).toMatchObject({
    namespace: 'there',
    namespaces: undefined,
  });
});

test('of a controller that is left out, nothing is asked', () => {
  expect(settingsFrom(['--controllers=vmgroup'], VCENTER)).toMatchObject({ cloud: undefined });
  const { VC_HOST: _, VC_USER: __, VC_PASS: ___, ...cloud } = ENVIRONMENT;
  expect(settingsFrom(['--controllers=vm'], cloud)).toMatchObject({ vsphere: undefined });
  expect(settingsFrom(['--vcenters=/etc/vcenters.yaml'], cloud)).toMatchObject({
    vsphere: { vcenter: undefined, file: '/etc/vcenters.yaml' },
  });
});

test("flags are taken as Go's programs take them, too", () => {
  const args = ['-insecure', '--enable-leader-election', '-metrics-addr=127.0.0.1:8081'];
  expect(settingsFrom(args, ENVIRONMENT)).toMatchObject({
    election: { leaseMs: 15_000 },
    status: { host: '127.0.0.1', port: 8081 },
    vsphere: { vcenter: { insecure: true } },
  });
  expect(settingsFrom(['--enable-leader-election=false'], ENVIRONMENT).election).toBe(undefined);
});

test('metrics need a token unless only this machine reaches them, or the settings say otherwise', () => {
  const status = (...args: readonly string[]) => settingsFrom(args, ENVIRONMENT).status;
  expect(status()).toEqual({ host: '', port: 8080, secure: { host: '', port: 8443 }, openMetrics: false });
  expect(status('--status-address=[::1]:1').secure).toBeUndefined();
  expect(status('--status-address=[::1]:1', '--metrics-bind-address=:2').secure).toEqual({
    host: '',
    port: 2,
  });
  expect(status('--metrics-bind-address=0').secure).toBeUndefined();
  expect(status('--metrics-auth=off').openMetrics).toBe(true);
});

test('certificates of the webhooks and of their clients come from files', () => {
  const args = [
    '--webhook-cert-dir=/etc/webhook',
    '--webhook-client-ca=/etc/ca.crt',
    '--webhook-client-name=kube-apiserver, other',
  ];
  expect(settingsFrom(args, { ...ENVIRONMENT, VMWRIGHT_REVISION: 'abc' })).toMatchObject({
    revision: 'abc',
    webhook: {
      certificateFolder: '/etc/webhook',
      clients: { caFile: '/etc/ca.crt', names: ['kube-apiserver', 'other'] },
    },
  });
  expect(settingsFrom(['--webhook-client-ca=/etc/ca.crt'], ENVIRONMENT).webhook.clients).toEqual({
    caFile: '/etc/ca.crt',
    names: undefined,
  });
});

describe('what is missing or wrong is named', () => {
  test('a password is in no sentence', () => {
    const broken = { ...ENVIRONMENT, VC_HOST: 'admin:s3cret@vc' };
    expect(() => settingsFrom([], broken)).toThrow(
      'VC_HOST has a user or a password in it; these have variables of their own',
    );
  });

  test.each([
    [
      [],
      { CLOUD_API_KEY: 'k' },
      "CLOUD_URL is not set; it is the private cloud's address, such as https://cloud.example:8480",
    ],
    [
      [],
      { ...ENVIRONMENT, CLOUD_URL: 'cloud' },
      'CLOUD_URL is "cloud", which is no address: it begins with http:// or https://',
    ],
    [
      [],
      { CLOUD_URL: 'https://c' },
      'CLOUD_API_KEY is not set; it is the key with which the private cloud lets us in, from a Secret',
    ],
    [
      [],
      { ...ENVIRONMENT, VC_HOST: undefined },
      "VC_HOST is not set; it is vCenter's name or address, such as vcenter.example.com; where there is no vCenter, leave VmGroups out with --controllers=vm",
    ],
    [[], { ...ENVIRONMENT, VC_PASS: '' }, 'VC_PASS is not set; it is the password of VC_USER, from a Secret'],
    [
      ['--controllers=vm,pod'],
      ENVIRONMENT,
      '--controllers is "vm,pod"; it wants some of vm, vmgroup, separated by commas',
    ],
    [['-insecure=maybe'], ENVIRONMENT, '--insecure is "maybe"; it wants true or false'],
    [
      ['--vm-refresh=often'],
      ENVIRONMENT,
      '--vm-refresh is "often"; it wants a time such as 500ms, 15s or 2m, and not less than 500ms',
    ],
    [
      ['--vm-refresh=0s'],
      ENVIRONMENT,
      '--vm-refresh is "0s"; it wants a time such as 500ms, 15s or 2m, and not less than 500ms',
    ],
    [['--vm-concurrency=0'], ENVIRONMENT, '--vm-concurrency is "0"; it wants a whole number from 1 to 1000'],
    [['--leader-elect=maybe'], ENVIRONMENT, '--leader-elect is "maybe"; it wants true or false'],
    [
      ['--status-address=here'],
      ENVIRONMENT,
      '--status-address is "here"; it wants a port such as :8080, or an address and a port',
    ],
    [['--metrics-auth=maybe'], ENVIRONMENT, '--metrics-auth is "maybe"; it wants token or off'],
    [
      ['--metrics-bind-address=here'],
      ENVIRONMENT,
      '--metrics-bind-address is "here"; it wants a port such as :8080, or an address and a port',
    ],
    [
      ['--webhook-client-name=a'],
      ENVIRONMENT,
      '--webhook-client-name needs --webhook-client-ca, the authorities that issue the certificates',
    ],
    [['--log-level=loud'], ENVIRONMENT, '--log-level is "loud"; it wants debug, info, warn, error'],
    [
      ['--vm-refresh=1ms'],
      ENVIRONMENT,
      '--vm-refresh is "1ms"; it wants a time such as 500ms, 15s or 2m, and not less than 500ms',
    ],
    [
      ['--cluster-id=a b'],
      ENVIRONMENT,
      '--cluster-id is "a b"; it wants 1 to 63 letters, digits, "-", "_" and ".", another for each cluster',
    ],
    [
      ['--leader-elect-lease-duration=1500ms'],
      ENVIRONMENT,
      '--leader-elect-lease-duration is "1500ms"; it wants whole seconds',
    ],
    [
      ['--leader-elect-renew-deadline=15s'],
      ENVIRONMENT,
      '--leader-elect-renew-deadline is "15s"; it wants less than --leader-elect-lease-duration, which is 15s',
    ],
    [
      ['--leader-elect-retry-period=6s'],
      ENVIRONMENT,
      '--leader-elect-retry-period is "6s"; it wants at most half of --leader-elect-renew-deadline, which is 10s',
    ],
    [['--webhook-url=http://x'], ENVIRONMENT, '--webhook-url is "http://x"; the API server wants https://'],
    [
      [],
      { ...ENVIRONMENT, CLOUD_API_KEY: 'a b' },
      'CLOUD_API_KEY has a space, a line break or a letter in it that no key has',
    ],
    [
      [],
      { ...ENVIRONMENT, CLOUD_URL: 'https://user:secret@cloud' },
      'CLOUD_URL has a user or a password in it; the key has a variable of its own',
    ],
    [['--vm-refreshes=1s'], ENVIRONMENT, "Unknown option '--vm-refreshes'"],
  ] as const)('%j', (args, environment, sentence) => {
    expect(() => settingsFrom(args, environment)).toThrow(sentence);
  });

  test('an empty --cluster-id is none: two clusters without one must not take each other for themselves', () => {
    expect(settingsFrom(['--cluster-id='], ENVIRONMENT).cluster).toBeUndefined();
  });

  test('and the key is in no sentence', () => {
    expect(() => settingsFrom([], { CLOUD_API_KEY: 'secret-key' })).toThrow(/^((?!secret-key).)*$/);
  });
});

test('durations are read as Go writes them', () => {
  expect(['500ms', '15s', '2m', '1h30m', '1.5s'].map(duration)).toEqual([
    500, 15_000, 120_000, 5_400_000, 1_500,
  ]);
  expect(['', '15', 's', '-1s', '1s ', 'NaNs'].map(duration)).toEqual(Array(6).fill(undefined));
});
