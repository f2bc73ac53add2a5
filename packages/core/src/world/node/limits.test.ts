import { createServer, type RequestListener } from 'node:http';
import { createSecureServer } from 'node:http2';
import { CertificateAuthority } from '@vmwright/runtime/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listen, writeEndlessly } from '../../testing/servers.ts';
import { ResponseTooLargeError } from '../response-too-large.ts';
import type { Transport } from '../world.ts';
import { ByteList } from './byte-list.ts';
import { connect } from './transport.ts';

const MIB = 1 << 20;
/**
 * Bytes that a server may send beyond the limit, because they are buffered on both ends when the connection is closed.
 */
const IN_FLIGHT = 16 * MIB;

async function start(respond: RequestListener): Promise<Transport> {
  const port = await listen(createServer(respond), onTestFinished);
  const transport = connect({ origin: `http://127.0.0.1:${port}` });
  onTestFinished(() => transport.close());
  return transport;
}

const tooLarge = async (result: Promise<unknown>) => {
  const error: unknown = await result.catch((caught) => caught);
  expect(error).toBeInstanceOf(ResponseTooLargeError);
  return String(error);
};

describe('endless responses', () => {
  test.each([
    ['limit of the request', 200, 3 * MIB, 3],
    ['default limit', 200, undefined, 64],
    ['limit for error responses', 500, 64 * MIB, 1],
    ['limit below 1 MiB', 200, MIB / 2, 0.5],
  ])('an endless response is cut off at the %s', async (_, status, maxBytes, mib) => {
    const sent = Promise.withResolvers<number>();
    const transport = await start((_request, response) => {
      response.writeHead(status);
      writeEndlessly(response, Buffer.alloc(1 << 16, 'x')).then(sent.resolve);
    });
    const response = await transport.request({ method: 'GET', path: '/', headers: {}, maxBytes });
    const limit = mib < 1 ? '512 KiB' : `${mib} MiB`;
    expect(await tooLarge(response.text())).toBe(
      `ResponseTooLargeError: the response is larger than the limit of ${limit}`,
    );
    expect(await sent.promise).toBeLessThan(mib * MIB + IN_FLIGHT);
  });
});

describe('lines', () => {
  test('a response may have any number of lines, each within the limit', async () => {
    const transport = await start((_, response) => response.end(`${'x'.repeat(1_000)}\n`.repeat(5_000)));
    const response = await transport.request({ method: 'GET', path: '/', headers: {}, maxBytes: 1_000 });
    let count = 0;
    for await (const line of response.lines()) count += line.length === 1_000 ? 1 : 0;
    expect(count).toBe(5_000);
  });

  test.each([
    ['that never ends', 'x'],
    ['one byte over the limit', `${'x'.repeat(1_001)}\n`],
  ])('a response with a line %s fails', async (_, piece) => {
    const sent = Promise.withResolvers<number>();
    const transport = await start((_request, response) => {
      response.write('fine\n');
      writeEndlessly(response, Buffer.from(piece.repeat(1_000))).then(sent.resolve);
    });
    const watch = await transport.request({
      method: 'GET',
      path: '/',
      headers: {},
      maxBytes: 1_000,
      lasting: true,
    });
    const lines = watch.lines()[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe('fine');
    expect(await tooLarge(lines.next())).toContain(
      'a line of the response is larger than the limit of 1000 bytes',
    );
    expect(await sent.promise).toBeLessThan(IN_FLIGHT);
  });

  test('if an HTTP/2 watch receives a line that is too long, only this watch fails, and other watches continue', async () => {
    const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 60_000) };
    const ca = CertificateAuthority.create({ commonName: 'test' }, validity);
    const names = ['127.0.0.1'];
    const { certificate, key } = ca.issue({
      subject: { commonName: 'server' },
      usage: ['server'],
      names,
      ...validity,
    });
    const closed = Promise.withResolvers<unknown>();
    const server = createSecureServer({ cert: certificate, key });
    server.on('stream', (stream, headers) => {
      stream.on('error', () => undefined);
      stream.respond({ ':status': 200 });
      if (headers[':path'] === '/healthy') return void stream.write('first\n');
      writeEndlessly(stream, Buffer.alloc(1 << 16, 'x')).then(closed.resolve);
    });
    const transport = connect({
      origin: `https://127.0.0.1:${await listen(server, onTestFinished)}`,
      tls: async () => ({ ca: ca.certificate }),
    });
    onTestFinished(() => transport.close());
    const watch = async (path: string) => {
      const request = { method: 'GET', path, headers: {}, maxBytes: 2 * MIB, lasting: true } as const;
      return (await transport.request(request)).lines()[Symbol.asyncIterator]();
    };
    const healthy = await watch('/healthy');
    await tooLarge((await watch('/endless')).next());
    await closed.promise;
    expect((await healthy.next()).value).toBe('first');
  });
});

test('a million one-byte chunks are joined into fewer than 2,048 chunks', () => {
  const list = new ByteList();
  const byte = Buffer.from('x');
  for (let i = 0; i < 1_000_000; i++) list.push(byte);
  expect(list.size).toBe(1_000_000);
  expect(list.take().length).toBeLessThan(2_048);
  expect(list.takeText()).toBe('');
});
