import { createServer, type Server } from 'node:net';
import { systemCode } from '@vmwright/core';
import { TestbedError } from '../errors.ts';

/**
 * Allocates ports for parts that need to know their port before they start. Binding port 0 and closing the socket would
 * not reserve the port: another process or an outgoing connection could take it. Instead, each process claims blocks of
 * 16 ports, below the port range of outgoing connections. To claim a block, the process listens on the first port of
 * the block until it exits. A claim is a socket, so it cannot outlive its process.
 */
const FIRST = 20_000;
const BLOCK_SIZE = 16;
const BLOCKS = 750; // up to port 32000; Linux uses 32768 and above for outgoing connections

const claims: Server[] = [];
let lastPort = 0;
let remaining = 0;
let queue: Promise<unknown> = Promise.resolve();

/** Returns a port on 127.0.0.1 that is unused and that no other testbed process will allocate. */
export function freePort(): Promise<number> {
  const port = queue.then(allocate);
  queue = port.catch(() => undefined); // concurrent calls are serialised
  return port;
}

/** Returns the first of `count` consecutive free ports. */
export async function freePortRange(count: number): Promise<number> {
  let ports: number[] = [];
  while (ports.length < count) {
    const port = await freePort();
    ports = ports.at(-1) === port - 1 ? [...ports, port] : [port];
  }
  return ports[0] ?? 0;
}

async function allocate(): Promise<number> {
  for (;;) {
    if (remaining === 0) await claimBlock();
    remaining -= 1;
    lastPort += 1;
    const probe = await listen(lastPort).catch(() => undefined);
    if (probe === undefined) continue; // in use by an unrelated process
    await new Promise((closed) => probe.close(closed));
    return lastPort;
  }
}

async function claimBlock(): Promise<void> {
  const start = process.pid % BLOCKS; // spreads processes over the blocks
  for (let i = 0; i < BLOCKS; i++) {
    const first = FIRST + ((start + i) % BLOCKS) * BLOCK_SIZE;
    const server = await listen(first).catch((error) => {
      if (systemCode(error) !== 'EADDRINUSE') throw error;
    });
    if (server === undefined) continue;
    server.unref();
    claims.push(server);
    lastPort = first;
    remaining = BLOCK_SIZE - 1;
    return;
  }
  throw new TestbedError(
    'PORT_BUSY',
    `no free ports between ${FIRST} and ${FIRST + BLOCK_SIZE * BLOCKS}; stop other test runs or testbeds`,
  );
}

/** Returns the requested port after checking that it is unused, or a free one if none is requested. */
export async function portFor(purpose: string, requested: number | undefined): Promise<number> {
  if (requested === undefined) return freePort();
  await requirePort(requested, purpose);
  return requested;
}

/** Throws `PORT_BUSY` if the port cannot be listened on. */
export async function requirePort(port: number, purpose: string): Promise<void> {
  const probe = await listen(port).catch((error) => {
    const reason = systemCode(error) === 'EADDRINUSE' ? 'is in use' : `cannot be used (${systemCode(error)})`;
    throw new TestbedError(
      'PORT_BUSY',
      `port ${port} for ${purpose} ${reason}; stop the process that uses it, or set PORTS=<first port> to use other ports`,
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
