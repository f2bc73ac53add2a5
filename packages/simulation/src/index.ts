/**
 * Deterministic simulation: runs the real controllers against models of the API server, the backends and the
 * database, with a virtual clock and with random choices that depend only on a seed. This package is not shipped.
 */
export { ApiServer, type ApiServerOptions } from './apiserver/api-server.ts';
export type { ServerEnvironment } from './apiserver/environment.ts';
export type { StoredObject } from './apiserver/object.ts';
export type { AnyDeclaredKind, ResourceRules } from './apiserver/resource.ts';
export { API_SERVER, accessTo, startApiServer } from './apiserver/simulated.ts';
export type { Change } from './apiserver/store.ts';
export type {
  ExternalResource,
  ExternalResourceChange,
  ExternalResources,
} from './invariants/external-resources.ts';
export type { Invariant, Truth } from './invariants/invariant.ts';
export { Holder, onlyTheLeaderWrites } from './invariants/leaders.ts';
export {
  atMostOneMachine,
  foreignMachinesUntouched,
  nothingLeaked,
  noWantedMachineDeleted,
} from './invariants/machines.ts';
export {
  converged,
  finalizerStaysWhileWanted,
  identityNeverChanges,
  noSecretOutsideSecrets,
  noStuckFinalizer,
  observedGenerationNeverGoesBack,
  sameEndState,
} from './invariants/objects.ts';
export { emptyQueue } from './invariants/queues.ts';
export { RemoteClient, type RemoteClientOptions, RemoteError, type RemoteList } from './remote/client.ts';
export type { MachineDraft, Ownership, RemoteMachine } from './remote/machine.ts';
export {
  REMOTE,
  REMOTE_FAULTS,
  Remote,
  type RemoteChange,
  type RemoteEnvironment,
  startRemote,
} from './remote/remote.ts';
export { type Registry, scenarioNamed } from './runner/named.ts';
export {
  type RegressionOutcome,
  type RegressionSeed,
  regressionSeeds,
  runRegressionSeeds,
} from './runner/regression-seeds.ts';
export { formatRun, MANY_SEEDS, problems, replayCommand, summary } from './runner/report.ts';
export {
  type Bounds,
  ENDS,
  NOTHING_THROWN,
  type Outcome,
  runSeed,
  runTape,
  type SeedOptions,
  type SeedOutcome,
} from './runner/seed.ts';
export { type Progress, runSeeds, type SeedsOptions, type SeedsResult } from './runner/seeds.ts';
export { type Shows, type ShrinkOptions, type Shrunk, shrink } from './runner/shrink.ts';
export { type Broken, firstViolation, type Tally, type ViolatingSeed } from './runner/tally.ts';
export { WorkerPool, type WorkerPoolOptions } from './runner/worker-pool.ts';
export { machines } from './samples/machines/scenario.ts';
export { VARIANTS, type Variant, variantNamed, WRONG_ORDER } from './samples/machines/variant.ts';
export { FaultInjector, type FaultInjectorOptions } from './scenario/fault-injector.ts';
export { type HistoryOptions, runHistory } from './scenario/history.ts';
export { ReplicaWorld } from './scenario/replica-world.ts';
export { type Program, Replicas, type ReplicasOptions } from './scenario/replicas.ts';
export type { Scenario, Violation } from './scenario/scenario.ts';
export { Traffic } from './scenario/traffic.ts';
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
  BufferedResponse,
  ModelRequest,
  ModelResponse,
  ModelServer,
  ServerStream,
  StreamedResponse,
} from './world/server.ts';
export { Simulation, type SimulationOptions, seeded } from './world/simulation.ts';
export { formatStory, type StoryLine, Trace } from './world/trace.ts';
export { EPOCH_MS, SimulatedWorld } from './world/world.ts';
