/**
 * Everything the code takes from its environment: time, randomness and the network. Production injects the real ones
 * (`nodeWorld`); the simulation injects a virtual clock, a seeded random source and simulated servers. The linter
 * forbids the globals that would bypass the world.
 */
export interface World {
  /**
   * Wall-clock time in milliseconds since the Unix epoch. It may jump; use it only for times that other programs read
   * or set, such as timestamps and expiries.
   */
  now(): number;
  /** Monotonic time in milliseconds since an arbitrary moment. Use it for durations and deadlines. */
  monotonic(): number;
  /** Calls `callback` once, after at least `ms` milliseconds. */
  after(ms: number, callback: () => void): Timer;
  /** Returns a random number in [0, 1). */
  random(): number;
  /** Returns a new random UUID (version 4). */
  uuid(): string;
  /** Returns a transport to a server. It opens no connection before the first request. */
  connect(server: ServerAddress): Transport;
  /** Whether connections check `TlsOptions.thumbprint`. @default false */
  readonly pinsCertificates?: boolean;
}

/** Clocks and timers of a world. */
export type Clock = Pick<World, 'now' | 'monotonic' | 'after'>;

export interface Timer {
  /** Cancels the timer. Does nothing after it has fired. */
  cancel(): void;
}

export interface ServerAddress {
  /** `https://host:port`, without a path. */
  readonly origin: string;
  /** Returns the TLS options. Called for each new connection, so that rotated certificates are picked up. */
  readonly tls?: () => Promise<TlsOptions>;
  /** URL of the proxy to use. @default the proxy that the process environment selects, if any */
  readonly proxy?: string | undefined;
}

export interface TlsOptions {
  /** CA certificates in PEM that may sign the server's certificate. @default the system's CAs */
  readonly ca?: string;
  readonly certificate?: string;
  readonly key?: string;
  readonly serverName?: string;
  readonly insecure?: boolean;
  /** SHA-256 of the server's certificate as 64 lower-case hex digits. If set, it replaces the check of the CA chain. */
  readonly thumbprint?: string;
}

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  /** Called when a connection is available, right before the request is sent. If it throws, nothing is sent. */
  readonly beforeSend?: () => void;
  /**
   * Whether the response is long-lived, such as a watch. It then does not use one of the few connections for short
   * requests.
   * @default false
   */
  readonly lasting?: boolean;
  /**
   * Maximum size in bytes of the response text. If the response is read by lines, it is the maximum size of one line. A
   * larger text or line fails with `ResponseTooLargeError`. For a status of 400 or above, the limit is never more than
   * 1 MiB.
   * @default 64 MiB
   */
  readonly maxBytes?: number | undefined;
}

export interface TransportResponse {
  readonly status: number;
  header(name: string): string | undefined;
  /** Returns the whole body. */
  text(): Promise<string>;
  /** Yields the non-empty lines of the body as they arrive. Leaving the loop early aborts the response. */
  lines(): AsyncIterable<string>;
}

/**
 * Sends requests to one server over persistent connections. Even if `request` rejects, the server may have processed
 * the request.
 */
export interface Transport {
  request(request: TransportRequest): Promise<TransportResponse>;
  close(): Promise<void>;
}
