/**
 * All that the runtime takes from outside: time, chance and the network. Production gives it the real ones
 * (`nodeWorld`), the simulation a virtual clock, one seeded source of choices and modelled servers; the code in between
 * is the same. The lint refuses the globals that would go around it.
 */
export interface World {
  /** Milliseconds since 1970 by the machine's clock, which may jump. For what people and other machines read. */
  now(): number;
  /** Milliseconds since some moment, never going back. For measuring and for deadlines. */
  monotonic(): number;
  /** Calls back once, after at least so many milliseconds. */
  after(ms: number, callback: () => void): Timer;
  /** From 0 up to, but not including, 1. */
  random(): number;
  /** A new UUID (version 4). */
  uuid(): string;
  /** A way to a server. Nothing is sent until the first request. */
  connect(server: ServerAddress): Transport;
  /** Whether its connections heed `TlsOptions.thumbprint`. @default false */
  readonly pinsCertificates?: boolean;
}

/** The part of a world that most of the runtime needs. */
export type Clock = Pick<World, 'now' | 'monotonic' | 'after'>;

export interface Timer {
  /** Does nothing once the timer has gone off. */
  cancel(): void;
}

export interface ServerAddress {
  /** `https://host:port`, without a path. */
  readonly origin: string;
  /** Asked for each new connection, so that a rotated authority or certificate is taken up. */
  readonly tls?: () => Promise<TlsOptions>;
  /** URL of the proxy to use, always. @default what the environment says, where the world has one */
  readonly proxy?: string | undefined;
}

export interface TlsOptions {
  /** PEM; the system's authorities unless given. */
  readonly ca?: string;
  readonly certificate?: string;
  readonly key?: string;
  readonly serverName?: string;
  readonly insecure?: boolean;
  /** SHA-256 of the server's certificate, 64 small hexadecimal digits: it counts, and nobody's signature on it. */
  readonly thumbprint?: string;
}

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  /** Called when it has a connection, right before it is sent; what it throws is the request's end. */
  readonly beforeSend?: () => void;
  /** The answer may last: it gets a connection of its own. @default false */
  readonly lasting?: boolean;
  /**
   * Limit of the answer's text, or of one of its lines, in bytes. A larger one is a `ResponseTooLargeError`. Answers with
   * a status of 400 and above are limited to 1 MiB besides. @default 64 MiB
   */
  readonly maxBytes?: number | undefined;
}

export interface TransportResponse {
  readonly status: number;
  header(name: string): string | undefined;
  /** The whole body. */
  text(): Promise<string>;
  /** The body as it comes; ending the loop early closes the connection. */
  lines(): AsyncIterable<string>;
}

/**
 * Requests to one server over connections that are kept. A promise that rejects says nothing about whether the server
 * has acted on the request.
 */
export interface Transport {
  request(request: TransportRequest): Promise<TransportResponse>;
  close(): Promise<void>;
}
