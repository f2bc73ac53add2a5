import { responseOf } from '@vmwright/core/testing';
import { nodeWorld, type TransportRequest, type TransportResponse, type World } from '@vmwright/runtime';
import type { FenceMode } from '../../src/database/protocol.ts';
import { DatabaseServer } from '../../src/database/server.ts';
import { SimulatedDatabase } from '../../src/database/session.ts';
import { rejects } from './operations.ts';
import type { OtherClients } from './side.ts';

/**
 * Clock and timers with which a session takes over the shards of another session in milliseconds instead of seconds.
 * The clock runs a thousand times as fast. Timers of less than a second fire after 1 ms. Longer timers are timeouts and
 * keep their duration.
 */
export const FAST_CLOCK: Pick<World, 'monotonic' | 'after'> = {
  monotonic: () => nodeWorld.monotonic() * 1_000,
  after: (ms, act) => nodeWorld.after(ms < 1_000 ? 1 : ms, act),
};

/** Returns the model of the database without a simulation. It executes each statement immediately. */
export function directDatabase(mode: FenceMode): {
  readonly database: SimulatedDatabase;
  readonly others: OtherClients;
} {
  const server = new DatabaseServer({
    now: () => nodeWorld.now(),
    after: (ms, act) => void nodeWorld.after(ms, act),
    executionMs: () => 0,
    queuedMs: () => 0,
    lingers: () => false,
    commitsWhenTerminated: () => false,
    pageRows: 2,
    rejects,
    note: () => undefined,
  });
  const world: World = {
    ...nodeWorld,
    ...FAST_CLOCK,
    connect: () => ({
      request: async (request) => respond(server, request),
      close: async () => undefined,
    }),
  };
  const locks = new Map<string, () => void>();
  return {
    database: new SimulatedDatabase({ world, identity: 'model', mode }),
    others: {
      insert: async (row) => server.change(row.id, () => row),
      softDelete: async (id) => server.change(id, (row) => row && { ...row, deletedAt: nodeWorld.now() }),
      lock: async (id) => void locks.set(id, server.lockRow(id)),
      unlock: async (id) => locks.get(id)?.(),
      table: async () => server.table.all(),
    },
  };
}

function respond(server: DatabaseServer, request: TransportRequest): TransportResponse {
  const { signal } = request;
  const response = server.receive(request);
  if (!('open' in response)) return responseOf(response);
  const lines: string[] = [];
  let isOver = signal?.aborted ?? false;
  let wake: () => void = () => undefined;
  const end = () => {
    isOver = true;
    wake();
  };
  const onClosed = response.open({ send: (line) => void lines.push(line), end });
  signal?.addEventListener('abort', () => {
    onClosed();
    end();
  });
  async function* received() {
    for (;;) {
      const line = lines.shift();
      if (line !== undefined) yield line;
      else if (isOver) return;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  }
  return {
    status: response.status,
    header: () => undefined,
    text: async () => (await Array.fromAsync(received())).join('\n'),
    lines: received,
  };
}
