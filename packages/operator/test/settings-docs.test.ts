import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadSettings } from '../src/settings/settings.ts';
import { page } from './doc-commands.ts';

test('the config file in configuration.md is accepted', async () => {
  const [, yaml = ''] = /```yaml\n(.*?)```/s.exec(page('configuration.md')) ?? [];
  const config = join(mkdtempSync(join(tmpdir(), 'config-')), 'config.yaml');
  writeFileSync(config, yaml);
  expect(await loadSettings({ config }, {})).toMatchObject({
    namespaces: ['team-a', 'team-b'],
    cloud: {
      url: 'https://cloud.example:8480',
      apiKey: { file: '/etc/vmwright/cloud/key' },
      refreshMs: 30_000,
    },
    vsphere: { vcenter: { server: 'vcenter.example.com', credentials: { folder: '/etc/vmwright/vcenter' } } },
    kubevirt: undefined,
  });
});

test('the error about a missing or invalid config file does not quote its content', async () => {
  await expect(loadSettings({ config: '/nowhere.yaml' }, {})).rejects.toThrow(
    'the config file /nowhere.yaml cannot be read; check --config',
  );
  const config = join(mkdtempSync(join(tmpdir(), 'config-')), 'config.yaml');
  writeFileSync(config, 'a: [s3cret');
  await expect(loadSettings({}, { VMWRIGHT_CONFIG: config })).rejects.toThrow(
    /^the config file .* is not valid YAML$/,
  );
});
