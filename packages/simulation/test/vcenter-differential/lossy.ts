import type { VsphereWorld } from '@vmwright/vsphere';

/** The same world, in which a sequence can have one request come without its session, or one answer not at all. */
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
            const answer = await transport.request(request);
            // Who asks again from the very start is told nothing by the simulator, and all by vCenter.
            if (isWait && this.#losesUpdates && !request.body?.includes('<version></version>')) {
              await answer.text();
              this.#losesUpdates = false;
              throw new Error('read ECONNRESET');
            }
            return answer;
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
