/**
 * All that the client takes from outside. It is a part of the runtime's `World`, by its shape: the operator passes the
 * real one, the simulation its own.
 */
export interface CloudWorld {
  /** Milliseconds since 1970 by the machine's clock, which may jump. */
  now(): number;
  /** Milliseconds since some moment, never going back. */
  monotonic(): number;
  /** Calls back once, after at least so many milliseconds. */
  after(ms: number, callback: () => void): Timer;
  /** From 0 up to, but not including, 1. */
  random(): number;
  /** A way to a server. Nothing is sent until the first request. */
  connect(server: ServerAddress): Transport;
}

export interface Timer {
  /** Does nothing once the timer has gone off. */
  cancel(): void;
}

export interface ServerAddress {
  /** `https://host:port`, without a path. */
  readonly origin: string;
  /** Asked for each new connection. */
  readonly tls?: () => Promise<TlsOptions>;
}

export interface TlsOptions {
  /** PEM; the system's authorities unless given. */
  readonly ca?: string;
  readonly insecure?: boolean;
}

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  /** Called when it has a connection, right before it is sent; throws when it must not be. */
  readonly beforeSend?: () => void;
  /** Limit of the answer in bytes. A larger one is an error whose `code` is `RESPONSE_TOO_LARGE`. */
  readonly maxBytes?: number;
}

interface TransportResponse {
  readonly status: number;
  header(name: string): string | undefined;
  /** The whole body. */
  text(): Promise<string>;
}

/** A promise that rejects says nothing about whether the server has acted on the request. */
export interface Transport {
  request(request: TransportRequest): Promise<TransportResponse>;
  close(): Promise<void>;
}
