import { GPUInfo } from '@vmwright/operator';
import type { WorkQueue } from '@vmwright/runtime';
import { same } from '../apiserver/json.ts';
import { API_SERVER, startApiServer } from '../apiserver/simulated.ts';
import type { ExternalResources } from '../invariants/external-resources.ts';
import type { Invariant, Truth } from '../invariants/invariant.ts';
import { Holder, onlyTheLeaderWrites } from '../invariants/leaders.ts';
import { observedGenerationNeverGoesBack } from '../invariants/objects.ts';
import { emptyQueue } from '../invariants/queues.ts';
import { calmAtFirst } from '../scenario/calm-start.ts';
import { FaultInjector } from '../scenario/fault-injector.ts';
import { isSettled, runHistory } from '../scenario/history.ts';
import { COMPACTED, commonFaults } from '../scenario/must-happen.ts';
import { LEASE } from '../scenario/observed-manager.ts';
import { atRandomTimes } from '../scenario/random-times.ts';
import { Replicas } from '../scenario/replicas.ts';
import type { Scenario, Violation } from '../scenario/scenario.ts';
import { Traffic } from '../scenario/traffic.ts';
import { type FaultRates, REQUEST_FAULTS, STREAM_FAULTS } from '../world/faults.ts';
import type { Simulation } from '../world/simulation.ts';
import { EPOCH_MS } from '../world/world.ts';
import {
  choosesSuitableNodes,
  dropsOnlyWhatIsGone,
  oldestFirst,
  unknownFactsMoveNothing,
} from './choice-invariants.ts';
import { CRITICAL_MOMENTS, countCriticalMoments } from './critical-moments.ts';
import type { GpuTruth } from './gpu-truth.ts';
import { HOST_ACTIONS, Hosts } from './hosts.ts';
import { JobHistory } from './jobs.ts';
import { Node, serveGpuKinds } from './kinds.ts';
import { Knowledge } from './knowledge.ts';
import {
  droppedWithItsObject,
  endedStaysEnded,
  endsWithItsJob,
  gpusAreReservedOnce,
  neverGoesBack,
  runningJobsKeepTheirNode,
} from './ledger-invariants.ts';
import { NODE_ACTIONS, Nodes } from './nodes.ts';
import { gpuInfoProgram, SKEW_MS } from './program.ts';
import { isLive, ReservationHistory } from './reservations.ts';
import { HOUR_MS, maintenanceOf } from './rules.ts';
import { answered } from './settled.ts';
import { statusFollowsLedger } from './status-invariants.ts';
import { injectTargetedFaults } from './targeted-faults.ts';
import { USER_ACTIONS, User } from './user.ts';
import { WORKLOAD_ACTIONS, Workload } from './workload.ts';

/**
 * Maximum time until convergence: the usual bound, plus `SWEEP_MS` for each time that the scenario advances the clocks.
 */
const BOUND_MS = 1_200_000;
/**
 * Period around the start of the idle phase. During this period, no reservation ends, and no maintenance begins or
 * ends.
 */
const QUIET_MS = { before: 60_000, after: 900_000 };
/**
 * Maximum time until the operator's next periodic check of the reservations. If a read or write of the reservations
 * failed, this check reads them again.
 */
const SWEEP_MS = 72_000 + 13_000;
const CALM_MS = { least: 4_000, most: 20_000 };
/** Maximum numbers of changes by third parties per run. */
const MAX_ACTIONS = { nodes: 10, workload: 8, hosts: 8, passes: 2, deletions: 2 };
/** Interval at which vCenter reports usage after the faults have stopped. */
const USAGE_MS = 20_000;

/**
 * Fault rates on the connections to the API server. Faults are rarer than usual, because the operator watches seven
 * kinds, and notices a stalled watch only after more than a minute. Among the request faults, `late` is the most
 * frequent, because a late write of reservations is the most dangerous fault.
 */
const API_FAULTS: FaultRates = {
  request: 14,
  requestFaults: [...REQUEST_FAULTS, 'late', 'late'],
  line: 100,
  streamFaults: STREAM_FAULTS,
};

/** Two or three replicas of the operator that reserve GPUs, under faults. */
export const gpuinfo: Scenario = {
  name: 'gpuinfo',
  mustHappen: [
    ...commonFaults(API_SERVER).filter((what) => what !== 'a list was old'),
    ...NODE_ACTIONS,
    ...HOST_ACTIONS,
    ...WORKLOAD_ACTIONS,
    ...USER_ACTIONS,
    ...CRITICAL_MOMENTS,
  ],
  run: runScenario,
};

function runScenario(simulation: Simulation): Promise<readonly Violation[]> {
  const { choices, schedule } = simulation;
  const server = startApiServer(simulation);
  serveGpuKinds(server);
  const traffic = new Traffic(simulation);
  traffic.serve(API_SERVER, server, API_FAULTS);
  const truth: Truth = { simulation, server, kind: GPUInfo, external: NOTHING, traffic };
  const hosts = new Hosts(simulation);
  const knowledge = new Knowledge();
  const queues = new Map<string, WorkQueue>();
  const program = gpuInfoProgram({
    start: (world, manager) => {
      const view = hosts.viewFor(world);
      knowledge.add({ world, manager, hosts: view });
      return view;
    },
    onQueue: (identity, queue) => queues.set(identity, queue),
    onLog: () => undefined,
  });
  const names = choices.oneIn(4) ? (['alpha', 'beta', 'gamma'] as const) : (['alpha', 'beta'] as const);
  const replicas = new Replicas({ simulation, traffic, names, program });
  const now = () => EPOCH_MS + schedule.now + replicas.passedMs;
  const reservations = new ReservationHistory(server, traffic);
  reservations.listen((before, after) => {
    for (const uid of new Set([...before.keys(), ...after.keys()]))
      if (!same(before.get(uid), after.get(uid)))
        simulation.note('ledger', `${uid}: ${JSON.stringify(after.get(uid) ?? 'none')}`);
  });
  const gpuTruth: GpuTruth = { reservations, jobs: new JobHistory(server), knowledge, hosts, now };
  const holder = new Holder(truth, LEASE);
  const invariants = [
    ...invariantsOf(gpuTruth),
    emptyQueue(() => queues.entries().find(([identity]) => holder.is(identity))?.[1]),
  ];
  countCriticalMoments(truth, gpuTruth);
  const faultInjector = new FaultInjector({
    simulation,
    replicas,
    origins: [API_SERVER],
    skewMs: SKEW_MS,
    more: { [COMPACTED]: () => server.compact() },
  });
  injectTargetedFaults(truth, faultInjector);
  const nodes = new Nodes(simulation, server, now);
  const workload = new Workload(simulation, server, hosts);
  const user = new User(simulation, server);
  const faultMs = 50_000 + choices.pick(60_000);
  const plan = (most: number, act: () => void) => atRandomTimes(simulation, most, faultMs, act);
  nodes.setUp();
  replicas.start();
  user.plan(faultMs);
  plan(MAX_ACTIONS.nodes, () => nodes.act());
  plan(MAX_ACTIONS.workload, () => workload.act());
  plan(MAX_ACTIONS.hosts, () => hosts.act());
  plan(MAX_ACTIONS.passes, () =>
    replicas.pass(choices.one([30 * 60_000, 59 * 60_000, 61 * 60_000, 2 * HOUR_MS])),
  );
  plan(MAX_ACTIONS.deletions, () => user.deleteReservation(reservations.current));
  if (!choices.oneIn(4)) calmAtFirst(simulation, CALM_MS.least, CALM_MS.most);
  const heal = () => {
    hosts.heal();
    workload.stop();
    if (choices.oneIn(2)) user.resumeAll();
    if (choices.oneIn(2)) nodes.repair();
  };
  let changedAt = 0;
  server.listen(({ resource }) => {
    if (resource.kind.kind !== 'Lease') changedAt = schedule.now;
  });
  let usageAt = 0;
  /**
   * Times at which a status may change without a change of any object: reservations end, and maintenance begins or
   * ends.
   */
  const boundaries = () => [
    ...[...reservations.current.values()].flatMap((each) => (isLive(each) ? (each.until ?? []) : [])),
    ...[...server.objects(Node)].flatMap((node) => maintenanceOf(node)?.map((time) => time ?? 0) ?? []),
  ];
  const isReady = () => {
    if (schedule.now > usageAt + USAGE_MS) {
      usageAt = schedule.now;
      hosts.changeUsage();
    }
    if (schedule.now <= changedAt + SWEEP_MS) return false;
    const near = boundaries().filter((at) => at > now() - QUIET_MS.before && at < now() + QUIET_MS.after);
    if (near.length === 0) return true;
    // Advances the clocks beyond the earliest boundary, because a status that changes at a boundary must not change in
    // the idle phase. The next call handles the other boundaries.
    const soonest = Math.min(...near);
    replicas.pass(Math.max(soonest - now(), 0) + QUIET_MS.before);
    changedAt = schedule.now;
    return false;
  };
  return runHistory({
    truth,
    faultInjector,
    invariants,
    faultMs,
    boundMs: BOUND_MS,
    onHealed: heal,
    isConverged: () => isReady() && isSettled(truth, invariants),
  });
}

/** No external resources, because the GPUInfo controller manages nothing outside the API server. */
const NOTHING: ExternalResources = { all: () => [], listen: () => undefined };

function invariantsOf(truth: GpuTruth): readonly Invariant[] {
  return [
    gpusAreReservedOnce(truth),
    choosesSuitableNodes(truth),
    oldestFirst(truth),
    unknownFactsMoveNothing(truth),
    dropsOnlyWhatIsGone(truth),
    endedStaysEnded(truth),
    neverGoesBack(truth),
    runningJobsKeepTheirNode(truth),
    endsWithItsJob(truth),
    droppedWithItsObject(truth),
    statusFollowsLedger(truth),
    observedGenerationNeverGoesBack,
    onlyTheLeaderWrites(API_SERVER, LEASE),
    answered(truth),
  ];
}
