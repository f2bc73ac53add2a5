import { describe, expect, test } from 'vitest';
import { selectControllers } from './controllers.ts';
import { didYouMean } from './did-you-mean.ts';
import { parseDuration } from './duration.ts';
import { settingsFrom, settingsOf } from './settings.ts';

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

describe('controllers', () => {
  const { VC_HOST: _, VC_USER: __, VC_PASS: ___, ...cloud } = ENVIRONMENT;

  test('settings of an excluded controller are not required', () => {
    expect(settingsFrom(['--controllers=vmgroup'], VCENTER)).toMatchObject({ cloud: undefined });
    expect(settingsFrom(['--controllers=vm'], cloud)).toMatchObject({
      vsphere: undefined,
      kubevirt: undefined,
    });
    expect(settingsFrom(['--vcenters=/etc/vcenters.yaml'], cloud)).toMatchObject({
      vsphere: { vcenter: undefined, file: '/etc/vcenters.yaml' },
    });
  });

  test('all controllers run by default, except those whose backend is not configured', () => {
    const { disabled, vsphere, kubevirt, named } = settingsFrom([], cloud);
    expect(disabled).toEqual([
      {
        name: 'vmgroup',
        why: 'neither VC_HOST nor --vcenters is set',
        remedy: 'set VC_HOST to the name or address of vCenter, with VC_USER and VC_PASS, or set --vcenters',
      },
    ]);
    expect([vsphere, kubevirt !== undefined, named.size]).toEqual([undefined, true, 0]);
    expect(settingsFrom(['--controllers=*,-vm'], VCENTER).disabled).toEqual([
      { name: 'vm', why: '--controllers excludes it', remedy: 'add vm to --controllers' },
    ]);
  });

  test.each([
    ['*', ['default', 'default', 'default']],
    ['vm', ['named', 'off', 'off']],
    ['-vm', ['off', 'default', 'default']],
    ['*,vmgroup,-vm', ['off', 'named', 'default']],
    [' vm , -kubevirt', ['named', 'off', 'off']],
  ])('with --controllers=%j, the selections of vm, vmgroup and kubevirt are %j', (value, expected) => {
    const selectionOf = selectControllers('--controllers', value);
    expect((['vm', 'vmgroup', 'kubevirt'] as const).map(selectionOf)).toEqual(expected);
  });
});

describe('the config file', () => {
  const config = (values: object) => ({ path: 'c.yaml', values: { ...values } });

  test('a flag takes precedence over a variable, a variable over the file, and the file over the default', () => {
    const file = config({ 'vm-refresh': '20s', 'cloud-url': 'https://file', 'vm-concurrency': '3' });
    const settings = settingsOf({ 'vm-refresh': '30s' }, ENVIRONMENT, file);
    expect(settings.cloud).toMatchObject({
      refreshMs: 30_000,
      url: ENVIRONMENT.CLOUD_URL,
      concurrency: 3,
      sweepMs: 60_000,
    });
    const variable = { ...ENVIRONMENT, MAX_SYNC_DURATION: '2h' };
    expect(settingsOf({}, variable, config({ 'image-sync-timeout': '3h' })).kubevirt?.syncs.maxTotalMs).toBe(
      7_200_000,
    );
    expect(settingsOf({ 'image-sync-timeout': '1h' }, variable).kubevirt?.syncs.maxTotalMs).toBe(3_600_000);
  });

  test('the config file accepts YAML lists and booleans', () => {
    const settings = settingsOf({}, ENVIRONMENT, config({ namespaces: ['a', 'b'], 'leader-elect': 'false' }));
    expect(settings).toMatchObject({ namespaces: ['a', 'b'], election: undefined });
  });

  test.each([
    [{ 'vm-refesh': '1s' }, 'vm-refesh in c.yaml is not a setting (did you mean "vm-refresh"?)'],
    [{ 'vm-refresh': 'often' }, 'vm-refresh in c.yaml is "often"; it must be a time'],
    [{ 'vm-refresh': { a: '1' } }, 'vm-refresh in c.yaml must be a single value'],
    [{ config: 'other.yaml' }, 'config in c.yaml is not a setting'],
    [
      { 'cloud-api-key': 'k' },
      'cloud-api-key is a secret and must not be in c.yaml; set the environment variable CLOUD_API_KEY from a Secret',
    ],
  ])('a config file with %j is rejected', (values, message) => {
    expect(() => settingsOf({}, ENVIRONMENT, config(values))).toThrow(message);
  });
});

describe('contradictory settings are rejected', () => {
  test.each([
    [['--controllers=vm,-vm'], {}, '--controllers names "vm" and "-vm"; remove one of them'],
    [
      ['--controllers=*,-vm,-vmgroup,-kubevirt,-gpuinfo'],
      {},
      '--controllers excludes all controllers; remove one of the exclusions',
    ],
    [
      ['--leader-elect=true', '--enable-leader-election=false'],
      {},
      '--leader-elect is "true" and --enable-leader-election is "false", but they are the same setting',
    ],
    [
      ['--status-address=:1', '--metrics-addr=:2'],
      {},
      '--status-address is ":1" and --metrics-addr is ":2", but they are the same setting',
    ],
    [['--cloud-api-key-file=/k'], {}, 'CLOUD_API_KEY and --cloud-api-key-file are both set'],
    [[], { VC_CREDENTIALS: '/c' }, 'VC_PASS and VC_CREDENTIALS are both set; unset one of them'],
    [['--insecure'], { VC_CA: '/ca' }, '--insecure disables the verification that VC_CA asks for'],
  ] as const)('the flags %j with the variables %j are rejected', (args, more, message) => {
    expect(() => settingsFrom(args, { ...ENVIRONMENT, ...more })).toThrow(message);
  });
});

test('an unknown name gets a "did you mean" suggestion only if a known name is similar', () => {
  const known = ['vm', 'vmgroup', 'kubevirt'];
  expect(['vmgroups', 'kubvirt', 'x', 'gpuinfo'].map((name) => didYouMean(name, known))).toEqual([
    ' (did you mean "vmgroup"?)',
    ' (did you mean "kubevirt"?)',
    '',
    '',
  ]);
});

test('the GPUInfo controller needs no vCenter, and accepts the environment variables of govmomi', () => {
  const gpuinfo = (args: readonly string[], environment: Record<string, string>) =>
    settingsFrom(['--controllers=gpuinfo', ...args], environment).gpuinfo;
  expect(gpuinfo([], {})).toEqual({
    seed: undefined,
    horizonMs: 8_760 * 3_600_000,
    calendar: undefined,
    vsphere: undefined,
    maintenanceAttribute: 'vmwright.dev/maintenance-start',
  });
  const govmomi = { GOVMOMI_URL: '192.168.0.100', GOVMOMI_USERNAME: 'admin', GOVMOMI_PASSWORD: 's3cret' };
  const vcenter = { server: '192.168.0.100', credentials: { username: 'admin', password: 's3cret' } };
  expect(gpuinfo([], govmomi)).toMatchObject({ vsphere: { vcenter } });
  expect(gpuinfo([], VCENTER)).toMatchObject({ vsphere: { vcenter: { server: 'vc.example' } } });
  expect(settingsFrom(['--controllers=vmgroup'], govmomi)).toMatchObject({ vsphere: { vcenter } });
  expect(() => gpuinfo([], { ...govmomi, ...VCENTER })).toThrow(
    'VC_HOST and GOVMOMI_URL differ; set one of them, or use --vcenters',
  );
  expect(() => gpuinfo([], { ...govmomi, GOVMOMI_URL: 'admin:s3cret@vc' })).toThrow(
    'GOVMOMI_URL contains a user or a password; set GOVMOMI_USERNAME and GOVMOMI_PASSWORD instead',
  );
  expect(gpuinfo(['--gpu-source=simulated', '--gpu-seed=7'], {})?.seed).toBe('7');
  expect(() => gpuinfo(['--gpu-source=random'], {})).toThrow(
    '--gpu-source is "random"; it must be real or simulated',
  );
  expect(() => gpuinfo(['--gpu-horizon=9999999h'], {})).toThrow(
    '--gpu-horizon is "9999999h"; it must be at most 1000000h',
  );
});

test('flags may start with one dash, and boolean flags need no value, as in Go programs', () => {
  const args = ['-insecure', '--enable-leader-election', '-metrics-addr=127.0.0.1:8081'];
  expect(settingsFrom(args, ENVIRONMENT)).toMatchObject({
    election: { leaseMs: 15_000 },
    status: { host: '127.0.0.1', port: 8081 },
    vsphere: { vcenter: { insecure: true } },
  });
  expect(settingsFrom(['--enable-leader-election=false'], ENVIRONMENT).election).toBe(undefined);
});

test('reading metrics requires a token, except on a loopback address or with --metrics-auth=off', () => {
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

test('the webhook settings contain the certificate folder and the clients that the flags name', () => {
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

describe('a missing or invalid setting is rejected with an error that names it', () => {
  test('the message about an invalid setting does not contain a password', () => {
    const broken = { ...ENVIRONMENT, VC_HOST: 'admin:s3cret@vc' };
    expect(() => settingsFrom([], broken)).toThrow(
      'VC_HOST contains a user or a password; set VC_USER and VC_PASS instead',
    );
  });

  test.each([
    [
      ['--controllers=vm'],
      { CLOUD_API_KEY: 'k' },
      'CLOUD_URL is not set; set it to the URL of the private cloud, such as https://cloud.example:8480',
    ],
    [
      [],
      { ...ENVIRONMENT, CLOUD_URL: 'cloud' },
      'CLOUD_URL is "cloud"; it must be a URL that begins with http:// or https://',
    ],
    [
      [],
      { CLOUD_URL: 'https://c' },
      'CLOUD_API_KEY is not set; set it to the API key of the private cloud, from a Secret',
    ],
    [
      ['--controllers=*,vmgroup'],
      { ...ENVIRONMENT, VC_HOST: undefined },
      'VC_HOST is not set; set it to the name or address of vCenter, such as vcenter.example.com, or disable VmGroups with --controllers=-vmgroup',
    ],
    [
      [],
      { ...ENVIRONMENT, VC_PASS: '' },
      'VC_PASS is not set; set it to the password of VC_USER, from a Secret',
    ],
    [
      ['--controllers=vm,pod'],
      ENVIRONMENT,
      '--controllers contains the unknown controller "pod"; use a comma-separated list of these names: vm, vmgroup, kubevirt, gpuinfo, or * for all',
    ],
    [['-insecure=maybe'], ENVIRONMENT, '--insecure is "maybe"; it must be true or false'],
    [
      ['--vm-refresh=often'],
      ENVIRONMENT,
      '--vm-refresh is "often"; it must be a time of at least 500ms, such as 500ms, 15s or 2m',
    ],
    [
      ['--vm-refresh=0s'],
      ENVIRONMENT,
      '--vm-refresh is "0s"; it must be a time of at least 500ms, such as 500ms, 15s or 2m',
    ],
    [
      ['--vm-concurrency=0'],
      ENVIRONMENT,
      '--vm-concurrency is "0"; it must be a whole number from 1 to 1000',
    ],
    [['--leader-elect=maybe'], ENVIRONMENT, '--leader-elect is "maybe"; it must be true or false'],
    [
      ['--status-address=here'],
      ENVIRONMENT,
      '--status-address is "here"; it must be a port such as :8080, or an address with a port',
    ],
    [['--metrics-auth=maybe'], ENVIRONMENT, '--metrics-auth is "maybe"; it must be token or off'],
    [
      ['--metrics-bind-address=here'],
      ENVIRONMENT,
      '--metrics-bind-address is "here"; it must be a port such as :8080, or an address with a port',
    ],
    [
      ['--webhook-client-name=a'],
      ENVIRONMENT,
      '--webhook-client-name needs --webhook-client-ca, the file with the CAs of the client certificates',
    ],
    [['--log-level=loud'], ENVIRONMENT, '--log-level is "loud"; it must be one of debug, info, warn, error'],
    [
      ['--vm-refresh=1ms'],
      ENVIRONMENT,
      '--vm-refresh is "1ms"; it must be a time of at least 500ms, such as 500ms, 15s or 2m',
    ],
    [
      ['--cluster-id=a b'],
      ENVIRONMENT,
      '--cluster-id is "a b"; it must be 1 to 63 letters, digits, "-", "_" and ".", and unique to each cluster',
    ],
    [
      ['--leader-elect-lease-duration=1500ms'],
      ENVIRONMENT,
      '--leader-elect-lease-duration is "1500ms"; it must be whole seconds',
    ],
    [
      ['--leader-elect-renew-deadline=15s'],
      ENVIRONMENT,
      '--leader-elect-renew-deadline is "15s"; it must be less than --leader-elect-lease-duration, which is 15s',
    ],
    [
      ['--leader-elect-retry-period=6s'],
      ENVIRONMENT,
      '--leader-elect-retry-period is "6s"; it must be at most half of --leader-elect-renew-deadline, which is 10s',
    ],
    [
      ['--webhook-url=http://x'],
      ENVIRONMENT,
      '--webhook-url is "http://x"; the API server requires https://',
    ],
    [
      [],
      { ...ENVIRONMENT, CLOUD_API_KEY: 'a b' },
      'CLOUD_API_KEY contains characters that a key cannot have; use printable ASCII characters without spaces',
    ],
    [
      [],
      { ...ENVIRONMENT, CLOUD_URL: 'https://user:secret@cloud' },
      'CLOUD_URL must not contain a user or a password',
    ],
    [['--vm-refreshes=1s'], ENVIRONMENT, 'unknown option --vm-refreshes (did you mean "--vm-refresh"?)'],
    [['--log-format=xml'], ENVIRONMENT, '--log-format is "xml"; it must be json or text'],
  ] as const)('the flags %j with the environment %j are rejected', (args, environment, message) => {
    expect(() => settingsFrom(args, environment)).toThrow(message);
  });

  test('an empty --cluster-id counts as unset, so that clusters do not share the empty id', () => {
    expect(settingsFrom(['--cluster-id='], ENVIRONMENT).cluster).toBeUndefined();
  });

  test('the message about a missing CLOUD_URL does not contain the API key', () => {
    expect(() => settingsFrom(['--controllers=vm'], { CLOUD_API_KEY: 'secret-key' })).toThrow(
      /^((?!secret-key).)*$/,
    );
  });
});

test('durations are parsed in the format of Go', () => {
  expect(['500ms', '15s', '2m', '1h30m', '1.5s'].map(parseDuration)).toEqual([
    500, 15_000, 120_000, 5_400_000, 1_500,
  ]);
  expect(['', '15', 's', '-1s', '1s ', 'NaNs'].map(parseDuration)).toEqual(Array(6).fill(undefined));
});
