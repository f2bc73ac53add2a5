import { responseOf } from '@vmwright/core/testing';
import { nodeWorld } from '@vmwright/runtime';
import type { VsphereWorld } from '@vmwright/vsphere';
import type { Draft } from '../../src/vcenter/machines.ts';
import { Vcenter } from '../../src/vcenter/vcenter.ts';
import type { ServerStream } from '../../src/world/server.ts';

/** Defaults of a machine, as in vcsim. */
export const MACHINE: Omit<Draft, 'name' | 'folder' | 'instanceUuid'> = {
  isTemplate: true,
  power: 'poweredOff',
  host: 'host-6',
  cpus: 1,
  memoryMb: 32,
  canAddCpus: false,
  canAddMemory: false,
  extraConfig: {},
  ip: undefined,
};

/** Runs the model of vCenter outside a simulation, in real time and without delays. */
export class DirectVcenter {
  readonly world: VsphereWorld;
  readonly vcenter: Vcenter;

  constructor(user: { readonly username: string; readonly password: string }, templates: readonly string[]) {
    const vcenter = new Vcenter({
      ...user,
      environment: {
        after: (ms, act) => {
          const event = { cancelled: false };
          nodeWorld.after(ms, () => event.cancelled || act());
          return event;
        },
        uuid: () => nodeWorld.uuid(),
        taskMs: () => 0,
        taskFault: () => undefined,
        shutdownMs: () => 0,
        lagMs: () => 0,
        forgetsVersions: () => false,
        recentTasks: 200,
        maxPageSize: 3,
        note: () => undefined,
        unmodelled: (message) => {
          throw new Error(message);
        },
      },
    });
    this.vcenter = vcenter;
    const folder = vcenter.place.vmFolder.ref.value;
    for (const name of templates)
      vcenter.machines.add({ ...MACHINE, name, folder, instanceUuid: nodeWorld.uuid() }, 'itself');
    this.world = {
      ...nodeWorld,
      connect: () => ({
        request: async ({ signal, ...request }) => {
          signal?.throwIfAborted();
          const response = vcenter.receive(request);
          const { headers = {} } = 'headers' in response ? response : {};
          const body = 'body' in response ? response.body : await readAll(response.open, signal);
          return responseOf({ status: response.status, headers, body });
        },
        close: async () => undefined,
      }),
    };
  }
}

function readAll(
  open: (stream: ServerStream) => () => void,
  signal: AbortSignal | undefined,
): Promise<string> {
  const ended = Promise.withResolvers<string>();
  let body = '';
  const close = open({
    send: (line) => {
      body += line;
    },
    end: () => ended.resolve(body),
  });
  const abort = () => {
    close();
    ended.reject(signal?.reason);
  };
  signal?.addEventListener('abort', abort, { once: true });
  return ended.promise.finally(() => signal?.removeEventListener('abort', abort));
}
