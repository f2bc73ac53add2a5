import { join } from 'node:path';
import { collectingLogger, nodeWorld, Registry } from '@vmwright/runtime';
import { expect, test } from 'vitest';
import { connectCloud } from './cloud.ts';
import type { CloudSettings } from './settings/cloud.ts';

const settings: CloudSettings = {
  url: 'http://127.0.0.1:1',
  apiKey: { file: join(import.meta.dirname, 'missing') },
  ca: undefined,
  timeoutMs: 1_000,
  refreshMs: 1_000,
  unknownAfterMs: 1_000,
  sweepMs: 1_000,
  concurrency: 1,
};

test('if the API key cannot be read, the operator starts, but other commands fail', async () => {
  const { logger, lines } = collectingLogger();
  await using client = await connectCloud(nodeWorld, settings, new Registry(), { log: logger });
  expect(lines).toMatchObject([
    { level: 'error', msg: 'Cloud cannot be used', error: expect.stringContaining('cannot be read') },
  ]);
  await expect(client.check('web')).rejects.toThrow('cannot be read');
  await expect(connectCloud(nodeWorld, settings, new Registry())).rejects.toThrow('cannot be read');
});
