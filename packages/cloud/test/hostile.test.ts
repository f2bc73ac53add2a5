import { once } from 'node:events';
import { createServer } from 'node:http';
import { nodeWorld } from '@vmwright/core';
import { expect, onTestFinished, test } from 'vitest';
import { CloudClient } from '../src/client/client.ts';
import { UnexpectedAnswerError } from '../src/client/errors.ts';

const MIB = 1 << 20;

/** Starts a server that responds to every request with an endless body. */
async function startEndless(status: number) {
  let requests = 0;
  let written = 0;
  const chunk = Buffer.alloc(1 << 16, 'x');
  const server = createServer((_, response) => {
    requests += 1;
    response.writeHead(status, { 'content-type': 'application/json' });
    const writeMore = () => {
      do written += chunk.length;
      while (!response.destroyed && response.write(chunk));
    };
    response.on('drain', writeMore);
    writeMore();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const url = `http://127.0.0.1:${address.port}`;
  const client = new CloudClient({ world: nodeWorld, url, apiKey: 'key' });
  onTestFinished(() => client.close());
  return { client, requests: () => requests, written: () => written };
}

test.each([
  ['one server', 200, (client: CloudClient) => client.get('id'), 1],
  ['a new server', 201, (client: CloudClient) => client.create({ name: 'a', labels: {} }, 'key'), 1],
  ['a page of servers', 200, (client: CloudClient) => client.list().next(), 32],
  ['an error', 503, (client: CloudClient) => client.get('id'), 1],
] as const)(
  'an endless response for %s is cut off at the size limit and not retried',
  async (_, status, call, mib) => {
    const { client, requests, written } = await startEndless(status);
    const error: unknown = await call(client).catch((caught) => caught);
    expect(error).toBeInstanceOf(UnexpectedAnswerError);
    expect(String(error)).toContain(`the response is larger than the limit of ${mib} MiB`);
    expect(requests()).toBe(1);
    // The server wrote at most the bytes that the client read, plus the socket buffers of both ends.
    expect(written()).toBeLessThan((mib + 16) * MIB);
  },
);
