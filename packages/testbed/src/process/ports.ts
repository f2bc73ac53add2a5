import { createServer, type Server } from 'node:net';
import { systemCode } from '@vmwright/core';
import { TestbedError } from '../errors.ts';

/**
 * Ports for parts that must be told theirs before they start. Asking the system for "any free port" and letting go of
 * it again is a race with every other process that does the same, and with outgoing connections, whose ports come from
 * the same range. So: blocks of 16 ports below that range, each claimed by holding its first port open for as long as
 * this process lives. The claim is a socket, hence it cannot outlive its owner.
 */
const FIRST = 20_000;
const BLOCK = 16;
const BLOCKS = 750; // up to port 32000; Linux gives outgoing connections 32768 and above

const held: Server[] = [];
let next = 0;
let left = 0;
let queue: Promise<unknown> = Promise.resolve();

/** A port on 127.0.0.1 that nobody listens on and that no other testbed process will hand out. */
export function freePort(): Promise<number> {
  const port = queue.then(take);
  queue = port.catch(() => undefined); // one at a time, whoever asks
  return port;
}

async function take(): Promise<number> {
  for (;;) {
    if (left === 0) await claimBlock();
    left -= 1;
    next += 1;
    const probe = await listen(next).catch(() => undefined);
    if (probe === undefined) continue; // a stranger has it
    await new Promise((closed) => probe.close(closed));
    return next;
  }
}

async function claimBlock(): Promise<void> {
  const start = process.pid % BLOCKS; // so that processes rarely try the same one
  for (let i = 0; i < BLOCKS; i++) {
    const first = FIRST + ((start + i) % BLOCKS) * BLOCK;
    const server = await listen(first).catch((error) => {
      if (systemCode(error) !== 'EADDRINUSE') throw error;
    });
    if (server === undefined) continue;
    server.unref();
    held.push(server);
    next = first;
    left = BLOCK - 1;
    return;
  }
  throw new TestbedError('PORT_BUSY', `no free ports between ${FIRST} and ${FIRST + BLOCK * BLOCKS}`);
}

/** The port that somebody chose, if nobody else has it (who answers there would not be ours), or a free one. */
export async function portFor(purpose: string, chosen: number | undefined): Promise<number> {
  if (chosen === undefined) return freePort();
  await requirePort(chosen, purpose);
  return chosen;
}

/** Refuses with a sentence when somebody listens on the port already. */
export async function requirePort(port: number, purpose: string): Promise<void> {
  const probe = await listen(port).catch((error) => {
    const why = systemCode(error) === 'EADDRINUSE' ? 'is in use' : `cannot be used (${systemCode(error)})`;
    throw new TestbedError(
      'PORT_BUSY',
      `port ${port}, wanted for ${purpose}, ${why}; end what holds it, or choose other ports with PORTS=<first port>`,
    );
  });
  await new Promise((closed) => probe.close(closed));
}

function listen(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', reject);
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => resolve(server));
  });
}
