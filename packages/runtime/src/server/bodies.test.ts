import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Body, RequestBodies } from './bodies.ts';
import { RequestError } from './http-response.ts';

/** Returns a request to which a test writes chunks. */
function newRequest(declared?: number) {
  const stream = new PassThrough();
  const headers = declared === undefined ? {} : { 'content-length': String(declared) };
  return Object.assign(stream, { headers }) as unknown as IncomingMessage & PassThrough;
}

async function outcome(read: Promise<Body>): Promise<number | Body> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof RequestError) return error.status;
    throw error;
  }
}

/** Waits until the stream has delivered the written chunks. */
const delivered = () => new Promise<void>((resolve) => setImmediate(resolve));

test('a body counts towards the total limit until it is disposed', async () => {
  const bodies = new RequestBodies(100);
  const request = newRequest();
  const read = bodies.read(request, { maxBytes: 10 });
  request.write('grü');
  await delivered();
  expect(bodies.heldBytes).toBe(4);
  request.end('ß');
  {
    using body = await read;
    expect(body.text).toBe('grüß');
    expect(bodies.heldBytes).toBe(6);
  }
  expect(bodies.heldBytes).toBe(0);
});

describe('memory of a body', () => {
  test('a body releases its memory when its Content-Length or its content exceeds the limit', async () => {
    const bodies = new RequestBodies(100);
    expect(await outcome(bodies.read(newRequest(11), { maxBytes: 10 }))).toBe(413);
    const request = newRequest();
    const read = outcome(bodies.read(request, { maxBytes: 10 }));
    request.write('12345');
    request.write('67890a');
    expect(await read).toBe(413);
    expect(bodies.heldBytes).toBe(0);
  });

  test('a body releases its memory when the client disconnects or the signal aborts', async () => {
    const bodies = new RequestBodies(100);
    const [disconnected, aborted] = [newRequest(), newRequest()];
    const stop = new AbortController();
    const reads = [
      outcome(bodies.read(disconnected, { maxBytes: 10 })),
      outcome(bodies.read(aborted, { maxBytes: 10, signal: stop.signal })),
    ];
    disconnected.write('123');
    aborted.write('123');
    await delivered();
    expect(bodies.heldBytes).toBe(6);
    disconnected.destroy(new Error('ECONNRESET'));
    stop.abort(new RequestError(408, 'late'));
    expect(await Promise.all(reads)).toEqual([400, 408]);
    expect(bodies.heldBytes).toBe(0);
  });
});

test('at the total limit the largest incoming body is dropped and small ones succeed', async () => {
  const bodies = new RequestBodies(100);
  const large = Array.from({ length: 5 }, () => newRequest());
  const reads = large.map((request) => outcome(bodies.read(request, { maxBytes: 90 })));
  for (const [index, request] of large.entries()) request.write('x'.repeat(index === 2 ? 20 : 18));
  await delivered();
  expect(bodies.heldBytes).toBe(92);
  const small = newRequest();
  const read = outcome(bodies.read(small, { maxBytes: 90 }));
  small.end('y'.repeat(10));
  expect(await read).toMatchObject({ text: 'y'.repeat(10) });
  expect(await reads[2]).toBe(503);
  expect(bodies.heldBytes).toBe(82);
});

test('a completely received body is never dropped', async () => {
  const bodies = new RequestBodies(100);
  const whole = newRequest();
  const read = bodies.read(whole, { maxBytes: 100 });
  whole.end('x'.repeat(100));
  using body = await read;
  const other = newRequest();
  const rejected = outcome(bodies.read(other, { maxBytes: 100 }));
  other.write('y');
  expect(await rejected).toBe(503);
  expect(body.text).toHaveLength(100);
});

test('the total limit holds for any order of chunks', async () => {
  const step = fc.record({ request: fc.nat(7), bytes: fc.integer({ min: 1, max: 60 }), end: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const bodies = new RequestBodies(100);
      const kept: Body[] = [];
      const requests = Array.from({ length: 8 }, () => {
        const request = newRequest();
        const read = outcome(bodies.read(request, { maxBytes: 80 })).then((result) => {
          if (typeof result === 'object') kept.push(result);
        });
        return { request, read };
      });
      for (const { request: index, bytes, end } of steps) {
        const request = requests[index]?.request;
        if (request === undefined || request.writableEnded) continue;
        request.write('x'.repeat(bytes));
        if (end) request.end();
        await delivered();
        expect(bodies.heldBytes).toBeLessThanOrEqual(100);
      }
      for (const { request } of requests) request.destroy();
      await Promise.all(requests.map(({ read }) => read));
      for (const body of kept) body[Symbol.dispose]();
      expect(bodies.heldBytes).toBe(0);
    }),
  );
});
