import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { headerIn, ResponseParser } from './response-parser.ts';

interface Read {
  status: number;
  type: string | undefined;
  body: string;
  reusable: boolean | undefined;
}

/** What a reader is told of these pieces. */
function read(pieces: readonly Buffer[], closed = false): Read[] {
  const all: Read[] = [];
  const parser = new ResponseParser({
    onHead: (status, head) =>
      all.push({ status, type: headerIn(head, 'content-type'), body: '', reusable: undefined }),
    onBody: (bytes) => {
      const last = all.at(-1);
      if (last !== undefined) last.body += bytes.toString('latin1');
    },
    onEnd: (reusable) => {
      const last = all.at(-1);
      if (last !== undefined) last.reusable = reusable;
    },
  });
  // In memory that is used again, as a socket's is.
  const memory = Buffer.alloc(1 << 16);
  for (const piece of pieces) {
    piece.copy(memory);
    parser.read(memory.subarray(0, piece.length));
    memory.fill(0);
  }
  if (closed) parser.close();
  return all;
}

function cut(whole: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set([0, ...at.map((place) => place % (whole.length + 1)), whole.length])].sort(
    (a, b) => a - b,
  );
  return places.slice(1).map((end, i) => whole.subarray(places[i], end));
}

const body = fc.string({ unit: 'binary-ascii', maxLength: 200 });

/** A response as a server may write it, and what it says. */
const response = fc.oneof(
  fc.tuple(body, fc.boolean()).map(([text, close]) => ({
    wire: `HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n${close ? 'Connection: close\r\n' : ''}Content-Length: ${text.length}\r\n\r\n${text}`,
    says: { status: 200, type: 'a/b', body: text, reusable: !close },
  })),
  fc
    .array(
      body.filter((part) => part !== ''),
      { maxLength: 4 },
    )
    .map((parts) => ({
      wire: `HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n${parts
        .map((part) => `${part.length.toString(16)};x=y\r\n${part}\r\n`)
        .join('')}0\r\nTrailer: t\r\n\r\n`,
      says: { status: 201, type: undefined, body: parts.join(''), reusable: true },
    })),
  fc.constant({
    wire: 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n',
    says: { status: 204, type: undefined, body: '', reusable: true },
  }),
);

describe('responses', () => {
  test('are read the same however they are cut, one after another', () => {
    fc.assert(
      fc.property(fc.array(response, { minLength: 1, maxLength: 4 }), fc.array(fc.nat()), (all, at) => {
        const wire = Buffer.from(all.map((each) => each.wire).join(''), 'latin1');
        expect(read(cut(wire, at))).toEqual(all.map(({ says }) => says));
      }),
      { numRuns: 1_000 },
    );
  });

  test('without a length last until the connection is closed', () => {
    const [only] = read([Buffer.from('HTTP/1.0 200 OK\r\n\r\nall '), Buffer.from('of it')], true);
    expect(only).toEqual({ status: 200, type: undefined, body: 'all of it', reusable: false });
  });

  test('that break off are not taken for whole', () => {
    expect(read([Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf')], true)[0]?.reusable).toBe(
      undefined,
    );
  });

  test.each([
    'SSH-2.0-OpenSSH_9.6\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n',
  ])('that are none are refused: %j', (wire) => {
    expect(() => read([Buffer.from(wire)])).toThrow(/answer/);
  });

  test('of any bytes end in an answer or an error, never in a loop', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.array(fc.nat()), (bytes, at) => {
        try {
          read(cut(Buffer.from(bytes), at), true);
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
        }
      }),
    );
  });
});

test('a header is found whatever its letters, and only as a whole', () => {
  const head = 'HTTP/1.1 200 OK\r\nX-Retry-After: 9\r\nRETRY-after:  3 \r\nRetry-After: 4';
  expect(headerIn(head, 'retry-after')).toBe('3');
  expect(headerIn(head, 'after')).toBeUndefined();
});
