import { API_SERVER, startApiServer } from '../apiserver/simulated.ts';
import type { DatabaseServer } from '../database/server.ts';
import { DATABASE } from '../database/session.ts';
import { DATABASE_FAULTS, simulatedDatabase } from '../database/simulated.ts';
import type { ExternalResources } from '../invariants/external-resources.ts';
import type { Truth } from '../invariants/invariant.ts';
import { Holder, onlyTheLeaderWrites } from '../invariants/leaders.ts';
import { FaultInjector } from '../scenario/fault-injector.ts';
import { isSettled, runHistory } from '../scenario/history.ts';
import { COMPACTED, commonFaults } from '../scenario/must-happen.ts';
import { LEASE } from '../scenario/observed-manager.ts';
import { Replicas } from '../scenario/replicas.ts';
import type { Scenario, Violation } from '../scenario/scenario.ts';
import { Traffic } from '../scenario/traffic.ts';
import { type FaultRates, USUAL_FAULTS } from '../world/faults.ts';
import type { Simulation } from '../world/simulation.ts';
import { CRITICAL_MOMENTS, countCriticalMoments, LEADER_MOMENTS, SHARD_MOMENTS } from './critical-moments.ts';
import { DATABASE_ACTIONS, DatabaseFaults } from './database-faults.ts';
import {
  type ActiveMirror,
  BoundedLag,
  fenceBeforeRead,
  foreignRowsUntouched,
  lastOfEach,
  leaderIn,
  type MirrorTruth,
  missingRowsAreForgotten,
  neverGoesBack,
  nothingPending,
  noWriteOfEndedTerm,
  OnlyLeadersRead,
  onlyStatusChanges,
  stopsInTime,
  tableIsCorrect,
} from './invariants.ts';
import { KUBEVIRT_ACTIONS, KubeVirt } from './kubevirt.ts';
import { mirrorProgram } from './program.ts';
import { SSVIRT_ACTIONS, Ssvirt } from './ssvirt.ts';
import { injectTargetedFaults } from './targeted-faults.ts';
import { Timeline } from './timeline.ts';
import { DISTINCT_WORDS, SimulatedVm, WORDS } from './virtual-machine.ts';
import { Workload } from './workload.ts';

/**
 * Interval of resyncs in one half of the runs. In the other half, no resync corrects changes that the mirror missed.
 */
const RESYNC_MS = 60_000;
const NO_RESYNC_MS = 86_400_000;
/**
 * Maximum time until convergence. It includes the minute in which the mirror does not change a new row without a VM.
 */
const BOUND_MS = 600_000;

/** Maximum time from the commit of a row until its Kubernetes event is written. */
const EVENTS_MS = 10_000;

/**
 * Fault rates on the connections to the API server. Faults are rarer than usual, because the mirror notices a stalled
 * watch only after more than a minute. With the usual rates, most batches would be written only after the faults have
 * stopped.
 */
const API_FAULTS: FaultRates = { ...USUAL_FAULTS, request: 20, line: 120 };

const MUST_HAPPEN = [
  ...commonFaults(DATABASE).filter((fault) => fault !== 'a list was old'), // the cache uses sendInitialEvents and never lists
  ...KUBEVIRT_ACTIONS,
  ...SSVIRT_ACTIONS,
  ...DATABASE_ACTIONS,
  ...CRITICAL_MOMENTS,
];

/** Two or three replicas of the status mirror over a model of PostgreSQL, under faults. One replica leads. */
export const mirror: Scenario = {
  name: 'mirror',
  mustHappen: [...MUST_HAPPEN, ...LEADER_MOMENTS],
  run: (simulation) => runScenario(simulation, undefined),
};

/** Number of shards. The two namespaces of the workload are in different shards. */
const SHARDS = 3;

/** The mirror with sharding, under faults: each replica mirrors some of the namespaces. */
export const mirrorSharding: Scenario = {
  name: 'mirror-sharding',
  mustHappen: [...MUST_HAPPEN, ...SHARD_MOMENTS],
  run: (simulation) => runScenario(simulation, SHARDS),
};

function runScenario(simulation: Simulation, shards: number | undefined): Promise<readonly Violation[]> {
  const { choices, schedule } = simulation;
  const server = startApiServer(simulation);
  server.serve(SimulatedVm);
  const rejected = new Set<string>();
  const database = simulatedDatabase(simulation, ({ id }) => rejected.has(id));
  const traffic = new Traffic(simulation);
  traffic.serve(API_SERVER, server, API_FAULTS);
  traffic.serve(DATABASE, database, DATABASE_FAULTS);
  const truth: Truth = { simulation, server, kind: SimulatedVm, external: batchesOf(database), traffic };
  const words = choices.oneIn(2) ? DISTINCT_WORDS : WORDS;
  const mirrorTruth: MirrorTruth = { database, timeline: new Timeline(server, schedule), words };
  const holder = new Holder(truth, LEASE);
  const mirrors = new Map<string, ActiveMirror>();
  const failures: string[] = [];
  const onlyLeadersRead = new OnlyLeadersRead();
  const isResynced = choices.oneIn(2);
  const program = mirrorProgram({
    mapping: words,
    shards,
    workers: 1 + choices.pick(3),
    resyncMs: isResynced ? RESYNC_MS : NO_RESYNC_MS,
    statusEvents: choices.oneIn(2),
    fence: choices.oneIn(2) ? 'table' : 'session',
    onMirror: (identity, each, metrics) => mirrors.set(identity, { mirror: each, metrics }),
    onFailure: (message) => failures.push(message),
    onAcquired: (identity, session) => onlyLeadersRead.acquired(session, holder.is(identity)),
    onRead: (identity, session) => onlyLeadersRead.read(identity, session),
  });
  const names = choices.oneIn(3) ? (['alpha', 'beta', 'gamma'] as const) : (['alpha', 'beta'] as const);
  const replicas = new Replicas({ simulation, traffic, names, program });
  const boundedLag = new BoundedLag(mirrorTruth);
  const invariants = [
    noWriteOfEndedTerm(mirrorTruth),
    ...(shards === undefined
      ? [fenceBeforeRead(mirrorTruth), onlyLeadersRead.invariant, onlyTheLeaderWrites(API_SERVER, LEASE)]
      : []), // not checked with sharding: no replica leads, and replicas without a shard read the table, too
    missingRowsAreForgotten(mirrorTruth),
    onlyStatusChanges(mirrorTruth),
    foreignRowsUntouched(mirrorTruth),
    neverGoesBack(mirrorTruth),
    boundedLag.invariant,
    tableIsCorrect(mirrorTruth),
    stopsInTime(failures),
    nothingPending(() => (shards === undefined ? leaderIn(mirrors, holder) : lastOfEach(mirrors))),
  ];
  countCriticalMoments(truth, mirrorTruth, shards !== undefined);
  const faultInjector = new FaultInjector({
    simulation,
    replicas,
    origins: [API_SERVER, DATABASE],
    more: { [COMPACTED]: () => server.compact() },
  });
  const databaseFaults = new DatabaseFaults(simulation, database, rejected);
  injectTargetedFaults(truth, database, faultInjector, databaseFaults);
  const kubevirt = new KubeVirt(simulation);
  const ssvirt = new Ssvirt(simulation, database);
  const workload = new Workload({ simulation, kubevirt, ssvirt, table: database.table, isResynced });
  const faultMs = 60_000 + choices.pick(60_000);
  workload.setUp();
  replicas.start();
  workload.plan(faultMs);
  databaseFaults.plan(faultMs);
  let calmUntil: number | undefined;
  let writtenAt = 0;
  database.table.listen(() => {
    writtenAt = schedule.now;
  });
  const heal = () => {
    databaseFaults.stop();
    workload.end();
  };
  const isConverged = () => {
    const isQuiet = kubevirt.isIdle && schedule.now > writtenAt + EVENTS_MS;
    if (!isQuiet || !isSettled(truth, invariants)) return false;
    if (calmUntil === undefined) {
      simulation.note('world', 'is calm');
      boundedLag.begin(truth);
      calmUntil = schedule.now + workload.planCalm();
    }
    return schedule.now > calmUntil;
  };
  return runHistory({
    truth,
    faultInjector,
    invariants,
    faultMs,
    boundMs: BOUND_MS,
    onHealed: heal,
    isConverged,
  });
}

/**
 * Reports the batches of the mirror as changes of external resources, so that a batch in the idle phase is a violation.
 */
function batchesOf(database: DatabaseServer): ExternalResources {
  return {
    all: () => [],
    listen: (listener) =>
      database.listen((event) => {
        if (event.type !== 'batch') return;
        const after = { id: event.ids.join(', '), owner: undefined, deleting: false };
        listener({ before: undefined, after });
      }),
  };
}
