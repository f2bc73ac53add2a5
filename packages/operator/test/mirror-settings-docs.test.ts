import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { DEFAULT_MAPPING, type VmState } from '../src/mirror/mapping.ts';
import { type MirrorSettings, mirrorSettings } from '../src/mirror/settings.ts';
import { mirrorSettingRows } from '../src/mirror/settings-table.ts';
import { page, ROOT } from './doc-commands.ts';

const CONFIG: string = parse(readFileSync(`${ROOT}config/ssvirt/config-map.yaml`, 'utf8')).data[
  'config.yaml'
];
const SETTINGS = mirrorSettingRows().filter(({ variable }) => variable !== '');

/**
 * The ConfigMap's settings file with every commented-out setting enabled, except the URL, which would override other
 * settings.
 */
const FULL_CONFIG = CONFIG.replace(/^( +)# (\w+)(?=: )/gm, (line, indent: string, key: string) =>
  isSetting(key) ? `${indent}${key}` : line,
);

function isSetting(key: string): boolean {
  const keys = SETTINGS.map((setting) => setting.key.replace(/^\w+\./, ''));
  return key === 'statusMapping' || (key !== 'url' && keys.includes(key));
}

test('mirror.md documents the row status for every state of a VM', () => {
  const documented: Record<string, string> = {};
  for (const [, states = '', status = ''] of page('mirror.md').matchAll(
    /^\| (`[A-Z].*?) +\| `([A-Z_]+)` +\|$/gm,
  )) {
    const [names = ''] = states.split(': ');
    for (const [, state = ''] of names.matchAll(/`(\w+)`/g)) documented[state] = status;
  }
  expect(documented).toEqual({ ...DEFAULT_MAPPING } satisfies Record<VmState, string>);
});

test('the ConfigMap contains every setting, and its commented-out settings show the defaults', async () => {
  const { database, controller } = parse(FULL_CONFIG);
  const keys = SETTINGS.map(({ key }) => key).filter((key) => key !== 'database.url');
  expect(CONFIG).toContain('# url: postgres://');
  expect(
    [
      ...Object.keys(database).map((key) => `database.${key}`),
      ...Object.keys(controller).map((key) => `controller.${key}`),
    ].sort(),
  ).toEqual([...keys, 'controller.statusMapping'].filter((key) => !isOmitted(key)).sort());
  const [{ database: given, ...settings }, { database: full, ...fullSettings }] = [
    await settingsOf(CONFIG),
    await settingsOf(FULL_CONFIG),
  ];
  expect(fullSettings).toEqual(settings);
  expect(fullSettings).toEqual(withoutDatabase(mirrorSettings(undefined, { SSVIRT_DATABASE_USERNAME: 'u' })));
  expect({ ...full, password: 0, caFile: 0 }).toEqual({ ...given, password: 0, caFile: 0 });
});

/** Whether the ConfigMap omits a setting. It omits only the password, which is in a Secret. */
function isOmitted(key: string): boolean {
  return key === 'database.password';
}

function withoutDatabase({ database: _, ...settings }: MirrorSettings): Omit<MirrorSettings, 'database'> {
  return settings;
}

async function settingsOf(config: string): Promise<MirrorSettings> {
  const path = join(await temporaryFolder('mirror-config'), 'config.yaml');
  writeFileSync(path, config);
  return mirrorSettings(path, {});
}
