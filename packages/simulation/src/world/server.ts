import type { TransportRequest } from '@vmwright/runtime';

/** A request as it arrives at a server. */
export type Arrived = Pick<TransportRequest, 'method' | 'path' | 'headers' | 'body'>;

/** A server of the simulated world. It acts at once; what takes time in the real one, the network adds. */
export interface ModelServer {
  receive(request: Arrived): Answer;
  /** Says no without having acted, in this server's own form. */
  refuse(status: 429 | 500, retryAfterSeconds?: number): WholeAnswer;
}

export type Answer = WholeAnswer | StreamedAnswer;

export interface WholeAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/** An answer whose lines come when there is something to tell. */
export interface StreamedAnswer {
  readonly status: number;
  /** Called once; from then on the server may send. @returns called when the reader is gone */
  open(stream: ServerStream): () => void;
}

/** The server's end of a stream. */
export interface ServerStream {
  send(line: string): void;
  /** After all lines that were sent. */
  end(): void;
}
