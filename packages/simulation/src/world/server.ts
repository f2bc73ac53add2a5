import type { TransportRequest } from '@vmwright/runtime';

/** A request as it arrives at a server. */
export type ModelRequest = Pick<TransportRequest, 'method' | 'path' | 'headers' | 'body'>;

/** A model of a server. It executes each request immediately; the network adds the delays. */
export interface ModelServer {
  receive(request: ModelRequest): ModelResponse;
  /** Returns this server's error response for a request that it does not execute. */
  reject(status: 429 | 500, retryAfterSeconds?: number): BufferedResponse;
}

export type ModelResponse = BufferedResponse | StreamedResponse;

export interface BufferedResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A response that the server streams line by line. */
export interface StreamedResponse {
  readonly status: number;
  /** Called once when the stream opens. @returns a function the network calls when the reader is gone */
  open(stream: ServerStream): () => void;
}

/** The server's end of a stream. */
export interface ServerStream {
  send(line: string): void;
  /** Ends the stream after the lines already sent. */
  end(): void;
}
