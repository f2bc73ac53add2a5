import { type Access, noCredentials } from '@vmwright/runtime';
import type { Simulation } from '../world/simulation.ts';
import { EPOCH_MS } from '../world/world.ts';
import { ApiServer } from './api-server.ts';

export const API_SERVER = 'https://api.simulated';

/** Creates an API server and registers it on the simulated network. */
export function startApiServer(simulation: Simulation, origin: string = API_SERVER): ApiServer {
  const { schedule, choices, network, counts } = simulation;
  const server = new ApiServer({
    environment: {
      now: () => EPOCH_MS + schedule.now,
      uuid: () => simulation.uuid(),
      after: (ms, act) => schedule.after(ms, act),
      controllerDelay: () => choices.delay(),
      note: (what) => simulation.note('api server', what),
      count: (what) => counts.add(what),
      unmodelled: (message) => schedule.fail(new Error(message)),
    },
  });
  network.serve(origin, server);
  return server;
}

/** Returns the access with which simulated processes connect to the API server. */
export function accessTo(origin: string = API_SERVER, namespace = 'default'): Access {
  return { server: { origin }, credentials: noCredentials, namespace };
}
