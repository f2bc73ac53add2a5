import { VirtualMachine, VMDiskImage } from '@vmwright/operator';
import type { WorkQueue } from '@vmwright/runtime';
import { API_SERVER, startApiServer } from '../apiserver/simulated.ts';
import { auditedDeletionsAreTrue } from '../invariants/audit.ts';
import type { ExternalResources } from '../invariants/external-resources.ts';
import type { Invariant, Truth } from '../invariants/invariant.ts';
import { Holder, onlyTheLeaderWrites } from '../invariants/leaders.ts';
import { finalizerStaysWhileWanted, observedGenerationNeverGoesBack } from '../invariants/objects.ts';
import { emptyQueue } from '../invariants/queues.ts';
import { serveKubevirt } from '../kubevirt/kinds.ts';
import { calmAtFirst } from '../scenario/calm-start.ts';
import { FaultInjector } from '../scenario/fault-injector.ts';
import { isSettled, runHistory } from '../scenario/history.ts';
import { COMPACTED, commonFaults } from '../scenario/must-happen.ts';
import { LEASE } from '../scenario/observed-manager.ts';
import { Replicas } from '../scenario/replicas.ts';
import type { Scenario, Violation } from '../scenario/scenario.ts';
import { Traffic } from '../scenario/traffic.ts';
import { type FaultRates, USUAL_FAULTS } from '../world/faults.ts';
import type { Simulation } from '../world/simulation.ts';
import { attemptsFailForAReason } from './attempt-invariants.ts';
import { BACKEND_FAULTS, Backends } from './backends.ts';
import { CRITICAL_MOMENTS, countCriticalMoments } from './critical-moments.ts';
import { childrenDeletedFirst, machineDeletedFirst, orphansAreKept } from './deletion-invariants.ts';
import { Foreign } from './foreign.ts';
import {
  dataKeptWhileReferenced,
  prunedOnlyWhenUnreferenced,
  readyHasData,
  referencesAreCounted,
  respectsMaxClones,
  SKEW_MS,
  snapshotAfterImport,
  templatesCreateSharedImages,
} from './image-invariants.ts';
import {
  choiceStoredFirst,
  oneAddressEach,
  oneOfEach,
  passwordStaysSecret,
  restartsBackOff,
  rootDiskKept,
} from './machine-invariants.ts';
import { SERVED_IMAGE, SERVED_VIRTUAL_MACHINE } from './objects.ts';
import { onAnyOperatorDelete } from './operator-writes.ts';
import { IMAGE_FINALIZER, kubevirtProgram, MACHINE_FINALIZER } from './program.ts';
import { References } from './references.ts';
import { converged, nothingStray } from './settled.ts';
import { limitsSyncs, oneImport, syncsHoldSlots } from './slot-invariants.ts';
import { injectTargetedFaults } from './targeted-faults.ts';
import { THIRD_PARTY_ACTIONS, ThirdParties } from './third-parties.ts';
import { FRESH, USER_ACTIONS, User } from './user.ts';

/** Time from the end of the faults until all user requests have arrived, including those that pause an object. */
const USER_SETTLED_MS = 46_000;
/**
 * In one of `oneIn` runs, a user gives all machines the same address, `ms` milliseconds after the faults have stopped.
 * By then, most machines run.
 */
const SHARED_ADDRESS = { oneIn: 3, ms: 150_000 };
/** Interval at which users follow the remedies in statuses: they retry failed images and delete broken disks. */
const USER_ROUND_MS = 40_000;
/** Maximum transit time of a request or a watch event while no faults are active. */
const MAX_TRANSIT_MS = 13_000;
/** Maximum time until convergence. It suffices to sync all images one by one, each after several failed attempts. */
const BOUND_MS = 1_200_000;

/** Duration of the initial phase without network faults; shorter than the fault phase. */
const CALM_MS = { least: 8_000, most: 22_000 };

/**
 * Fault rates on the connections to the API server. Faults are rarer than usual, because the operator watches ten
 * kinds, and notices a stalled watch only after more than a minute.
 */
const API_FAULTS: FaultRates = { ...USUAL_FAULTS, request: 20, line: 160 };

/** Scenario in which two or three operator replicas manage VirtualMachines on KubeVirt and CDI during faults. */
export const virtualmachine: Scenario = {
  name: 'virtualmachine',
  mustHappen: [
    ...commonFaults(API_SERVER).filter((what) => what !== 'a list was old'),
    ...BACKEND_FAULTS,
    ...USER_ACTIONS,
    ...THIRD_PARTY_ACTIONS,
    ...CRITICAL_MOMENTS,
  ],
  run: runScenario,
};

function runScenario(simulation: Simulation): Promise<readonly Violation[]> {
  const { choices, schedule } = simulation;
  const server = startApiServer(simulation);
  serveKubevirt(server);
  server.serveResource(SERVED_VIRTUAL_MACHINE);
  server.serveResource(SERVED_IMAGE);
  const traffic = new Traffic(simulation);
  traffic.serve(API_SERVER, server, API_FAULTS);
  const truth: Truth = { simulation, server, kind: VirtualMachine, external: NOTHING, traffic };
  const foreign = new Foreign(server);
  const backends = new Backends(simulation, server);
  const queues = new Map<string, WorkQueue[]>();
  const readers: ((line: string) => void)[] = [];
  const limit = 1 + choices.pick(2);
  const program = kubevirtProgram({
    limit,
    onQueue: (identity, queue) => {
      queues.set(identity, [...(queues.get(identity) ?? []), queue]);
    },
    onLog: (line) => {
      for (const read of readers) read(line);
    },
  });
  const names = choices.oneIn(4) ? (['alpha', 'beta', 'gamma'] as const) : (['alpha', 'beta'] as const);
  const replicas = new Replicas({ simulation, traffic, names, program });
  const holder = new Holder(truth, LEASE);
  const leaders = () => queues.entries().find(([identity]) => holder.is(identity))?.[1] ?? [];
  const invariants = [
    ...invariantsOf(limit, foreign, new References(server)),
    passwordStaysSecret((read) => readers.push(read)),
    auditedDeletionsAreTrue({ lines: (read) => readers.push(read), onDeleted: onAnyOperatorDelete }),
    emptyQueue(() => leaders().find(({ depth, working }) => depth + working.length > 0)),
  ];
  countCriticalMoments(truth);
  const faultInjector = new FaultInjector({
    simulation,
    replicas,
    origins: [API_SERVER],
    skewMs: SKEW_MS,
    more: { [COMPACTED]: () => server.compact() },
  });
  const user = new User(simulation, server);
  const thirdParties = new ThirdParties(simulation, server, foreign);
  const faultMs = 50_000 + choices.pick(50_000);
  injectTargetedFaults(truth, { faultInjector, user, thirdParties });
  thirdParties.setUp();
  replicas.start();
  user.plan(faultMs);
  thirdParties.plan(faultMs);
  backends.plan(faultMs);
  // Starts most runs without network faults. Faults reveal few bugs before the leader has created objects.
  if (!choices.oneIn(4)) calmAtFirst(simulation, CALM_MS.least, CALM_MS.most);
  let healedAt = Number.POSITIVE_INFINITY;
  let lastChangeMs = USER_SETTLED_MS;
  const heal = () => {
    healedAt = schedule.now;
    backends.calm();
    user.createFresh();
    schedule.after(USER_SETTLED_MS, () => user.resume());
    if (choices.oneIn(SHARED_ADDRESS.oneIn)) {
      lastChangeMs = SHARED_ADDRESS.ms;
      schedule.after(lastChangeMs, () => user.shareAddress());
    }
    for (let ms = USER_SETTLED_MS; ms < BOUND_MS / 2; ms += USER_ROUND_MS)
      schedule.after(ms, () => {
        user.retryFailed();
        thirdParties.deleteBrokenDisks();
      });
  };
  const hasFresh = () => server.objects(VirtualMachine).some(({ metadata }) => metadata.name === FRESH.name);
  let changedAt = 0;
  server.listen(({ resource }) => {
    if (resource.kind.kind !== 'Lease') changedAt = schedule.now;
  });
  const isReady = () =>
    schedule.now > Math.max(healedAt + lastChangeMs, changedAt) + MAX_TRANSIT_MS &&
    backends.isIdle &&
    hasFresh();
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

/** The controllers of VirtualMachines and VMDiskImages manage no resources outside the API server. */
const NOTHING: ExternalResources = { all: () => [], listen: () => undefined };

function invariantsOf(limit: number, foreign: Foreign, references: References): readonly Invariant[] {
  return [
    limitsSyncs(limit),
    syncsHoldSlots,
    oneImport,
    attemptsFailForAReason,
    dataKeptWhileReferenced,
    prunedOnlyWhenUnreferenced,
    snapshotAfterImport,
    readyHasData,
    templatesCreateSharedImages,
    respectsMaxClones,
    referencesAreCounted(references),
    oneOfEach,
    rootDiskKept,
    choiceStoredFirst,
    machineDeletedFirst,
    childrenDeletedFirst,
    orphansAreKept,
    oneAddressEach,
    restartsBackOff,
    foreign.invariant,
    observedGenerationNeverGoesBack,
    ofImages(observedGenerationNeverGoesBack),
    finalizerStaysWhileWanted(MACHINE_FINALIZER),
    ofImages(finalizerStaysWhileWanted(IMAGE_FINALIZER)),
    onlyTheLeaderWrites(API_SERVER, LEASE),
    converged(references),
    nothingStray(foreign),
  ];
}

/** Applies an invariant about the objects of `truth.kind` to images. */
function ofImages({ name, watch }: Invariant): Invariant {
  return { name, watch: (truth, violated) => watch?.({ ...truth, kind: VMDiskImage }, violated) };
}
