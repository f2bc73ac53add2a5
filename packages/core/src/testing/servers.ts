import { once } from 'node:events';
import type { Server } from 'node:net';
import type { Writable } from 'node:stream';

/** Registers a function to run after the test: vitest's `onTestFinished`. */
type OnTestFinished = (cleanUp: () => void) => void;

/** Starts `server` on a free port of 127.0.0.1 and returns the port. The server closes when the test finishes. */
export async function listen(server: Server, onTestFinished: OnTestFinished): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new Error('the server does not listen on a TCP port');
  return address.port;
}

/** Writes `chunk` repeatedly until the peer closes the stream. Resolves with the number of bytes written. */
export function writeEndlessly(stream: Writable, chunk: Buffer): Promise<number> {
  let written = 0;
  const write = () => {
    do written += chunk.length;
    while (!stream.destroyed && stream.write(chunk));
  };
  stream.on('drain', write);
  write();
  return new Promise((resolve) => stream.on('close', () => resolve(written)));
}
