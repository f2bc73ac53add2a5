import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryFolder } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import { StartError } from '../errors.ts';
import { HELP, parseSettings } from './command-line.ts';

async function fileWith(config: unknown): Promise<string> {
  const file = join(await temporaryFolder('settings'), 'cloud.json');
  writeFileSync(file, typeof config === 'string' ? config : JSON.stringify(config));
  return file;
}

describe('command line', () => {
  test('every setting has a default', () => {
    expect(parseSettings(['serve'], { CLOUD_API_KEYS: 'k' })).toMatchObject({
      listen: { host: '127.0.0.1', port: 8480 },
      data: 'vmwright-cloud.sqlite',
      keys: 'k',
      keysFile: undefined,
      prohibitedFile: undefined,
      driver: 'simulated',
      tls: undefined,
      logLevel: 'info',
      enableFaults: false,
      keepKeysMs: 7 * 86_400_000,
      simulated: { failureProbability: 0, bootMs: { min: 2_000, max: 5_000 } },
      qemu: { binary: expect.stringMatching(/^qemu-system-(x86_64|aarch64)$/), memoryMb: 512, accel: 'auto' },
    });
  });

  test('the command line sets every setting', () => {
    const all = [
      '--listen',
      '[::1]:0',
      '--tls-cert',
      'c',
      '--tls-key',
      'k',
      '--enable-faults',
      '--driver',
      'qemu',
    ];
    expect(
      parseSettings(['serve', ...all, '--log-level=debug', '--keys', 'f', '--data', '/d/x'], {}),
    ).toMatchObject({
      listen: { host: '::1', port: 0 },
      tls: { certificateFile: 'c', keyFile: 'k' },
      enableFaults: true,
      driver: 'qemu',
      logLevel: 'debug',
      keysFile: 'f',
      qemu: { dir: '/d/machines' },
    });
  });

  test.for([
    [[], 'missing command; see vmwright-cloud --help'],
    [['run'], 'unknown command "run"; see vmwright-cloud --help'],
    [['serve', 'me'], 'unknown command "serve me"; see vmwright-cloud --help'],
    [['serve', '--prot', '1'], "Unknown option '--prot'; see vmwright-cloud --help"],
    [['serve', '--data'], "Option '--data <value>' argument missing; see vmwright-cloud --help"],
    [['serve', '--data='], '--data must be a persistent file, not ""; see vmwright-cloud --help'],
    [
      ['serve', '--data', ':memory:'],
      '--data must be a persistent file, not ":memory:"; see vmwright-cloud --help',
    ],
    [['serve', '--listen', '8480'], '--listen must be host:port, not "8480"; see vmwright-cloud --help'],
    [
      ['serve', '--listen', 'a:65536'],
      '--listen must be host:port, not "a:65536"; see vmwright-cloud --help',
    ],
    [
      ['serve', '--driver', 'xen'],
      '--driver must be simulated or qemu, not "xen"; see vmwright-cloud --help',
    ],
    [
      ['serve', '--log-level', 'loud'],
      '--log-level must be one of debug, info, warn, error, not "loud"; see vmwright-cloud --help',
    ],
    [
      ['serve', '--tls-cert', 'c'],
      '--tls-cert and --tls-key must be set together; see vmwright-cloud --help',
    ],
  ] as const)('the command line %j is rejected: %s', ([args, message]) => {
    expect(() => parseSettings(args, {})).toThrow(new StartError('SETTINGS', message));
  });

  test('--help lists every option', () => {
    expect(parseSettings(['--help'], {})).toBeUndefined();
    const listed = [...HELP.matchAll(/^ {2}--([a-z-]+)/gm)].map(([, name]) => name);
    expect(listed).toEqual([
      ...['listen', 'data', 'keys', 'prohibited', 'driver', 'config', 'tls-cert', 'tls-key', 'log-level'],
      ...['enable-faults', 'help'],
    ]);
  });
});

describe('config file', () => {
  test('the config file overrides the defaults, and its paths are relative to its directory', async () => {
    const file = await fileWith({
      keepKeysMs: 1_000,
      simulated: { seed: 7, bootMs: { min: 1, max: 2 }, cpu: { min: 50 } },
      qemu: { binary: 'bin/qemu', image: 'disk.img', dir: '/m', cpus: 2, args: ['-L', 'x'] },
    });
    const dir = dirname(file);
    expect(parseSettings(['serve', '--config', file], {})).toMatchObject({
      keepKeysMs: 1_000,
      simulated: { seed: 7, bootMs: { min: 1, max: 2 }, cpu: { min: 50, max: 80 }, failureProbability: 0 },
      qemu: {
        binary: join(dir, 'bin/qemu'),
        image: join(dir, 'disk.img'),
        dir: '/m',
        cpus: 2,
        args: ['-L', 'x'],
      },
    });
  });

  test.for([
    [[], ' must be an object'],
    ['{', 'cannot read the config file: '],
    [
      { keepKeys: 1 },
      ': unknown field "keepKeys"; known fields: keepKeysMs, observeEveryMs, graceMs, simulated, qemu',
    ],
    [{ keepKeysMs: '7d' }, ': "keepKeysMs" must be a number of at least 0, not "7d"'],
    [{ simulated: 5 }, ': simulated must be an object'],
    [
      { simulated: { failureProbability: 2 } },
      ': simulated: "failureProbability" must be a number from 0 to 1, not 2',
    ],
    [{ simulated: { seed: 1.5 } }, ': simulated: "seed" must be an integer, not 1.5'],
    [{ simulated: { bootMs: { min: 5, max: 1 } } }, ': simulated: bootMs: min is greater than max'],
    [{ simulated: { cpu: { min: -1 } } }, ': simulated: cpu: "min" must be a number from 0 to 100, not -1'],
    [{ qemu: { accel: 'hax' } }, ': qemu: "accel" must be one of auto, kvm, tcg, not "hax"'],
    [{ qemu: { args: 'x' } }, ': qemu: "args" must be an array of strings, not "x"'],
    [{ qemu: { binary: '' } }, ': qemu: "binary" must be a non-empty string, not ""'],
  ] as const)('the config file %j is rejected: %s', async ([config, message]) => {
    const file = await fileWith(config);
    expect(() => parseSettings(['serve', '--config', file], {})).toThrow(message);
  });

  test('the config file is rejected if it does not exist', () => {
    expect(() => parseSettings(['serve', '--config', '/nowhere'], {})).toThrow(
      "cannot read the config file: ENOENT: no such file or directory, open '/nowhere'",
    );
  });
});
