import type { BufferedResponse, ModelResponse, ServerStream } from '../world/server.ts';
import type { Reply } from './protocol.ts';

/** A response that is sent when its statement ends. */
export class Answer {
  isSent = false;
  #stream: ServerStream | undefined;
  #text: string | undefined;

  readonly response: ModelResponse = {
    status: 200,
    open: (stream) => {
      this.#stream = stream;
      this.#flush();
      return () => undefined;
    },
  };

  send(content: Reply): void {
    if (this.isSent) return;
    this.isSent = true;
    this.#text = JSON.stringify(content);
    this.#flush();
  }

  #flush(): void {
    if (this.#text === undefined || this.#stream === undefined) return;
    this.#stream.send(this.#text);
    this.#stream.end();
  }
}

/** Returns the response to a statement that ends as soon as it arrives. */
export function reply(content: Reply): BufferedResponse {
  return { status: 200, body: JSON.stringify(content) };
}

export function failure(code: string, message: string): BufferedResponse {
  return reply({ error: { code, message } });
}
