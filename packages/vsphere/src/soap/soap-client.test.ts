import { once } from 'node:events';
import { createServer } from 'node:http';
import { nodeWorld } from '@vmwright/core';
import { expect, onTestFinished, test } from 'vitest';
import { InvalidResponseError } from '../errors.ts';
import { SoapClient } from './soap-client.ts';

const MIB = 1 << 20;

test.each([
  ['CurrentTime', { type: 'ServiceInstance', value: 'ServiceInstance' }, 16, false],
  ['CurrentTime', { type: 'ServiceInstance', value: 'ServiceInstance' }, 16, true],
  ['ContinueRetrievePropertiesEx', { type: 'PropertyCollector', value: 'propertyCollector' }, 128, false],
] as const)('an endless response to %s is cut off at the size limit', async (method, self, mib, changes) => {
  let written = 0;
  const piece = Buffer.alloc(1 << 18, '<a>');
  const server = createServer((_, response) => {
    const more = () => {
      do written += piece.length;
      while (!response.destroyed && response.write(piece));
    };
    response.on('drain', more);
    more();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const transport = nodeWorld.connect({ origin: `http://127.0.0.1:${address.port}` });
  onTestFinished(() => transport.close());
  const soap = new SoapClient({ world: nodeWorld, transport, path: '/sdk', userAgent: 'test' });
  const args = method === 'CurrentTime' ? {} : { token: 'token' };
  const error: unknown = await soap
    .call({ method, self, args, changes, version: '8.0', timeoutMs: 60_000 })
    .catch((caught) => caught);
  expect(error).toBeInstanceOf(InvalidResponseError);
  expect(error).toMatchObject({ effectUnknown: changes, retryable: false });
  expect(String(error)).toContain(`the response is larger than the limit of ${mib} MiB`);
  expect(written).toBeLessThan((mib + 16) * MIB);
});
