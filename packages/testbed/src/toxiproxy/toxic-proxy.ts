import type { Api } from './api.ts';

/** `upstream` is what the client sends to the server, `downstream` what the server sends to the client. */
export type Stream = 'upstream' | 'downstream';

/** Longer than any test, and short enough for Go's durations. */
const FOREVER_MS = 365 * 24 * 60 * 60 * 1_000;

/** A fault on the way, for as long as it is not disposed. */
export class Toxic implements AsyncDisposable {
  readonly name: string;
  readonly #remove: () => Promise<void>;

  constructor(name: string, remove: () => Promise<void>) {
    this.name = name;
    this.#remove = remove;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#remove();
  }
}

/**
 * A port that leads to a server by way of whatever faults are put on it. Each fault (toxic) acts on one direction of
 * all connections, those already open included unless it says otherwise; several act one after the other.
 *
 * Caveats: the proxy takes connections also while its server takes none, and closes them. The end of a stream is not
 * held or dropped like its data, so a server whose process ends is not a silent one.
 */
export class ToxicProxy {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly #api: Api;
  readonly #toxics = new Set<Toxic>();
  #lastToxic = 0;

  constructor(
    api: Api,
    { name, host, port }: { readonly name: string; readonly host: string; readonly port: number },
  ) {
    this.#api = api;
    this.name = name;
    this.host = host;
    this.port = port;
  }

  /** `host:port`. */
  get address(): string {
    return `${this.host}:${this.port}`;
  }

  /** Down: open connections are closed, new ones refused. */
  async disable(): Promise<void> {
    await this.#api.change(this.#path, { enabled: false });
  }

  async enable(): Promise<void> {
    await this.#api.change(this.#path, { enabled: true });
  }

  /** Leads to another server, `host:port`; open connections are closed. */
  async redirect(upstream: string): Promise<void> {
    await this.#api.change(this.#path, { upstream });
  }

  /** Everything arrives late, by `ms`, give or take `jitterMs`. */
  latency(ms: number, jitterMs = 0, stream: Stream = 'downstream'): Promise<Toxic> {
    return this.#add('latency', stream, { latency: ms, jitter: jitterMs });
  }

  /**
   * Connections are reset (TCP RST) `afterMs` after the first data in this direction, which gets lost. Upstream, the
   * server never hears the request; downstream, it has done what was asked and the answer is lost.
   *
   * Connections that were open before are closed instead of reset: toxiproxy prepares a connection for it when it opens.
   */
  reset(afterMs = 0, stream: Stream = 'downstream'): Promise<Toxic> {
    return this.#add('reset_peer', stream, { timeout: afterMs });
  }

  /**
   * The peer has vanished without a word: connections stay open and what is sent gets lost. When the toxic is removed,
   * connections that it was on are closed, since what they carry would have a gap.
   */
  halfOpen(stream: Stream = 'downstream'): Promise<Toxic> {
    return this.#add('timeout', stream, { timeout: 0 });
  }

  /**
   * The network is away for a while: connections stay open and what is sent waits. When the toxic is removed, all of it
   * arrives, late and in order, on the same connections.
   */
  hold(stream: Stream = 'downstream'): Promise<Toxic> {
    return this.#add('latency', stream, { latency: FOREVER_MS, jitter: 0 });
  }

  /** No more than this many kilobytes a second, on each connection. */
  bandwidth(kilobytesPerSecond: number, stream: Stream = 'downstream'): Promise<Toxic> {
    return this.#add('bandwidth', stream, { rate: kilobytesPerSecond });
  }

  /** Data comes in pieces of at most this many bytes, `delayMs` apart: for readers that think a message is a packet. */
  slice(bytes: number, delayMs = 0, stream: Stream = 'downstream'): Promise<Toxic> {
    return this.#add('slicer', stream, { average_size: bytes, size_variation: 0, delay: delayMs * 1_000 });
  }

  /** Each connection is closed after this many bytes, be it in the middle of a message. */
  limitData(bytes: number, stream: Stream = 'downstream'): Promise<Toxic> {
    return this.#add('limit_data', stream, { bytes });
  }

  /** Ends every fault: removes the toxics, and enables the proxy if it was disabled. */
  async clear(): Promise<void> {
    for (const toxic of [...this.#toxics]) await toxic[Symbol.asyncDispose]();
    await this.enable();
  }

  get #path(): string {
    return `/proxies/${encodeURIComponent(this.name)}`;
  }

  async #add(type: string, stream: Stream, attributes: Readonly<Record<string, number>>): Promise<Toxic> {
    this.#lastToxic += 1;
    const name = `${type}-${this.#lastToxic}`;
    await this.#api.create(`${this.#path}/toxics`, { name, type, stream, attributes });
    const toxic = new Toxic(name, async () => {
      await this.#api.remove(`${this.#path}/toxics/${name}`);
      this.#toxics.delete(toxic);
    });
    this.#toxics.add(toxic);
    return toxic;
  }
}
