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

/** The API server model without a simulation: it responds immediately, and its garbage collector runs in `settle`. */
export class DirectServer {
  readonly server: ApiServer;
  readonly #scheduled: { act: () => void; cancelled: boolean }[] = [];

  constructor() {
    const environment: ServerEnvironment = {
      now: () => nodeWorld.now(),
      uuid: () => nodeWorld.uuid(),
      after: (ms, act) => {
        const event = { act, cancelled: false };
        if (ms <= 1) this.#scheduled.push(event); // longer timers send bookmarks or end watches; not tested here
        return event;
      },
      controllerDelay: () => 1,
      note: () => undefined,
      count: () => undefined,
      unmodelled: (message) => {
        throw new Error(message);
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

  /** Runs all scheduled steps of the garbage collector. @returns whether it changed anything */
  settle(): boolean {
    const before = this.server.resourceVersion;
    for (let next = this.#scheduled.shift(); next !== undefined; next = this.#scheduled.shift())
      if (!next.cancelled) next.act();
    return this.server.resourceVersion !== before;
  }

  #transport(): Transport {
    return { request: async (request) => this.#respond(request), close: async () => undefined };
  }

  #respond(request: TransportRequest): TransportResponse {
    const response = this.server.receive(request);
    const header = () => undefined;
    if ('body' in response)
      return {
        status: response.status,
        header,
        text: async () => response.body,
        lines: async function* () {},
      };
    const lines: string[] = [];
    response.open({ send: (line) => void lines.push(line), end: () => undefined })();
    return {
      status: response.status,
      header,
      text: async () => lines.join('\n'),
      lines: async function* () {
        yield* lines;
      },
    };
  }
}
