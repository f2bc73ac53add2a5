import type { VsphereWorld } from '@vmwright/vsphere';

/** A world in which a sequence can send one request without its session, or lose one response with updates. */
export class Lossy {
  readonly world: VsphereWorld;
  #losesSession = false;
  #losesUpdates = false;

  constructor(world: VsphereWorld) {
    this.world = {
      ...world,
      connect: (server) => {
        const transport = world.connect(server);
        return {
          request: async (request) => {
            const isWait = request.body?.includes('<WaitForUpdatesEx ') ?? false;
            const { cookie, ...headers } = request.headers;
            if (this.#losesSession && cookie !== undefined && !isWait) {
              this.#losesSession = false;
              return transport.request({ ...request, headers });
            }
            const response = await transport.request(request);
            // Does not lose the initial response. Only the repetition of calls with a version is compared.
            if (isWait && this.#losesUpdates && !request.body?.includes('<version></version>')) {
              await response.text();
              this.#losesUpdates = false;
              throw new Error('read ECONNRESET');
            }
            return response;
          },
          close: () => transport.close(),
        };
      },
    };
  }

  loseSession(): void {
    this.#losesSession = true;
  }

  loseUpdates(): void {
    this.#losesUpdates = true;
  }
}
