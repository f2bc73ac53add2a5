/** The deterministic simulation: the same controllers in a world with a virtual clock and a seed. Never shipped. */
export { ApiServer, type ApiServerOptions } from './apiserver/api-server.ts';
export type { ServerEnvironment } from './apiserver/environment.ts';
export type { StoredObject } from './apiserver/object.ts';
export type { AnyDeclaredKind, ResourceRules } from './apiserver/resource.ts';
export { API_SERVER, accessTo, startApiServer } from './apiserver/simulated.ts';
export type { Change } from './apiserver/store.ts';
export { Choices } from './world/choices.ts';
export { Counts } from './world/counts.ts';
export {
  type FaultRates,
  REQUEST_FAULTS,
  type RequestFault,
  STREAM_FAULTS,
  type StreamFault,
  USUAL_FAULTS,
} from './world/faults.ts';
export { Network } from './world/network.ts';
export { SimulatedProcess } from './world/process.ts';
export { type RunOptions, Schedule } from './world/schedule.ts';
export type {
  Answer,
  Arrived,
  ModelServer,
  ServerStream,
  StreamedAnswer,
  WholeAnswer,
} from './world/server.ts';
export { Simulation, type SimulationOptions, seeded } from './world/simulation.ts';
export { type StoryLine, Trace, told } from './world/trace.ts';
export { EPOCH_MS, SimulatedWorld } from './world/world.ts';
