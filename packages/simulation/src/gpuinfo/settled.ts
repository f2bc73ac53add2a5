import { GPUInfo } from '@vmwright/operator';
import type { StoredObject } from '../apiserver/object.ts';
import type { Invariant, Truth } from '../invariants/invariant.ts';
import { conditionOf, find, numberAt, phaseIn, textAt } from '../scenario/stored-objects.ts';
import { isWaiting } from './choice-invariants.ts';
import type { GpuTruth } from './gpu-truth.ts';
import { Node } from './kinds.ts';
import { truthOf } from './knowledge.ts';
import { isLive, type StoredReservation } from './reservations.ts';
import { obstacle, type Wanted, wantedBy, windowFrom } from './rules.ts';

const NONE = 'None available';

/** After the faults have stopped, every GPUInfo gets the status that follows from the state of the cluster. */
export function answered(gpuTruth: GpuTruth): Invariant {
  return {
    name: 'converged',
    healed: function* (truth) {
      for (const info of truth.server.objects(GPUInfo)) {
        const problem = problemOf(info, truth, gpuTruth);
        if (problem !== undefined)
          yield `${info.metadata.name} (${info.metadata.uid}): ${problem}, status ${JSON.stringify(info.status)}`;
      }
    },
  };
}

function problemOf(info: StoredObject, truth: Truth, gpuTruth: GpuTruth): string | undefined {
  const { uid = '', generation } = info.metadata;
  const reservation = gpuTruth.reservations.current.get(uid);
  const wanted = wantedBy(info);
  if (numberAt(info, 'status', 'observedGeneration') !== generation)
    return 'its status is for another generation';
  const ready = conditionOf(info, 'Ready')?.status;
  const node = textAt(info, 'status', 'suitableNodeName');
  if (isLive(reservation)) {
    if (phaseIn(info) !== 'Reserved' || ready !== 'True') return 'it is not Reserved';
    if (node !== reservation.node) return `it shows ${node} instead of ${reservation.node}`;
    const until = textAt(info, 'status', 'reservedUntil');
    if ((until && Date.parse(until)) !== reservation.until) return 'reservedUntil is wrong';
    return reservationProblem(wanted, reservation, truth, gpuTruth);
  }
  if (ready === 'True' || node !== NONE) return `it shows ${node}, but has no reservation`;
  if (reservation !== undefined && reservation.generation === generation)
    return phaseIn(info) === 'Ended' ? undefined : 'its end is not shown';
  if (phaseIn(info) !== 'Pending') return 'it is not Pending';
  if (!isWaiting(wanted, gpuTruth.reservations.current)) return undefined;
  const known = truthOf(truth.server, gpuTruth.hosts);
  const window = windowFrom(wanted, gpuTruth.now());
  const suitable = known.nodes.find(
    (each) => obstacle(known, gpuTruth.reservations.current, wanted, each, window) === undefined,
  );
  return suitable && `it is Pending, but ${suitable.metadata.name} is suitable`;
}

function reservationProblem(
  wanted: Wanted,
  { node, generation, until, inUse }: StoredReservation,
  { server }: Truth,
  { reservations, jobs, hosts, now }: GpuTruth,
): string | undefined {
  if (until !== undefined && until <= now()) return 'its time has passed';
  if (!inUse && jobs.isActive(wanted.uid)) return 'its job runs, but inUse is not set';
  if (inUse && !jobs.isActive(wanted.uid) && !jobs.mayBeActive(wanted.uid))
    return 'its job has ended, but inUse is set';
  if (wanted.isPaused) return undefined;
  const isRunning = jobs.isRunningOn(wanted.uid, node);
  if (generation !== wanted.generation && !isRunning) return 'its reservation is for another generation';
  const found = find(server, Node, undefined, node);
  if (found === undefined) return `${node} is gone`;
  if (isRunning) return undefined;
  const window = { start: now(), end: Math.max(now(), until ?? 0) };
  const problem = obstacle(truthOf(server, hosts), reservations.current, wanted, found, window);
  return problem && `${node} stays reserved although ${problem}`;
}
