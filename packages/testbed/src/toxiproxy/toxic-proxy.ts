import type { Api } from './api.ts';

/** Direction: `upstream` is from client to server, `downstream` from server to client. */
export type Stream = 'upstream' | 'downstream';

/** Duration in milliseconds that no test reaches, within the range of Go's `time.Duration`. */
const FOREVER_MS = 365 * 24 * 60 * 60 * 1_000;

/** A fault on a proxy's connections. It is removed when disposed. */
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
 * A TCP proxy that injects faults (toxics). A toxic acts on one direction of all connections. Unless noted otherwise,
 * these include connections that are already open. Several toxics act in sequence.
 *
 * Caveats: while the server is down, the proxy still accepts connections, and then closes them. `halfOpen` and `hold`
 * do not affect the end of a stream, so the client still notices when the server process exits.
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

  /** Closes open connections and refuses new ones. */
  async disable(): Promise<void> {
    await this.#api.change(this.#path, { enabled: false });
  }

  async enable(): Promise<void> {
    await this.#api.change(this.#path, { enabled: true });
  }

  /** Changes the server to `host:port` and closes open connections. */
  async redirect(upstream: string): Promise<void> {
    await this.#api.change(this.#path, { upstream });
  }

  /** Delays all data by `ms` ± `jitterMs`. */
  latency(ms: number, jitterMs = 0, stream: Stream = 'downstream'): Promise<Toxic> {
    return this.#add('latency', stream, { latency: ms, jitter: jitterMs });
  }

  /**
   * Resets connections (TCP RST) `afterMs` after the first data in this direction. That data is lost. With `upstream`,
   * the server never receives the request. With `downstream`, the server handles the request, but the response is lost.
   *
   * A connection that is already open is closed instead of reset, because toxiproxy sets up the reset when a connection
   * opens.
   */
  reset(afterMs = 0, stream: Stream = 'downstream'): Promise<Toxic> {
    return this.#add('reset_peer', stream, { timeout: afterMs });
  }

  /**
   * Simulates a peer that vanished: connections stay open, but data is lost. When the toxic is removed, the
   * connections on which it acted are closed, because their streams would have a gap.
   */
  halfOpen(stream: Stream = 'downstream'): Promise<Toxic> {
    return this.#add('timeout', stream, { timeout: 0 });
  }

  /**
   * Simulates a network outage: connections stay open and data is held back. When the toxic is removed, the delayed
   * data arrives in order on the same connections.
   */
  hold(stream: Stream = 'downstream'): Promise<Toxic> {
    return this.#add('latency', stream, { latency: FOREVER_MS, jitter: 0 });
  }

  /** Limits the bandwidth of each connection. */
  bandwidth(kilobytesPerSecond: number, stream: Stream = 'downstream'): Promise<Toxic> {
    return this.#add('bandwidth', stream, { rate: kilobytesPerSecond });
  }

  /** Splits data into pieces of at most `bytes`, `delayMs` apart, to find readers that expect whole messages. */
  slice(bytes: number, delayMs = 0, stream: Stream = 'downstream'): Promise<Toxic> {
    return this.#add('slicer', stream, { average_size: bytes, size_variation: 0, delay: delayMs * 1_000 });
  }

  /** Closes each connection after this many bytes, possibly in the middle of a message. */
  limitData(bytes: number, stream: Stream = 'downstream'): Promise<Toxic> {
    return this.#add('limit_data', stream, { bytes });
  }

  /** Removes all toxics and enables the proxy. */
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
