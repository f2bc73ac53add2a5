import { EventEmitter, once } from 'node:events';
import { existsSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { processIdentity } from '../process/process-identity.ts';
import type { ToxicProxy } from './toxic-proxy.ts';
import { startToxiproxy, type Toxiproxy } from './toxiproxy.ts';

describe('toxiproxy', { timeout: 60_000 }, () => {
  let toxiproxy: Toxiproxy;
  let server: EchoServer;
  let proxy: ToxicProxy;
  let proxies = 0;

  beforeAll(async () => {
    toxiproxy = await startToxiproxy();
  }, 300_000); // the first run builds toxiproxy
  afterAll(() => toxiproxy[Symbol.asyncDispose]());

  beforeEach(async () => {
    server = await EchoServer.listen();
    proxies += 1;
    proxy = await toxiproxy.proxy({ name: `echo ${proxies}`, upstream: server.address });
  });
  afterEach(() => server[Symbol.asyncDispose]());

  /**
   * Sends requests to the same server through another proxy, and waits for the responses. Data that was sent earlier
   * through `proxy` would have arrived by then, if no toxic stopped it.
   */
  async function roundTripsOnOtherProxy(): Promise<void> {
    proxies += 1;
    const clear = await toxiproxy.proxy({ name: `clear ${proxies}`, upstream: server.address });
    for (let i = 0; i < 20; i++) {
      using other = await TestClient.connect(clear.port);
      other.send(`other ${i}`);
      await other.receives(`echo other ${i}`);
    }
  }

  test('a proxy forwards data in both directions', async () => {
    expect(proxy.address).toBe(`127.0.0.1:${proxy.port}`);
    using client = await TestClient.connect(proxy.port);
    client.send('hello');
    await client.receives('echo hello');
  });

  test('disable closes open connections and refuses new ones until enable is called', async () => {
    using client = await TestClient.connect(proxy.port);
    client.send('hello');
    await client.receives('echo hello');
    await proxy.disable();
    await client.ended;
    await expect(TestClient.connect(proxy.port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await proxy.enable();
    using again = await TestClient.connect(proxy.port);
    again.send('again');
    await again.receives('echo again');
  });

  test('reset downstream: the server receives the request and the client gets ECONNRESET', async () => {
    await using _ = await proxy.reset();
    using client = await TestClient.connect(proxy.port);
    client.send('hello');
    await server.receives('hello');
    expect(await client.ended).toBe('ECONNRESET');
    expect(client.received).toBe('');
  });

  test('reset upstream: the server never receives the request', async () => {
    await using _ = await proxy.reset(0, 'upstream');
    using client = await TestClient.connect(proxy.port);
    client.send('hello');
    expect(await client.ended).toBe('ECONNRESET');
    expect(server.received).toBe('');
  });

  test('reset waits for the given delay', async () => {
    await using _ = await proxy.reset(200);
    using client = await TestClient.connect(proxy.port);
    const start = performance.now();
    client.send('hello');
    expect(await client.ended).toBe('ECONNRESET');
    expect(performance.now() - start).toBeGreaterThanOrEqual(200);
  });

  test('reset closes a connection that was already open, and its pending response is lost', async () => {
    using client = await TestClient.connect(proxy.port);
    client.send('hello');
    await client.receives('echo hello');
    await using _ = await proxy.reset();
    client.send('again');
    await client.ended;
    await server.receives('again');
    expect(client.received).not.toContain('again');
  });

  test('halfOpen: an open connection gets no response and is closed when the toxic is removed; new connections work', async () => {
    using client = await TestClient.connect(proxy.port);
    client.send('hello');
    await client.receives('echo hello');
    const toxic = await proxy.halfOpen();
    client.send('one');
    await server.receives('one');
    await roundTripsOnOtherProxy();
    expect(client.received).not.toContain('one');
    expect(client.open).toBe(true);
    client.send('two');
    await server.receives('two'); // the connection is still open
    await toxic[Symbol.asyncDispose]();
    expect(await client.ended).toBe('closed');
    expect(client.received).toBe('echo hello\n');
    using next = await TestClient.connect(proxy.port);
    next.send('three');
    await next.receives('echo three');
  });

  test('halfOpen upstream: the server does not receive data', async () => {
    using client = await TestClient.connect(proxy.port);
    await using _ = await proxy.halfOpen('upstream');
    client.send('hello');
    await roundTripsOnOtherProxy();
    expect(server.received).not.toContain('hello');
    expect(client.open).toBe(true);
  });

  test.for(['upstream', 'downstream'] as const)(
    'hold %s: an open connection gets no response until the toxic is removed',
    async (stream) => {
      using client = await TestClient.connect(proxy.port);
      client.send('hello');
      await client.receives('echo hello');
      const toxic = await proxy.hold(stream);
      client.send('one');
      client.send('two');
      await roundTripsOnOtherProxy();
      expect(client.received).toBe('echo hello\n');
      expect(client.open).toBe(true);
      await toxic[Symbol.asyncDispose]();
      await client.receives('echo hello\necho one\necho two\n');
      client.send('three');
      await client.receives('echo three');
    },
  );

  test('latency delays each direction separately', async () => {
    await using _up = await proxy.latency(150, 0, 'upstream');
    await using _down = await proxy.latency(200, 50);
    using client = await TestClient.connect(proxy.port);
    const start = performance.now();
    client.send('hello');
    await client.receives('echo hello');
    expect(performance.now() - start).toBeGreaterThanOrEqual(300);
  });

  test('bandwidth limits the transfer rate', async () => {
    await using _ = await proxy.bandwidth(10);
    using client = await TestClient.connect(proxy.port);
    const long = 'x'.repeat(4_000);
    const start = performance.now();
    client.send(long);
    await client.receives(`echo ${long}`);
    expect(performance.now() - start).toBeGreaterThanOrEqual(400);
  });

  test('slice splits data into pieces and loses nothing', async () => {
    await using _ = await proxy.slice(16, 20);
    using client = await TestClient.connect(proxy.port);
    const text = 'abcdefghijklmnopqrstuvwxyz'.repeat(4);
    const start = performance.now();
    client.send(text);
    await client.receives(`echo ${text}\n`);
    // 110 bytes in pieces of at most 16 bytes are at least 7 pieces, with at least 6 delays of 20 ms between them.
    expect(performance.now() - start).toBeGreaterThanOrEqual(6 * 20);
  });

  test('limitData closes a connection in the middle of a response', async () => {
    await using _ = await proxy.limitData(8);
    using client = await TestClient.connect(proxy.port);
    client.send('hello');
    await client.ended;
    expect(client.received).toBe('echo hel');
  });

  test('a toxic is removed at the end of its scope and can be disposed twice', async () => {
    using client = await TestClient.connect(proxy.port);
    {
      await using toxic = await proxy.hold();
      client.send('hello');
      await server.receives('hello');
      await toxic[Symbol.asyncDispose]();
    }
    await client.receives('echo hello');
  });

  test('clear removes all faults', async () => {
    await proxy.reset();
    await proxy.hold('upstream');
    await proxy.disable();
    await proxy.clear();
    using client = await TestClient.connect(proxy.port);
    client.send('hello');
    await client.receives('echo hello');
  });

  test('a duplicate proxy name is rejected with the reason', async () => {
    await expect(toxiproxy.proxy({ name: proxy.name, upstream: server.address })).rejects.toMatchObject({
      code: 'REQUEST_FAILED',
      message: expect.stringContaining('already exists'),
    });
  });

  test('disposing of the toxiproxy server removes its proxies, and disposing of a toxic afterwards does not fail', async () => {
    const other = await startToxiproxy();
    const its = await other.proxy({ name: 'its', upstream: server.address });
    await using _ = await its.latency(1);
    const { pid, dir } = other.part;
    await other[Symbol.asyncDispose]();
    expect(processIdentity(pid)).toBeUndefined();
    expect(existsSync(dir)).toBe(false);
    await expect(TestClient.connect(its.port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await expect(its.disable()).rejects.toMatchObject({ code: 'REQUEST_FAILED' });
  });
});

/** Client that records everything it receives. */
class TestClient implements Disposable {
  readonly #socket: Socket;
  /** End of the connection: `closed`, or the code of an error. */
  readonly ended: Promise<string>;
  received = '';

  private constructor(socket: Socket) {
    this.#socket = socket;
    let how = 'closed';
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      this.received += text;
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      how = error.code ?? error.message;
    });
    this.ended = new Promise((resolve) => socket.once('close', () => resolve(how)));
  }

  static async connect(port: number): Promise<TestClient> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new TestClient(socket);
  }

  /** Whether neither side has closed the connection. */
  get open(): boolean {
    return this.#socket.readyState === 'open';
  }

  send(line: string): void {
    this.#socket.write(`${line}\n`);
  }

  async receives(text: string): Promise<void> {
    while (!this.received.includes(text)) {
      const ended = await Promise.race([once(this.#socket, 'data').then(() => undefined), this.ended]);
      if (ended !== undefined) throw new Error(`${ended} after receiving only: ${this.received}`);
    }
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/** Server that answers each line with `echo <line>` and records everything it receives. */
class EchoServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #events = new EventEmitter();
  readonly #sockets = new Set<Socket>();
  received = '';

  private constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket) => this.#serve(socket));
  }

  static async listen(): Promise<EchoServer> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new EchoServer(server);
  }

  get address(): string {
    const address = this.#server.address();
    return isAddressInfo(address) ? `${address.address}:${address.port}` : '';
  }

  async receives(text: string): Promise<void> {
    while (!this.received.includes(text)) await once(this.#events, 'received');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await this.#server[Symbol.asyncDispose]();
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    let rest = '';
    socket.setEncoding('utf8');
    socket.on('error', () => undefined); // expected in these tests
    socket.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) socket.write(`echo ${line}\n`);
      this.received += text;
      this.#events.emit('received');
    });
  }
}

function isAddressInfo(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === 'object' && address !== null;
}
