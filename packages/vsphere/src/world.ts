/**
 * All that the client takes from outside: time, chance and the network. By its shape it is a part of the runtime's
 * `World`, but for `pinsCertificates` and `TlsOptions.thumbprint`: the operator passes the real one, the simulation its
 * own. Programs without a world of their own use `nodeWorld` of `@vmwright/runtime`.
 */
export interface VsphereWorld {
  /** Milliseconds since some moment, never going back. */
  monotonic(): number;
  /** Calls back once, after at least so many milliseconds. */
  after(ms: number, callback: () => void): Timer;
  /** From 0 up to, but not including, 1. */
  random(): number;
  /** A new UUID (version 4). */
  uuid(): string;
  /** A way to a server. Nothing is sent until the first request. */
  connect(server: ServerAddress): Transport;
  /**
   * Whether its connections heed `TlsOptions.thumbprint`. One that does not know it would verify otherwise and say
   * nothing, so without this a thumbprint is refused.
   */
  readonly pinsCertificates?: boolean;
}

export type Clock = Pick<VsphereWorld, 'monotonic' | 'after'>;

export interface Timer {
  /** Does nothing once the timer has gone off. */
  cancel(): void;
}

export interface ServerAddress {
  /** `https://host:port`, without a path. */
  readonly origin: string;
  /** Asked for each new connection, so that a rotated authority is taken up. */
  readonly tls?: () => Promise<TlsOptions>;
}

export interface TlsOptions {
  /** PEM; the system's authorities unless given. */
  readonly ca?: string;
  /** Takes whatever certificate the server shows. */
  readonly insecure?: boolean;
  /**
   * SHA-256 of the server's certificate, in hexadecimal, colons or not. The connection stands only with this very
   * certificate, whoever has signed it and whatever name it is for.
   */
  readonly thumbprint?: string;
}

export interface TransportRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  /** The answer may be long in coming: it gets a connection of its own. @default false */
  readonly lasting?: boolean;
  /** Called when there is a connection to send it over, which it may have waited for. What it throws keeps it from being sent. */
  readonly beforeSend?: () => void;
  /** Limit of the answer in bytes. A larger one is an error whose `code` is `RESPONSE_TOO_LARGE`. */
  readonly maxBytes?: number;
}

export interface TransportResponse {
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
