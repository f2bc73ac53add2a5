import { timeOf } from '../times.ts';
import type { Verdict } from './allocation.ts';
import type { GPUInfoOutcome, GPUInfoReason } from './conditions.ts';
import type { Evaluation } from './evaluation.ts';
import type { Request } from './request.ts';
import type { Reservation } from './reservation.ts';
import type { Rejection } from './suitability.ts';

/* Results of a request as conditions. Messages contain only absolute times and thus do not change with time alone. */

/** Returns the outcome of a request that has a node. */
export function reservedOutcome({ node, gpus, until }: Reservation): GPUInfoOutcome {
  // A node without GPUs is not reserved exclusively: other requests may select the same node.
  const what =
    gpus === 0
      ? `Node ${node} is selected`
      : `${gpus === 1 ? '1 GPU' : `${gpus} GPUs`} of node ${node} ${gpus === 1 ? 'is' : 'are'} reserved`;
  const end = until === undefined ? 'the job ends or the object is deleted' : timeOf(until);
  return { state: 'ready', reason: 'Reserved', message: `${what} until ${end}` };
}

/** Returns the outcome of a request whose reservation has ended. */
export function endedOutcome({ node, ended }: Reservation): GPUInfoOutcome {
  const cause = ended?.reason === 'JobEnded' ? 'its job has ended' : 'desAccTime has passed';
  return {
    state: 'stalled',
    reason: 'ReservationEnded',
    message: `The reservation of node ${node} ended at ${timeOf(ended?.at ?? 0)} because ${cause}. The operator reserves a node again when the spec changes`,
  };
}

/** Returns the outcome of a request that has no node. */
export function pendingOutcome(
  { hours, gpus, mayReserve, isDeleting }: Request,
  evaluation: Evaluation,
  refusedBy: Verdict['refusedBy'],
): GPUInfoOutcome {
  if (isDeleting)
    return {
      state: 'progressing',
      reason: 'Deleting',
      message: 'The operator reserves no node because the object is being deleted',
    };
  if (!mayReserve)
    return {
      state: 'progressing',
      reason: 'Paused',
      message: `The operator reserves no node while the object is paused. ${evaluation.summary()}`,
    };
  if (refusedBy !== undefined)
    return {
      state: 'progressing',
      reason: refusedBy,
      message: REFUSALS[refusedBy],
    };
  const closest = evaluation.closest();
  if (closest === undefined)
    return { state: 'progressing', reason: 'NoNodes', message: 'The cluster has no nodes' };
  const { reason, problem } = PROBLEMS[closest];
  const wanted = `${hours} h${gpus > 0 ? ` with ${gpus === 1 ? '1 GPU' : `${gpus} GPUs`}` : ''}`;
  return {
    state: 'progressing',
    reason,
    message: `No node is suitable for ${wanted}: ${problem}. ${evaluation.summary()}`,
    isUnknown: closest === 'FactsUnknown',
  };
}

const REFUSALS: Readonly<Record<NonNullable<Verdict['refusedBy']>, string>> = {
  TooManyReservations:
    'The limit of stored reservations, of the namespace or of the cluster, is reached. Delete GPUInfos that are no longer needed, including ended ones',
};

interface Problem {
  readonly reason: GPUInfoReason;
  readonly problem: string;
}

const notReady: Problem = { reason: 'NodesNotReady', problem: 'no job can start on the matching nodes now' };
const tooShort: Problem = { reason: 'TooShort', problem: 'no matching node is available long enough' };

/** Reason and message by rejection. The outcome reports the rejection of the node that is closest to being suitable. */
const PROBLEMS: Readonly<Record<Rejection, Problem>> = {
  OtherLabels: { reason: 'NoMatchingNode', problem: 'no node has the labels of spec.nodeSelector' },
  NoGpu: { reason: 'NoGpu', problem: 'no node has a GPU' },
  HasGpu: { reason: 'OnlyGpuNodes', problem: 'all nodes have GPUs' },
  OtherModel: { reason: 'NoMatchingModel', problem: 'no node has GPUs that match spec.gpuModel' },
  TooFewGpus: { reason: 'TooFewGpus', problem: 'no node has enough GPUs' },
  FactsUnknown: { reason: 'FactsUnknown', problem: 'the state of the matching nodes is unknown or stale' },
  NotReady: notReady,
  Unschedulable: notReady,
  Tainted: notReady,
  PoweredOff: notReady,
  HostUnavailable: notReady,
  HostInMaintenance: notReady,
  InUse: { reason: 'AllInUse', problem: 'pods use all matching GPUs' },
  Reserved: { reason: 'AllReserved', problem: 'all matching GPUs are reserved or in use' },
  TooShort: tooShort,
  BeyondHorizon: tooShort,
};
