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
  }, 300_000); // the first time it is built
  afterAll(() => toxiproxy[Symbol.asyncDispose]());

  beforeEach(async () => {
    server = await EchoServer.listen();
    proxies += 1;
    proxy = await toxiproxy.proxy({ name: `echo ${proxies}`, upstream: server.address });
  });
  afterEach(() => server[Symbol.asyncDispose]());

  /**
   * Time for an answer that does come: others' requests, made after one's own and by the same server and the same
   * toxiproxy, have been answered by now.
   */
  async function othersAreAnswered(): Promise<void> {
    proxies += 1;
    const clear = await toxiproxy.proxy({ name: `clear ${proxies}`, upstream: server.address });
    for (let i = 0; i < 20; i++) {
      using other = await Caller.connect(clear.port);
      other.say(`other ${i}`);
      await other.hears(`heard other ${i}`);
    }
  }

  test('passes on what both sides say', async () => {
    expect(proxy.address).toBe(`127.0.0.1:${proxy.port}`);
    using caller = await Caller.connect(proxy.port);
    caller.say('hello');
    await caller.hears('heard hello');
  });

  test('disabled, cuts connections and refuses new ones until enabled', async () => {
    using caller = await Caller.connect(proxy.port);
    caller.say('hello');
    await caller.hears('heard hello');
    await proxy.disable();
    await caller.ended;
    await expect(Caller.connect(proxy.port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await proxy.enable();
    using again = await Caller.connect(proxy.port);
    again.say('again');
    await again.hears('heard again');
  });

  test('resets downstream: the server has heard, the caller gets ECONNRESET for an answer', async () => {
    await using _ = await proxy.reset();
    using caller = await Caller.connect(proxy.port);
    caller.say('hello');
    await server.hears('hello');
    expect(await caller.ended).toBe('ECONNRESET');
    expect(caller.heard).toBe('');
  });

  test('resets upstream: the server never hears', async () => {
    await using _ = await proxy.reset(0, 'upstream');
    using caller = await Caller.connect(proxy.port);
    caller.say('hello');
    expect(await caller.ended).toBe('ECONNRESET');
    expect(server.heard).toBe('');
  });

  test('resets late if told so', async () => {
    await using _ = await proxy.reset(200);
    using caller = await Caller.connect(proxy.port);
    const start = performance.now();
    caller.say('hello');
    expect(await caller.ended).toBe('ECONNRESET');
    expect(performance.now() - start).toBeGreaterThanOrEqual(200);
  });

  test('closes a connection from before the reset, whose answer is lost as well', async () => {
    using caller = await Caller.connect(proxy.port);
    caller.say('hello');
    await caller.hears('heard hello');
    await using _ = await proxy.reset();
    caller.say('again');
    await caller.ended;
    await server.hears('again');
    expect(caller.heard).not.toContain('again');
  });

  test('half-open: no answer on an open connection, which closes when the toxic is removed; new ones work', async () => {
    using caller = await Caller.connect(proxy.port);
    caller.say('hello');
    await caller.hears('heard hello');
    const toxic = await proxy.halfOpen();
    caller.say('one');
    await server.hears('one');
    await othersAreAnswered();
    expect(caller.heard).not.toContain('one');
    expect(caller.open).toBe(true);
    caller.say('two');
    await server.hears('two'); // so it is indeed open
    await toxic[Symbol.asyncDispose]();
    expect(await caller.ended).toBe('closed');
    expect(caller.heard).toBe('heard hello\n');
    using next = await Caller.connect(proxy.port);
    next.say('three');
    await next.hears('heard three');
  });

  test('half-open upstream: the server does not hear', async () => {
    using caller = await Caller.connect(proxy.port);
    await using _ = await proxy.halfOpen('upstream');
    caller.say('hello');
    await othersAreAnswered();
    expect(server.heard).not.toContain('hello');
    expect(caller.open).toBe(true);
  });

  test.for(['upstream', 'downstream'] as const)(
    'holds %s: no answer on an open connection, until the toxic is removed',
    async (stream) => {
      using caller = await Caller.connect(proxy.port);
      caller.say('hello');
      await caller.hears('heard hello');
      const toxic = await proxy.hold(stream);
      caller.say('one');
      caller.say('two');
      await othersAreAnswered();
      expect(caller.heard).toBe('heard hello\n');
      expect(caller.open).toBe(true);
      await toxic[Symbol.asyncDispose]();
      await caller.hears('heard hello\nheard one\nheard two\n');
      caller.say('three');
      await caller.hears('heard three');
    },
  );

  test('delays each direction by its own latency', async () => {
    await using _up = await proxy.latency(150, 0, 'upstream');
    await using _down = await proxy.latency(200, 50);
    using caller = await Caller.connect(proxy.port);
    const start = performance.now();
    caller.say('hello');
    await caller.hears('heard hello');
    expect(performance.now() - start).toBeGreaterThanOrEqual(300);
  });

  test('limits the bandwidth', async () => {
    await using _ = await proxy.bandwidth(10);
    using caller = await Caller.connect(proxy.port);
    const long = 'x'.repeat(4_000);
    const start = performance.now();
    caller.say(long);
    await caller.hears(`heard ${long}`);
    expect(performance.now() - start).toBeGreaterThanOrEqual(400);
  });

  test('slices what is said, and loses nothing', async () => {
    await using _ = await proxy.slice(16, 20);
    using caller = await Caller.connect(proxy.port);
    const text = 'abcdefghijklmnopqrstuvwxyz'.repeat(4);
    const start = performance.now();
    caller.say(text);
    await caller.hears(`heard ${text}\n`);
    // 111 bytes in pieces of at most 16 are 7 or more.
    expect(performance.now() - start).toBeGreaterThanOrEqual(6 * 20);
  });

  test('closes a connection in the middle of an answer', async () => {
    await using _ = await proxy.limitData(8);
    using caller = await Caller.connect(proxy.port);
    caller.say('hello');
    await caller.ended;
    expect(caller.heard).toBe('heard he');
  });

  test('a toxic ends with its scope, and may be removed twice', async () => {
    using caller = await Caller.connect(proxy.port);
    {
      await using toxic = await proxy.hold();
      caller.say('hello');
      await server.hears('hello');
      await toxic[Symbol.asyncDispose]();
    }
    await caller.hears('heard hello');
  });

  test('clear() ends every fault', async () => {
    await proxy.reset();
    await proxy.hold('upstream');
    await proxy.disable();
    await proxy.clear();
    using caller = await Caller.connect(proxy.port);
    caller.say('hello');
    await caller.hears('heard hello');
  });

  test('says what it refuses', async () => {
    await expect(toxiproxy.proxy({ name: proxy.name, upstream: server.address })).rejects.toMatchObject({
      code: 'REQUEST_FAILED',
      message: expect.stringContaining('already exists'),
    });
  });

  test('takes its proxies with it when disposed, and toxics can still be disposed', async () => {
    const other = await startToxiproxy();
    const its = await other.proxy({ name: 'its', upstream: server.address });
    await using _ = await its.latency(1);
    const { pid, dir } = other.part;
    await other[Symbol.asyncDispose]();
    expect(processIdentity(pid)).toBeUndefined();
    expect(existsSync(dir)).toBe(false);
    await expect(Caller.connect(its.port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await expect(its.disable()).rejects.toMatchObject({ code: 'REQUEST_FAILED' });
  });
});

/** A client, and what it has heard so far. */
class Caller implements Disposable {
  readonly #socket: Socket;
  /** How the connection ended: `closed`, or the code of an error. */
  readonly ended: Promise<string>;
  heard = '';

  private constructor(socket: Socket) {
    this.#socket = socket;
    let how = 'closed';
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      this.heard += text;
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      how = error.code ?? error.message;
    });
    this.ended = new Promise((resolve) => socket.once('close', () => resolve(how)));
  }

  static async connect(port: number): Promise<Caller> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new Caller(socket);
  }

  /** Neither side has ended it. */
  get open(): boolean {
    return this.#socket.readyState === 'open';
  }

  say(line: string): void {
    this.#socket.write(`${line}\n`);
  }

  async hears(text: string): Promise<void> {
    while (!this.heard.includes(text)) {
      const ended = await Promise.race([once(this.#socket, 'data').then(() => undefined), this.ended]);
      if (ended !== undefined) throw new Error(`${ended} after hearing only: ${this.heard}`);
    }
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/** Answers each line with `heard <line>`, and remembers all it has heard. */
class EchoServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #events = new EventEmitter();
  readonly #sockets = new Set<Socket>();
  heard = '';

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

  async hears(text: string): Promise<void> {
    while (!this.heard.includes(text)) await once(this.#events, 'heard');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await this.#server[Symbol.asyncDispose]();
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    let rest = '';
    socket.setEncoding('utf8');
    socket.on('error', () => undefined); // that is what these tests are about
    socket.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) socket.write(`heard ${line}\n`);
      this.heard += text;
      this.#events.emit('heard');
    });
  }
}

function isAddressInfo(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === 'object' && address !== null;
}
