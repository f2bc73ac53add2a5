import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { temporaryFolder } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { askMonitor } from './monitor.ts';

test('who gives up before it is connected ends nothing but the question', async () => {
  const path = join(await temporaryFolder('monitor'), 'socket');
  const monitor = createServer().listen(path);
  await once(monitor, 'listening');
  const given = new AbortController();
  const answer = askMonitor(path, 'query-status', given.signal);
  given.abort(); // an error that nobody listens for would end the process, and fails this run
  await expect(answer).rejects.toThrow();
  await once(monitor.close(), 'close');
});
