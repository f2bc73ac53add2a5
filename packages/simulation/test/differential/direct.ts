import {
  Client,
  noCredentials,
  nodeWorld,
  type Transport,
  type TransportRequest,
  type TransportResponse,
  type World,
} from '@vmwright/runtime';
import { ApiServer, type ServerEnvironment } from '@vmwright/simulation';
import { DECLARED } from './kinds.ts';

/** The model without a simulated world around it: it answers at once, and its controllers act when told to. */
export class DirectServer {
  readonly server: ApiServer;
  readonly #planned: { act: () => void; cancelled: boolean }[] = [];

  constructor() {
    const environment: ServerEnvironment = {
      now: () => nodeWorld.now(),
      uuid: () => nodeWorld.uuid(),
      after: (ms, act) => {
        const planned = { act, cancelled: false };
        if (ms <= 1) this.#planned.push(planned); // bookmarks and ends of watches lie beyond this test
        return planned;
      },
      controllerDelay: () => 1,
      note: () => undefined,
      count: () => undefined,
      unmodelled: (sentence) => {
        throw new Error(sentence);
      },
    };
    this.server = new ApiServer({ environment, managedFields: true });
    for (const kind of DECLARED) this.server.serve(kind);
  }

  client(fieldManager: string): Client {
    const world: World = { ...nodeWorld, connect: () => this.#transport() };
    const access = { server: { origin: 'https://model' }, credentials: noCredentials, namespace: 'default' };
    return new Client({ world, access, fieldManager });
  }

  /** Lets the garbage collector do all that it has to. @returns whether it has changed anything */
  settle(): boolean {
    const before = this.server.resourceVersion;
    for (let next = this.#planned.shift(); next !== undefined; next = this.#planned.shift())
      if (!next.cancelled) next.act();
    return this.server.resourceVersion !== before;
  }

  #transport(): Transport {
    return { request: async (request) => this.#answer(request), close: async () => undefined };
  }

  #answer(request: TransportRequest): TransportResponse {
    const answer = this.server.receive(request);
    const header = () => undefined;
    if ('body' in answer)
      return { status: answer.status, header, text: async () => answer.body, lines: async function* () {} };
    const lines: string[] = [];
    answer.open({ send: (line) => void lines.push(line), end: () => undefined })();
    return {
      status: answer.status,
      header,
      text: async () => lines.join('\n'),
      lines: async function* () {
        yield* lines;
      },
    };
  }
}
