import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../testing/servers.ts';
import type { Transport } from '../world.ts';
import { connect } from './transport.ts';

/*
 * Raw responses, most of them malformed. An HTTP client has to reject them, or to parse them as the RFC says. In both
 * cases, the next requests must get their own responses. If the client took the rest of one response for the next
 * response, a controller would get the state of another object.
 */

/** Expected result of the request: an error, a timeout, or a parsed response. */
type Outcome = 'error' | 'timeout' | { readonly status: number; readonly body: string };

interface Case {
  readonly wire: string;
  readonly outcome: Outcome;
  /** Whether the server closes the connection after the response. @default false */
  readonly closes?: boolean;
}

const OK = { status: 200, body: 'ok' } as const;
const SPOOFED = 'HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nspoofed';
const head = (...lines: string[]) => `${['HTTP/1.1 200 OK', ...lines].join('\r\n')}\r\n\r\n`;
const chunked = (wire: string) => `${head('transfer-encoding: chunked')}${wire}`;

const CASES: Readonly<Record<string, Case>> = {
  'a valid response': { wire: `${head('content-length: 2')}ok`, outcome: OK },
  'a second response after the body': { wire: `${head('content-length: 2')}ok${SPOOFED}`, outcome: OK },
  'half a response after the body, which would turn the next 404 into a 200': {
    wire: `${head('content-length: 2')}okHTTP/1.1 200 OK\r\nx-swallowed: `,
    outcome: OK,
  },
  'a second response after chunks': { wire: `${chunked('2\r\nok\r\n0\r\n\r\n')}${SPOOFED}`, outcome: OK },
  'garbage after the body': { wire: `${head('content-length: 2')}ok\0\xff garbage`, outcome: OK },
  'a chunk size of 0x2': { wire: chunked('0x2\r\nok\r\n0\r\n\r\n'), outcome: 'error' },
  'a chunk size of +2': { wire: chunked('+2\r\nok\r\n0\r\n\r\n'), outcome: 'error' },
  'a negative chunk size': { wire: chunked('-2\r\nok\r\n0\r\n\r\n'), outcome: 'error' },
  'a chunk size with a space before it': { wire: chunked(' 2\r\nok\r\n0\r\n\r\n'), outcome: 'error' },
  'a chunk size of 72 bits': { wire: chunked('ffffffffffffffffff\r\nok\r\n0\r\n\r\n'), outcome: 'error' },
  'no chunk size': { wire: chunked('\r\nok\r\n0\r\n\r\n'), outcome: 'error' },
  'a chunk that is longer than its size': { wire: chunked('2\r\nokok\r\n0\r\n\r\n'), outcome: 'error' },
  'a chunk that ends with LF': { wire: chunked('2\r\nok\n0\r\n\r\n'), outcome: 'error' },
  'a chunk extension': { wire: chunked('2;a=b\r\nok\r\n0\r\n\r\n'), outcome: OK },
  trailers: { wire: chunked('2\r\nok\r\n0\r\nx-checksum: 1\r\n\r\n'), outcome: OK },
  'truncated chunks': { wire: chunked('2\r\nok\r\n'), outcome: 'error', closes: true },
  'chunks without the last chunk': { wire: chunked('2\r\nok\r\n'), outcome: 'timeout' },
  'the same Content-Length twice': {
    wire: `${head('content-length: 2', 'content-length: 2')}ok`,
    outcome: 'error',
  },
  'two different Content-Lengths': {
    wire: `${head('content-length: 2', 'content-length: 3')}ok!`,
    outcome: 'error',
  },
  'a list of Content-Lengths': { wire: `${head('content-length: 2, 2')}ok`, outcome: 'error' },
  'a negative Content-Length': { wire: `${head('content-length: -2')}ok`, outcome: 'error' },
  'a Content-Length of +2': { wire: `${head('content-length: +2')}ok`, outcome: 'error' },
  'a Content-Length of 0x2': { wire: `${head('content-length: 0x2')}ok`, outcome: 'error' },
  'a Content-Length of 80 bits': {
    wire: `${head('content-length: 999999999999999999999999')}ok`,
    outcome: 'error',
  },
  'an empty Content-Length': { wire: `${head('content-length:')}ok`, outcome: 'error' },
  'Content-Length with Transfer-Encoding': {
    wire: `${head('content-length: 2', 'transfer-encoding: chunked')}2\r\nok\r\n0\r\n\r\n`,
    outcome: 'error',
  },
  'Transfer-Encoding: gzip, chunked': {
    wire: `${head('transfer-encoding: gzip, chunked')}2\r\nok\r\n0\r\n\r\n`,
    outcome: 'error',
  },
  'Transfer-Encoding: chunked, gzip': {
    wire: `${head('transfer-encoding: chunked, gzip')}2\r\nok\r\n0\r\n\r\n`,
    outcome: 'error',
  },
  'a folded header': { wire: `${head('x-a: b', ' c', 'content-length: 2')}ok`, outcome: 'error' },
  'NUL in a header': { wire: `${head('x-a: b\0c', 'content-length: 2')}ok`, outcome: 'error' },
  'a bare CR in a header': { wire: `${head('x-a: b\rc', 'content-length: 2')}ok`, outcome: 'error' },
  'lines that end with LF': { wire: 'HTTP/1.1 200 OK\ncontent-length: 2\n\nok', outcome: 'error' },
  'a space before the colon': { wire: `${head('content-length : 2')}ok`, outcome: 'error' },
  'a header without a colon': { wire: `${head('content-length 2')}ok`, outcome: 'error' },
  'a header without a name': { wire: `${head(': x', 'content-length: 2')}ok`, outcome: 'error' },
  'headers of 1 MB': {
    wire: `${head(...Array.from({ length: 10_000 }, (_, i) => `x-${i}: ${'y'.repeat(90)}`))}`,
    outcome: 'error',
  },
  'a header line without an end': { wire: `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(1 << 20)}`, outcome: 'error' },
  'half a head': { wire: 'HTTP/1.1 200 OK\r\ncontent-le', outcome: 'timeout' },
  'half a head, then close': { wire: 'HTTP/1.1 200 OK\r\ncontent-le', outcome: 'error', closes: true },
  'Connection: x, close': { wire: `${head('connection: x, close', 'content-length: 2')}ok`, outcome: OK },
  'Connection: close followed by another response': {
    wire: `${head('connection: close', 'content-length: 2')}ok${SPOOFED}`,
    outcome: OK,
  },
  'a truncated body': { wire: `${head('content-length: 10')}half`, outcome: 'error', closes: true },
  'an incomplete body on an open connection': {
    wire: `${head('content-length: 10')}half`,
    outcome: 'timeout',
  },
  'a body delimited by the end of the connection': { wire: `${head()}ok`, outcome: OK, closes: true },
  'an HTTP/1.0 response': {
    wire: 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok',
    outcome: OK,
  },
  'early hints before the response': {
    wire: `HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n${head('content-length: 2')}ok`,
    outcome: OK,
  },
  'an unexpected 100 Continue': {
    wire: `HTTP/1.1 100 Continue\r\n\r\n${head('content-length: 2')}ok`,
    outcome: 'error',
  },
  'an unexpected protocol upgrade': {
    wire: 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nok',
    outcome: 'error',
  },
  'a 204 with a body': {
    wire: `HTTP/1.1 204 No Content\r\ncontent-length: ${SPOOFED.length}\r\n\r\n${SPOOFED}`,
    outcome: { status: 204, body: '' },
  },
  'a 304 with a body': {
    wire: `HTTP/1.1 304 Not Modified\r\ncontent-length: ${SPOOFED.length}\r\n\r\n${SPOOFED}`,
    outcome: { status: 304, body: '' },
  },
  'a status that is not a number': {
    wire: 'HTTP/1.1 abc OK\r\ncontent-length: 2\r\n\r\nok',
    outcome: 'error',
  },
  'a status of two digits': { wire: 'HTTP/1.1 20 OK\r\ncontent-length: 2\r\n\r\nok', outcome: 'error' },
  'HTTP/3.7': { wire: 'HTTP/3.7 200 OK\r\ncontent-length: 2\r\n\r\nok', outcome: 'error' },
  'an SSH banner': { wire: 'SSH-2.0-OpenSSH_9.9\r\n', outcome: 'error' },
  'the first bytes of TLS': { wire: '\x15\x03\x01\0\x02\x02\x46', outcome: 'error' },
  'an immediate close': { wire: '', outcome: 'error', closes: true },
  'no response': { wire: '', outcome: 'timeout' },
};

/** Starts a server that answers `/case` with the raw bytes and any other path with a valid 404 that echoes the path. */
async function start({ wire, closes = false }: Case): Promise<Transport> {
  const server = createServer((socket) => {
    let received = '';
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      for (let end = received.indexOf('\r\n\r\n'); end !== -1; end = received.indexOf('\r\n\r\n')) {
        const [, path = ''] = received.slice(0, end).split(' ', 2);
        received = received.slice(end + 4);
        if (path === '/case') {
          socket.write(wire, 'latin1');
          if (closes) socket.end();
        } else
          socket.write(`HTTP/1.1 404 Not Found\r\ncontent-length: ${path.length}\r\n\r\n${path}`, 'latin1');
      }
    });
    onTestFinished(() => void socket.destroy());
  });
  const transport = connect({ origin: `http://127.0.0.1:${await listen(server, onTestFinished)}` });
  onTestFinished(() => transport.close());
  return transport;
}

class TestTimeoutError extends Error {}

async function get(transport: Transport, path: string, lasting: boolean, signal?: AbortSignal) {
  const response = await transport.request({ method: 'GET', path, headers: {}, lasting, signal });
  return { status: response.status, body: await response.text() };
}

async function outcomeOf(transport: Transport, lasting: boolean, expectsTimeout: boolean): Promise<Outcome> {
  const timeout = new AbortController();
  // The timeout is short in cases that expect a timeout. The other cases end long before their timeout.
  const timer = setTimeout(() => timeout.abort(new TestTimeoutError()), expectsTimeout ? 100 : 60_000);
  try {
    return await get(transport, '/case', lasting, timeout.signal);
  } catch (error) {
    return error instanceof TestTimeoutError ? 'timeout' : 'error';
  } finally {
    clearTimeout(timer);
  }
}

test.for(
  Object.entries(CASES).flatMap(([name, each]) => [
    [name, each, false] as const,
    [`${name}, in response to a watch`, each, true] as const,
  ]),
)('the next requests get their own responses after this raw response: %s', async ([, each, lasting]) => {
  const transport = await start(each);
  expect(await outcomeOf(transport, lasting, each.outcome === 'timeout')).toEqual(each.outcome);
  for (const path of ['/next', '/one-more'])
    expect(await get(transport, path, lasting)).toEqual({ status: 404, body: path });
  const together = Array.from({ length: 10 }, (_, i) => `/${i}`);
  expect(await Promise.all(together.map((path) => get(transport, path, lasting)))).toEqual(
    together.map((body) => ({ status: 404, body })),
  );
});
