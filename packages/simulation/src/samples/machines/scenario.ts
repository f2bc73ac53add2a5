import type { WorkQueue } from '@vmwright/runtime';
import { fieldAt } from '../../apiserver/json.ts';
import type { StoredObject } from '../../apiserver/object.ts';
import { API_SERVER, startApiServer } from '../../apiserver/simulated.ts';
import type { ExternalResource, ExternalResources } from '../../invariants/external-resources.ts';
import type { Invariant, Truth } from '../../invariants/invariant.ts';
import { Holder, onlyTheLeaderWrites } from '../../invariants/leaders.ts';
import {
  atMostOneMachine,
  foreignMachinesUntouched,
  nothingLeaked,
  noWantedMachineDeleted,
} from '../../invariants/machines.ts';
import {
  converged,
  finalizerStaysWhileWanted,
  identityNeverChanges,
  noSecretOutsideSecrets,
  noStuckFinalizer,
  observedGenerationNeverGoesBack,
  sameEndState,
} from '../../invariants/objects.ts';
import { emptyQueue } from '../../invariants/queues.ts';
import type { RemoteMachine } from '../../remote/machine.ts';
import { REMOTE, REMOTE_FAULTS, type Remote, startRemote } from '../../remote/remote.ts';
import { FaultInjector } from '../../scenario/fault-injector.ts';
import { isSettled, runHistory } from '../../scenario/history.ts';
import { COMPACTED, commonFaults } from '../../scenario/must-happen.ts';
import { Replicas } from '../../scenario/replicas.ts';
import type { Scenario, Violation } from '../../scenario/scenario.ts';
import { Traffic } from '../../scenario/traffic.ts';
import type { Simulation } from '../../world/simulation.ts';
import { FINALIZER, LEASE, machineProgram } from './controller.ts';
import { COLLECTED, CRITICAL_MOMENTS, countCriticalMoments } from './critical-moments.ts';
import { MANAGER } from './plan.ts';
import { Machine } from './resource.ts';
import { injectTargetedFaults } from './targeted-faults.ts';
import { User } from './user.ts';
import type { Variant } from './variant.ts';

const TOKEN = 'the-backends-token';

/** Two replicas of the sample controller over the remote backend, under faults. */
export function machines(variant: Variant): Scenario {
  return {
    name: `machines-${variant.name}`,
    mustHappen: [
      ...commonFaults(REMOTE),
      ...CRITICAL_MOMENTS,
      ...(variant.garbageCollection === 'never' ? [] : [COLLECTED]),
    ],
    run: (simulation) => runScenario(simulation, variant),
  };
}

function runScenario(simulation: Simulation, variant: Variant): Promise<readonly Violation[]> {
  const { choices } = simulation;
  const server = startApiServer(simulation);
  server.serve(Machine);
  const remote = startRemote(simulation, TOKEN);
  remote.add({ size: 1 });
  remote.add({ size: 1, owner: { manager: 'somebody-else', uid: simulation.uuid() } });
  const traffic = new Traffic(simulation);
  traffic.serve(API_SERVER, server);
  traffic.serve(REMOTE, remote, REMOTE_FAULTS);
  const truth: Truth = { simulation, server, kind: Machine, external: externalResourcesOf(remote), traffic };
  countCriticalMoments(truth, remote);
  const queues = new Map<string, WorkQueue>();
  const program = machineProgram({
    variant,
    token: TOKEN,
    onQueue: (identity, queue) => void queues.set(identity, queue),
  });
  const holder = new Holder(truth, LEASE);
  const leadersQueue = () => queues.entries().find(([identity]) => holder.is(identity))?.[1];
  const invariants = [...INVARIANTS, emptyQueue(leadersQueue)];
  const replicas = new Replicas({ simulation, traffic, names: ['alpha', 'beta'], program });
  const faultInjector = new FaultInjector({
    simulation,
    replicas,
    origins: [API_SERVER, REMOTE],
    more: { [COMPACTED]: () => server.compact() },
  });
  const user = new User(simulation);
  const faultMs = 50_000 + choices.pick(50_000);
  injectTargetedFaults(truth, faultInjector, user);
  replicas.start();
  user.plan(faultMs);
  const hasFresh = () => [...server.objects(Machine)].some(({ metadata }) => metadata.name === 'fresh');
  return runHistory({
    truth,
    faultInjector,
    invariants,
    faultMs,
    onHealed: () => user.apply('fresh', 1),
    isConverged: () => hasFresh() && isSettled(truth, invariants),
  });
}

const INVARIANTS: readonly Invariant[] = [
  atMostOneMachine,
  foreignMachinesUntouched,
  noWantedMachineDeleted,
  identityNeverChanges(['status', 'machineId']),
  observedGenerationNeverGoesBack,
  finalizerStaysWhileWanted(FINALIZER),
  onlyTheLeaderWrites(API_SERVER, LEASE),
  noSecretOutsideSecrets(TOKEN),
  nothingLeaked,
  noStuckFinalizer,
  converged(problemOf),
  sameEndState(({ status }) => ({
    phase: fieldAt(status, ['phase']),
    size: fieldAt(status, ['size']),
  })),
];

/** Returns why an object has not converged; undefined if it has. */
function problemOf(object: StoredObject, { external }: Truth): string | undefined {
  const { spec, status, metadata } = object;
  const mine = [...external.all()].filter(({ owner }) => owner === metadata.uid);
  const [machine] = mine;
  if (machine === undefined || mine.length > 1) return `it has ${mine.length} machines`;
  if (fieldAt(status, ['machineId']) !== machine.id)
    return `its machine is ${machine.id}, but its status is ${JSON.stringify(status)}`;
  const size = fieldAt(spec, ['size']);
  if (!('size' in machine) || machine.size !== size) return `its machine does not have size ${size}`;
  const isReported =
    fieldAt(status, ['size']) === size && fieldAt(status, ['observedGeneration']) === metadata.generation;
  return isReported && fieldAt(status, ['phase']) === 'Ready'
    ? undefined
    : `its status is ${JSON.stringify(status)}`;
}

/** Backend model as the invariants see it. */
function externalResourcesOf(remote: Remote): ExternalResources {
  return {
    *all() {
      for (const machine of remote.machines.values()) yield resourceOf(machine);
    },
    listen: (listener) =>
      remote.listen(({ before, after }) =>
        listener({ before: before && resourceOf(before), after: after && resourceOf(after) }),
      ),
  };
}

function resourceOf({ id, owner, state, size }: RemoteMachine): ExternalResource & { readonly size: number } {
  return {
    id,
    owner: owner?.manager === MANAGER ? owner.uid : undefined,
    deleting: state === 'deleting',
    size,
  };
}
