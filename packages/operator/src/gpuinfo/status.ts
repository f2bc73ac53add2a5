import { conditionOf, removeCondition, setCondition, withOutcome, withPaused } from '@vmwright/runtime';
import { pauseOf } from '../annotations.ts';
import { timeOf } from '../times.ts';
import type { Verdict } from './allocation.ts';
import type { GPUInfoOutcome, GPUInfoReason } from './conditions.ts';
import { Evaluation, type EvaluationInput, hoursUntil, rejectionMessage } from './evaluation.ts';
import { earliest, HOUR_MS, nextMaintenance } from './maintenance.ts';
import { endedOutcome, pendingOutcome, reservedOutcome } from './outcome.ts';
import { placementOf } from './placement.ts';
import type { Request } from './request.ts';
import type { Reservation } from './reservation.ts';
import { type GPUInfo, type GPUInfoStatus, NONE_AVAILABLE } from './resource.ts';
import { warningsFor } from './warnings.ts';

export const DEGRADED = 'Degraded';
const FACTS_COMPLETE = 'FactsComplete';
const SIMULATED = 'Simulated';

/** Fields of the status while no node is reserved. */
const NONE = {
  suitableNodeName: NONE_AVAILABLE,
  suitableHostName: NONE_AVAILABLE,
  nodeMemoryUsage: 0,
  nodeCPUUsage: 0,
  availableAcceleratorTime: 0,
} as const;

/** Returns the status of a request that has a node. */
export function reservedStatus(
  info: GPUInfo,
  { request, degradedBy }: Verdict,
  reservation: Reservation,
  input: EvaluationInput,
  now: number,
): GPUInfoStatus {
  const { until } = reservation;
  const status: GPUInfoStatus = {
    ...basics(info),
    phase: 'Reserved',
    suitableNodeName: reservation.node,
    ...nodeFacts(info, reservation, input, now),
    ...(until !== undefined && { reservedUntil: timeOf(until) }),
    ...explanation(info, request, reservation, input, now),
    ...placed(info, reservation, input, now),
  };
  const degraded = degradedBy && {
    reason: degradedBy,
    message: degradedMessage(request, reservation, degradedBy, input, now),
  };
  return report(info, status, reservedOutcome(reservation), input, now, degraded);
}

/** Returns the status of a request that has no node. */
export function pendingStatus(
  info: GPUInfo,
  { request, refusedBy }: Verdict,
  evaluation: Evaluation,
  input: EvaluationInput,
  now: number,
): GPUInfoStatus {
  const fitsIfShortenedTo = evaluation.fitsIfShortenedTo();
  const fitsFrom = evaluation.fitsFrom();
  const status: GPUInfoStatus = {
    ...basics(info),
    phase: 'Pending',
    ...NONE,
    summary: evaluation.summary(),
    candidates: evaluation.candidates(),
    ...(fitsIfShortenedTo !== undefined && { fitsIfShortenedTo }),
    ...(fitsFrom !== undefined && { fitsFrom: timeOf(fitsFrom) }),
  };
  return report(info, status, pendingOutcome(request, evaluation, refusedBy), input, now);
}

/** Returns the status of a request whose reservation has ended. */
export function endedStatus(
  info: GPUInfo,
  reservation: Reservation,
  input: EvaluationInput,
  now: number,
): GPUInfoStatus {
  const status: GPUInfoStatus = { ...basics(info), phase: 'Ended', ...NONE };
  return report(info, status, endedOutcome(reservation), input, now);
}

/** Returns the fields that each new status copies from the previous one: the conditions and the observed generation. */
function basics({ status }: GPUInfo): GPUInfoStatus {
  const { conditions, observedGeneration } = status ?? {};
  return {
    ...(conditions && { conditions }),
    ...(observedGeneration !== undefined && { observedGeneration }),
  };
}

/** Whether the status already describes this reservation and is based on the current spec. */
function isReported({ metadata, status }: GPUInfo, { node }: Reservation): boolean {
  const isCurrent = status?.observedGeneration === metadata.generation;
  return isCurrent && status?.phase === 'Reserved' && status.suitableNodeName === node;
}

/**
 * Returns the facts about the reserved node. CPU and memory usage stay as they were at the decision, because a change
 * of only the usage must not cause a status write. A fact that is unknown now keeps its last value.
 */
function nodeFacts(
  info: GPUInfo,
  reservation: Reservation,
  { allocation, horizonMs }: EvaluationInput,
  now: number,
): GPUInfoStatus {
  const { status = {} } = info;
  const { node, from } = reservation;
  const isKept = isReported(info, reservation);
  const candidate = allocation.nodes.get(node);
  if (candidate === undefined || (candidate.blocker?.reason === 'FactsUnknown' && isKept)) {
    const { suitableHostName = node, nodeMemoryUsage = 0, nodeCPUUsage = 0 } = isKept ? status : {};
    const { availableAcceleratorTime = 0, availableUntil, decidedBy } = isKept ? status : {};
    return {
      suitableHostName,
      nodeMemoryUsage,
      nodeCPUUsage,
      availableAcceleratorTime,
      ...(availableUntil !== undefined && { availableUntil }),
      ...(decidedBy !== undefined && { decidedBy }),
    };
  }
  const next = nextMaintenance(candidate.maintenance, now);
  const { startsAt = from + horizonMs } = next ?? {};
  const usage = isKept
    ? { memory: status.nodeMemoryUsage, cpu: status.nodeCPUUsage }
    : { memory: undefined, cpu: undefined };
  return {
    suitableHostName: candidate.host,
    nodeMemoryUsage: usage.memory ?? Math.round(candidate.memoryUsage),
    nodeCPUUsage: usage.cpu ?? Math.round(candidate.cpuUsage),
    availableAcceleratorTime: hoursUntil(startsAt, from),
    // The start is 0 if maintenance has begun at an unknown time; then no time is reported.
    ...(next !== undefined && startsAt > 0 && { availableUntil: timeOf(startsAt) }),
    decidedBy: next?.source ?? `horizon of ${horizonMs / HOUR_MS} h, because no maintenance is known`,
  };
}

/**
 * Returns the placement: what a job needs to run on the node. While the facts about the node are unknown, returns the
 * last placement.
 */
function placed(
  info: GPUInfo,
  reservation: Reservation,
  { allocation }: EvaluationInput,
  now: number,
): Pick<GPUInfoStatus, 'placement'> {
  const { metadata, status } = info;
  const { node, gpus, from, until } = reservation;
  const candidate = allocation.nodes.get(node);
  if (candidate === undefined || candidate.blocker?.reason === 'FactsUnknown') {
    const before = isReported(info, reservation) ? status?.placement : undefined;
    return before === undefined ? {} : { placement: before };
  }
  const end = earliest(until, nextMaintenance(candidate.maintenance, now)?.startsAt);
  const seconds = end === undefined ? undefined : (end - from) / 1_000;
  const { namespace = '', name } = metadata;
  return { placement: placementOf({ namespace, name, gpus, seconds }, candidate) };
}

/**
 * Returns why the node was chosen, as evaluated at the decision. Later changes of other nodes must not cause status
 * writes.
 */
function explanation(
  info: GPUInfo,
  request: Request,
  reservation: Reservation,
  input: EvaluationInput,
  now: number,
): Pick<GPUInfoStatus, 'summary' | 'candidates'> {
  const { summary, candidates } = info.status ?? {};
  if (isReported(info, reservation) && summary !== undefined && candidates !== undefined)
    return { summary, candidates };
  const evaluation = new Evaluation(request, input, now);
  return { summary: evaluation.summary(), candidates: evaluation.candidates() };
}

function degradedMessage(
  request: Request,
  { node }: Reservation,
  degradedBy: NonNullable<Verdict['degradedBy']>,
  { facts, allocation, horizonMs }: EvaluationInput,
  now: number,
): string {
  if (degradedBy === 'PodsOnOtherNode') {
    const { boundTo = [], pinnedTo = [] } = facts.jobs.get(request.uid) ?? {};
    const others = new Set([...boundTo, ...pinnedTo].filter((each) => each !== node));
    return `Pods of the job run on, or wait for, ${[...others].join(', ') || 'another node'} instead of the reserved node ${node}. Delete these pods: the webhook binds the pods that replace them to ${node}`;
  }
  const candidate = allocation.nodes.get(node);
  const cause =
    candidate === undefined || degradedBy === 'NodeGone'
      ? 'it does not exist any more'
      : rejectionMessage(degradedBy, candidate, allocation.occupancy, horizonMs, now);
  const why = reasonToStay(request);
  return `Node ${node} is no longer suitable: ${cause}. The reservation stays because ${why}`;
}

function reasonToStay({ mayReserve, isDeleting }: Request): string {
  if (mayReserve) return 'its job runs on the node';
  return isDeleting ? 'the object is being deleted' : 'the object is paused';
}

interface Found {
  readonly reason: GPUInfoReason;
  readonly message: string;
}

/** Sets the message and the conditions. @param degraded why the reserved node is not suitable any more */
function report(
  info: GPUInfo,
  status: GPUInfoStatus,
  outcome: GPUInfoOutcome,
  { facts, allocation }: EvaluationInput,
  now: number,
  degraded?: Found,
): GPUInfoStatus {
  const withMessage = { ...status, message: outcome.message };
  const paused = withPaused(info, withMessage, pauseOf(info), now);
  const reported = withOutcome(info, paused, outcome, now);
  let { conditions = [] } = reported;
  // Sets or removes each condition only once: a condition that is removed and set again would get a new transition time
  // on every evaluation.
  const set = (type: string, value: 'True' | 'False', found: Found | undefined) => {
    if (found !== undefined)
      conditions = setCondition(conditions, { type, status: value, ...found, ...observed(info) }, now);
    else if (conditionOf(conditions, type)) conditions = removeCondition(conditions, type);
  };
  const { nodeSelector = {} } = info.spec;
  const reservedNode = status.suitableNodeName;
  const warnings = warningsFor(facts.warnings, allocation.nodes, { nodeSelector, reservedNode });
  const unavailable: Found = { reason: 'SourceUnavailable', message: warningText(warnings) };
  const simulated: Found = {
    reason: 'GpuSource',
    message: 'GPUs and maintenance are simulated with random values (--gpu-source=simulated)',
  };
  set(DEGRADED, 'True', degraded);
  set(FACTS_COMPLETE, 'False', warnings.length > 0 ? unavailable : undefined);
  set(SIMULATED, 'True', facts.isSimulated ? simulated : undefined);
  return { ...reported, conditions };
}

/** Maximum number of warnings in a status. A mistake that all nodes share causes one warning per node. */
const MOST_WARNINGS = 5;

function warningText(warnings: readonly string[]): string {
  const named = warnings.slice(0, MOST_WARNINGS).join('; ');
  return warnings.length > MOST_WARNINGS ? `${named}; and ${warnings.length - MOST_WARNINGS} more` : named;
}

function observed({ metadata: { generation } }: GPUInfo): { readonly observedGeneration?: number } {
  return generation === undefined ? {} : { observedGeneration: generation };
}
