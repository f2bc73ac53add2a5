import { VM } from '@vmwright/operator';
import type { WorkQueue } from '@vmwright/runtime';
import { API_SERVER, startApiServer } from '../apiserver/simulated.ts';
import type { Cloud } from '../cloud/cloud.ts';
import { CLOUD, CLOUD_FAULTS, simulatedCloud } from '../cloud/simulated.ts';
import { auditedDeletionsAreTrue, onExternalDeletion } from '../invariants/audit.ts';
import { nothingLeaked } from '../invariants/garbage.ts';
import type { Invariant, Truth } from '../invariants/invariant.ts';
import { Holder, onlyTheLeaderWrites } from '../invariants/leaders.ts';
import { atMostOneMachine } from '../invariants/machines.ts';
import {
  converged,
  finalizerStaysWhileWanted,
  noSecretOutsideSecrets,
  noStuckFinalizer,
} from '../invariants/objects.ts';
import { emptyQueue } from '../invariants/queues.ts';
import { FaultInjector } from '../scenario/fault-injector.ts';
import { isSettled, runHistory } from '../scenario/history.ts';
import { COMPACTED, commonFaults } from '../scenario/must-happen.ts';
import { LEASE } from '../scenario/observed-manager.ts';
import { Replicas } from '../scenario/replicas.ts';
import { planRestore, RESTORED } from '../scenario/restore.ts';
import type { Scenario, Violation } from '../scenario/scenario.ts';
import { Traffic } from '../scenario/traffic.ts';
import type { Simulation } from '../world/simulation.ts';
import { EPOCH_MS } from '../world/world.ts';
import { CRITICAL_MOMENTS, countCriticalMoments, counted } from './critical-moments.ts';
import { externalResourcesOf } from './external-resources.ts';
import {
  conditionsNeverGoBack,
  foreignVmsUntouched,
  intentFirst,
  keyNotLogged,
  machineDeletedFirst,
  noWantedVmDeleted,
  orphanedOnlyWhenRequested,
  recreationBacksOff,
  runningIsTrue,
  vmIdIsStable,
} from './invariants.ts';
import { LATE_FAULTS, LateFaults } from './late-faults.ts';
import { SERVED_VM } from './objects.ts';
import { FINALIZER, vmProgram } from './program.ts';
import { problemOf } from './settled.ts';
import { injectTargetedFaults } from './targeted-faults.ts';
import { THIRD_PARTY_ACTIONS, ThirdParties } from './third-parties.ts';
import { ALL, STATUS_EDITS, User } from './user.ts';

const API_KEY = 'the-key-of-the-cloud';
const FRESH = 'fresh';

/** Time from the end of the faults until all user requests have arrived, including those that pause a VM. */
const USER_SETTLED_MS = 46_000;
/** Maximum transit time of a user request while no faults are active. */
const MAX_TRANSIT_MS = 13_000;
/** Maximum duration of a list with several pages. When the list ends, its first page can be this old. */
const LIST_MS = 40_000;
/**
 * Maximum time until convergence. It is longer than the default: if a server name is taken, the operator retries only
 * after five minutes.
 */
const BOUND_MS = 900_000;

/** Scenario in which two operator replicas manage VMs in the private cloud during faults. */
export const vm: Scenario = {
  name: 'vm',
  mustHappen: [
    ...commonFaults(CLOUD),
    ...THIRD_PARTY_ACTIONS,
    ...LATE_FAULTS,
    ...STATUS_EDITS,
    ...CRITICAL_MOMENTS,
    RESTORED,
  ],
  run: runScenario,
};

function runScenario(simulation: Simulation): Promise<readonly Violation[]> {
  const { choices, schedule } = simulation;
  const server = startApiServer(simulation);
  server.serveResource(SERVED_VM);
  const cloud = simulatedCloud(simulation, API_KEY);
  const traffic = new Traffic(simulation);
  const truth: Truth = { simulation, server, kind: VM, external: externalResourcesOf(cloud), traffic };
  traffic.serve(API_SERVER, server);
  traffic.serve(CLOUD, counted(truth, cloud), CLOUD_FAULTS);
  const queues = new Map<string, WorkQueue>();
  const readers: ((line: string, identity: string) => void)[] = [];
  const program = vmProgram({
    apiKey: API_KEY,
    // Keeps only the first queue of each replica, which belongs to the VM controller.
    onQueue: (identity, queue) => void (queues.has(identity) || queues.set(identity, queue)),
    onLog: (line, identity) => {
      for (const read of readers) read(line, identity);
    },
  });
  const replicas = new Replicas({ simulation, traffic, names: ['alpha', 'beta'], program });
  const thirdParties = new ThirdParties(simulation, cloud, replicas);
  thirdParties.setUp();
  countCriticalMoments(truth, cloud);
  const holder = new Holder(truth, LEASE);
  let healedAt: number | undefined;
  const lateFaults = new LateFaults(truth, replicas);
  const invariants = [
    lateFaults.unknownWithoutAnswer,
    lateFaults.statusRestored,
    ...invariantsOf(cloud),
    runningIsTrue(cloud, () => healedAt),
    keyNotLogged(API_KEY, (read) => readers.push(read)),
    auditedDeletionsAreTrue({ lines: (read) => readers.push(read), onDeleted: onExternalDeletion }),
    nothingLeaked({ lease: LEASE, lines: (read) => readers.push(read) }),
    emptyQueue(() => queues.entries().find(([identity]) => holder.is(identity))?.[1]),
  ];
  const faultInjector = new FaultInjector({
    simulation,
    replicas,
    origins: [API_SERVER, CLOUD],
    more: { [COMPACTED]: () => server.compact() },
  });
  const user = new User(simulation, cloud);
  const faultMs = 40_000 + choices.pick(40_000);
  injectTargetedFaults(truth, { faultInjector, user, thirdParties, cloud });
  replicas.start();
  user.plan(faultMs);
  thirdParties.plan(faultMs);
  planRestore(truth, faultMs);
  const hasFresh = () => [...server.objects(VM)].some(({ metadata }) => metadata.name === FRESH);
  const heal = () => {
    healedAt = schedule.now;
    thirdParties.stop();
    user.create(FRESH, `vm-${FRESH}`);
    // In most runs, the user triggers a reconcile of each VM. In the other runs, the operator itself must retry a taken
    // server name, which it does only after five minutes.
    const touch = !choices.oneIn(4);
    schedule.after(USER_SETTLED_MS, () => user.resume(ALL, touch));
    lateFaults.begin(user.client, USER_SETTLED_MS + MAX_TRANSIT_MS);
  };
  const isQuiet = () => schedule.now > (cloud.servers.history.at(-1)?.atMs ?? 0) - EPOCH_MS + LIST_MS;
  const isReady = () =>
    healedAt !== undefined &&
    schedule.now > healedAt + USER_SETTLED_MS + MAX_TRANSIT_MS &&
    lateFaults.isOver &&
    isQuiet();
  return runHistory({
    truth,
    faultInjector,
    invariants,
    faultMs,
    boundMs: BOUND_MS,
    onHealed: heal,
    isConverged: () => isReady() && hasFresh() && isSettled(truth, invariants),
  });
}

function invariantsOf(cloud: Cloud): readonly Invariant[] {
  return [
    atMostOneMachine,
    foreignVmsUntouched(cloud),
    noWantedVmDeleted(cloud),
    vmIdIsStable(cloud),
    recreationBacksOff,
    intentFirst,
    machineDeletedFirst(cloud),
    orphanedOnlyWhenRequested(cloud),
    conditionsNeverGoBack,
    finalizerStaysWhileWanted(FINALIZER),
    onlyTheLeaderWrites(API_SERVER, LEASE),
    onlyTheLeaderWrites(CLOUD, LEASE),
    noSecretOutsideSecrets(API_KEY),
    noStuckFinalizer,
    converged((object) => problemOf(object, cloud)),
  ];
}
