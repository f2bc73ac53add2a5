import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { temporaryFolder } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { executeQmp } from './qmp.ts';

test('a command that is aborted while connecting rejects without an unhandled error', async () => {
  const path = join(await temporaryFolder('monitor'), 'socket');
  const monitor = createServer().listen(path);
  await once(monitor, 'listening');
  const controller = new AbortController();
  const result = executeQmp(path, 'query-status', controller.signal);
  // Destroys the socket with an error. If the error were unhandled, it would end the process and fail the test run.
  controller.abort();
  await expect(result).rejects.toThrow();
  await once(monitor.close(), 'close');
});
