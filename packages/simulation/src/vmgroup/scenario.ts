import { VmGroup } from '@vmwright/operator';
import type { WorkQueue } from '@vmwright/runtime';
import { API_SERVER, startApiServer } from '../apiserver/simulated.ts';
import { nothingLeaked } from '../invariants/garbage.ts';
import type { Invariant, Truth } from '../invariants/invariant.ts';
import { Holder, onlyTheLeaderWrites } from '../invariants/leaders.ts';
import {
  converged,
  finalizerStaysWhileWanted,
  noSecretOutsideSecrets,
  noStuckFinalizer,
} from '../invariants/objects.ts';
import { emptyQueue } from '../invariants/queues.ts';
import { calmAtFirst } from '../scenario/calm-start.ts';
import { FaultInjector } from '../scenario/fault-injector.ts';
import { isSettled, runHistory } from '../scenario/history.ts';
import { COMPACTED, commonFaults } from '../scenario/must-happen.ts';
import { LEASE } from '../scenario/observed-manager.ts';
import { Replicas } from '../scenario/replicas.ts';
import { planRestore, RESTORED } from '../scenario/restore.ts';
import type { Scenario, Violation } from '../scenario/scenario.ts';
import { Traffic } from '../scenario/traffic.ts';
import { Address } from '../vcenter/address.ts';
import { type Pace, simulatedVcenter, VCENTER, VCENTER_FAULTS } from '../vcenter/simulated.ts';
import type { Vcenter } from '../vcenter/vcenter.ts';
import type { Simulation } from '../world/simulation.ts';
import { CRITICAL_MOMENTS, countCriticalMoments, REPORTED } from './critical-moments.ts';
import { externalResourcesOf } from './external-resources.ts';
import { createdFoldersHaveOwners, groupFoldersStay, userFoldersStay } from './folders.ts';
import { ForeignChanges } from './foreign-changes.ts';
import {
  foreignMachinesLeftAlone,
  limitsConcurrency,
  movedMachinesStay,
  nameTakenIsTrue,
  noWantedMachineDestroyed,
  oneMachinePerSlot,
  onlyTheLeaderChangesVcenter,
  orphanedOnlyWhenRequested,
  passwordNotLogged,
  readyNeverGoesBack,
  respectsMaxUnavailable,
  slotFirst,
  slotsAreStable,
  slotsOutliveMachines,
} from './invariants.ts';
import { SERVED_VMGROUP } from './objects.ts';
import { FINALIZER, vmGroupProgram } from './program.ts';
import { problemOf } from './settled.ts';
import { injectTargetedFaults } from './targeted-faults.ts';
import { THIRD_PARTY_ACTIONS, ThirdParties } from './third-parties.ts';
import { FRESH, User } from './user.ts';

const USER = { username: 'operator', password: 'the-password-of-vcenter' };

/** Time from the end of the faults until all user requests have arrived, including those that pause a group. */
const USER_SETTLED_MS = 46_000;
/** Maximum transit time of a user request while no faults are active. */
const MAX_TRANSIT_MS = 13_000;
/**
 * Maximum time until convergence. It is longer than the default, because the operator waits up to 15 minutes before it
 * retries a rejected resize.
 */
const BOUND_MS = 1_200_000;

/** Duration of the initial phase without network faults; shorter than the fault phase. */
const CALM_MS = { least: 4_000, most: 16_000 };

/** Scenario in which two operator replicas manage VmGroups in a vCenter during faults. */
export const vmgroup: Scenario = {
  name: 'vmgroup',
  mustHappen: [
    ...commonFaults(VCENTER).filter((what) => what !== 'a list was old'),
    ...THIRD_PARTY_ACTIONS,
    ...CRITICAL_MOMENTS,
    RESTORED,
    ...Object.values(REPORTED),
  ],
  run: runScenario,
};

function runScenario(simulation: Simulation): Promise<readonly Violation[]> {
  const { choices, schedule } = simulation;
  const server = startApiServer(simulation);
  server.serveResource(SERVED_VMGROUP);
  const pace: Pace = { nextCloneMs: undefined };
  const vcenter = simulatedVcenter(simulation, USER, pace);
  const foreign = new ForeignChanges();
  const another = simulatedVcenter(simulation, USER, undefined, {
    instanceUuid: 'f7a7a9d2-5f1e-4b8b-9d7c-000000000002',
    onChange: (what) => foreign.report(what),
  });
  const address = new Address(vcenter, another);
  const traffic = new Traffic(simulation);
  const truth: Truth = { simulation, server, kind: VmGroup, external: externalResourcesOf(vcenter), traffic };
  traffic.serve(API_SERVER, server);
  traffic.serve(VCENTER, address, VCENTER_FAULTS);
  const queues = new Map<string, WorkQueue>();
  const readers: ((line: string, identity: string) => void)[] = [];
  const program = vmGroupProgram({
    ...USER,
    onQueue: (identity, queue) => void queues.set(identity, queue),
    onLog: (line, identity) => {
      for (const read of readers) read(line, identity);
    },
  });
  const replicas = new Replicas({ simulation, traffic, names: ['alpha', 'beta'], program });
  const thirdParties = new ThirdParties(simulation, vcenter, replicas, address);
  thirdParties.setUp();
  countCriticalMoments(truth, vcenter);
  const holder = new Holder(truth, LEASE);
  let healedAt: number | undefined;
  const invariants = [
    ...invariantsOf(vcenter),
    foreign,
    passwordNotLogged(USER.password, (read) => readers.push(read)),
    nothingLeaked({ lease: LEASE, lines: (read) => readers.push(read) }),
    emptyQueue(() => queues.entries().find(([identity]) => holder.is(identity))?.[1]),
  ];
  const faultInjector = new FaultInjector({
    simulation,
    replicas,
    origins: [API_SERVER, VCENTER],
    more: { [COMPACTED]: () => server.compact() },
  });
  const user = new User(simulation);
  const faultMs = 40_000 + choices.pick(40_000);
  injectTargetedFaults(truth, { faultInjector, user, thirdParties, vcenter, pace, replicas });
  replicas.start();
  user.plan(faultMs);
  thirdParties.plan(faultMs);
  planRestore(truth, faultMs);
  // Starts most runs without network faults. Faults reveal few bugs before the leader has connected to vCenter.
  if (!choices.oneIn(4)) calmAtFirst(simulation, CALM_MS.least, CALM_MS.most);
  const hasFresh = () => [...server.objects(VmGroup)].some(({ metadata }) => metadata.name === FRESH.name);
  const heal = () => {
    healedAt = schedule.now;
    thirdParties.stop();
    user.create(FRESH, { replicas: 1, cpu: 1, memory: 1, template: 'small' });
    schedule.after(USER_SETTLED_MS, () => user.resume());
  };
  const isReady = () => healedAt !== undefined && schedule.now > healedAt + USER_SETTLED_MS + MAX_TRANSIT_MS;
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

function invariantsOf(vcenter: Vcenter): readonly Invariant[] {
  return [
    oneMachinePerSlot(vcenter),
    foreignMachinesLeftAlone(vcenter),
    noWantedMachineDestroyed(vcenter),
    orphanedOnlyWhenRequested(vcenter),
    slotsOutliveMachines(vcenter),
    movedMachinesStay(vcenter),
    groupFoldersStay(vcenter),
    userFoldersStay(vcenter),
    createdFoldersHaveOwners(vcenter),
    slotFirst,
    slotsAreStable,
    respectsMaxUnavailable,
    limitsConcurrency(vcenter),
    nameTakenIsTrue(vcenter),
    readyNeverGoesBack,
    finalizerStaysWhileWanted(FINALIZER),
    onlyTheLeaderWrites(API_SERVER, LEASE),
    onlyTheLeaderChangesVcenter,
    noSecretOutsideSecrets(USER.password),
    noStuckFinalizer,
    converged((object, truth) => problemOf(object, truth, vcenter)),
  ];
}
