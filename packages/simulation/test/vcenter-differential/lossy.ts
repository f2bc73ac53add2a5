import type { VsphereWorld } from '@vmwright/vsphere';

/** World that can send one request without the session cookie, or lose one response that contains updates. */
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
            // Loses only responses to calls with a version, because only repetitions of such calls are compared.
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
