import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryFolder } from '@vmwright/testbed';
import { describe, expect, test } from 'vitest';
import { StartError } from '../errors.ts';
import { HELP, settingsFrom } from './command-line.ts';

async function fileWith(config: unknown): Promise<string> {
  const file = join(await temporaryFolder('settings'), 'cloud.json');
  writeFileSync(file, typeof config === 'string' ? config : JSON.stringify(config));
  return file;
}

describe('the command line', () => {
  test('has a default for everything', () => {
    expect(settingsFrom(['serve'], { CLOUD_API_KEYS: 'k' })).toMatchObject({
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

  test('sets each of them', () => {
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
      settingsFrom(['serve', ...all, '--log-level=debug', '--keys', 'f', '--data', '/d/x'], {}),
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
    [[], 'say what to do; see vmwright-cloud --help'],
    [['run'], '"run" is nothing to do; see vmwright-cloud --help'],
    [['serve', 'me'], '"serve me" is nothing to do; see vmwright-cloud --help'],
    [['serve', '--prot', '1'], "Unknown option '--prot'; see vmwright-cloud --help"],
    [['serve', '--data'], "Option '--data <value>' argument missing; see vmwright-cloud --help"],
    [['serve', '--data='], '--data is a file, which outlives the process, not ""; see vmwright-cloud --help'],
    [
      ['serve', '--data', ':memory:'],
      '--data is a file, which outlives the process, not ":memory:"; see vmwright-cloud --help',
    ],
    [['serve', '--listen', '8480'], '--listen is host:port, not "8480"; see vmwright-cloud --help'],
    [['serve', '--listen', 'a:65536'], '--listen is host:port, not "a:65536"; see vmwright-cloud --help'],
    [['serve', '--driver', 'xen'], '--driver is simulated or qemu, not "xen"; see vmwright-cloud --help'],
    [
      ['serve', '--log-level', 'loud'],
      '--log-level is one of debug, info, warn, error, not "loud"; see vmwright-cloud --help',
    ],
    [['serve', '--tls-cert', 'c'], '--tls-cert and --tls-key go together; see vmwright-cloud --help'],
  ] as const)('%j is refused: %s', ([args, sentence]) => {
    expect(() => settingsFrom(args, {})).toThrow(new StartError('SETTINGS', sentence));
  });

  test('tells of every option it has', () => {
    expect(settingsFrom(['--help'], {})).toBeUndefined();
    const told = [...HELP.matchAll(/^ {2}--([a-z-]+)/gm)].map(([, name]) => name);
    expect(told).toEqual([
      ...['listen', 'data', 'keys', 'prohibited', 'driver', 'config', 'tls-cert', 'tls-key', 'log-level'],
      ...['enable-faults', 'help'],
    ]);
  });
});

describe('the config file', () => {
  test('sets what it names, and its paths are seen from its folder', async () => {
    const file = await fileWith({
      keepKeysMs: 1_000,
      simulated: { seed: 7, bootMs: { min: 1, max: 2 }, cpu: { min: 50 } },
      qemu: { binary: 'bin/qemu', image: 'disk.img', dir: '/m', cpus: 2, args: ['-L', 'x'] },
    });
    const folder = dirname(file);
    expect(settingsFrom(['serve', '--config', file], {})).toMatchObject({
      keepKeysMs: 1_000,
      simulated: { seed: 7, bootMs: { min: 1, max: 2 }, cpu: { min: 50, max: 80 }, failureProbability: 0 },
      qemu: {
        binary: join(folder, 'bin/qemu'),
        image: join(folder, 'disk.img'),
        dir: '/m',
        cpus: 2,
        args: ['-L', 'x'],
      },
    });
  });

  test.for([
    [[], ' is not an object'],
    ['{', 'the config cannot be read: '],
    [
      { keepKeys: 1 },
      ': "keepKeys" means nothing here; there are: keepKeysMs, observeEveryMs, graceMs, simulated, qemu',
    ],
    [{ keepKeysMs: '7d' }, ': "keepKeysMs" is a number from 0 on, not "7d"'],
    [{ simulated: 5 }, ': simulated is not an object'],
    [
      { simulated: { failureProbability: 2 } },
      ': simulated: "failureProbability" is a number from 0 to 1, not 2',
    ],
    [{ simulated: { seed: 1.5 } }, ': simulated: "seed" is a whole number, not 1.5'],
    [{ simulated: { bootMs: { min: 5, max: 1 } } }, ': simulated: bootMs: min is above max'],
    [{ simulated: { cpu: { min: -1 } } }, ': simulated: cpu: "min" is a number from 0 to 100, not -1'],
    [{ qemu: { accel: 'hax' } }, ': qemu: "accel" is one of auto, kvm, tcg, not "hax"'],
    [{ qemu: { args: 'x' } }, ': qemu: "args" is a list of texts, not "x"'],
    [{ qemu: { binary: '' } }, ': qemu: "binary" is a text, not ""'],
  ] as const)('%j is refused: %s', async ([config, sentence]) => {
    const file = await fileWith(config);
    expect(() => settingsFrom(['serve', '--config', file], {})).toThrow(sentence);
  });

  test('that is not there is told', () => {
    expect(() => settingsFrom(['serve', '--config', '/nowhere'], {})).toThrow(
      "the config cannot be read: ENOENT: no such file or directory, open '/nowhere'",
    );
  });
});
