import { conditionOf, type EventInput } from '@vmwright/runtime';
import type { Verdict } from './allocation.ts';
import { Evaluation, type EvaluationInput, evaluationOf } from './evaluation.ts';
import { earliest } from './maintenance.ts';
import type { GPUInfo, GPUInfoStatus } from './resource.ts';
import { DEGRADED, endedStatus, pendingStatus, reservedStatus } from './status.ts';

/** State that the plan for a GPUInfo is based on. */
export interface Observed extends EvaluationInput {
  /** Result of the allocation for this object. Its reservation is already stored. */
  readonly verdict: Verdict;
}

export interface Plan {
  readonly status: GPUInfoStatus;
  readonly events: readonly EventInput[];
  /** Milliseconds after which the status may change without any event. */
  readonly requeueAfterMs: number | undefined;
}

/** Returns the status of a GPUInfo, and the events about its changes. @param now milliseconds since 1970 */
export function plan(info: GPUInfo, observed: Observed, now: number): Plan {
  const { verdict, allocation } = observed;
  const status = statusOf(info, observed, now);
  const hours =
    status.fitsIfShortenedTo === undefined ? undefined : evaluationOf(verdict.request, observed, now);
  const nextAt = earliest(allocation.nextAt, hours?.changesAt());
  return {
    status,
    events: eventsOf(info, status, observed, now),
    requeueAfterMs: nextAt === undefined ? undefined : Math.max(0, nextAt - now),
  };
}

function statusOf(info: GPUInfo, observed: Observed, now: number): GPUInfoStatus {
  const { verdict } = observed;
  const { request, reservation } = verdict;
  if (reservation === undefined)
    return pendingStatus(info, verdict, evaluationOf(request, observed, now), observed, now);
  if (reservation.ended !== undefined) return endedStatus(info, reservation, observed, now);
  return reservedStatus(info, verdict, reservation, observed, now);
}

/**
 * Returns the events about what has changed since the previous status: the reservation, or the suitability or
 * availability of its node.
 */
function eventsOf(
  info: GPUInfo,
  after: GPUInfoStatus,
  observed: Observed,
  now: number,
): readonly EventInput[] {
  const { status: before = {} } = info;
  const message = after.message ?? '';
  const lost = () => {
    const node = before.suitableNodeName ?? '';
    const evaluation = new Evaluation(observed.verdict.request, observed, now);
    const cause = observed.allocation.nodes.has(node)
      ? (evaluation.messageFor(node) ?? 'the operator selected another node')
      : 'it does not exist any more';
    return `Node ${node} is no longer reserved: ${cause}. ${message}`;
  };
  const wasReserved = before.phase === 'Reserved';
  if (after.phase === 'Ended') return before.phase === 'Ended' ? [] : [normal('ReservationEnded', message)];
  if (after.phase === 'Pending') {
    if (before.phase === 'Pending') return [];
    return [wasReserved ? warning('ReservationLost', lost()) : warning('NoneAvailable', message)];
  }
  if (!wasReserved) return [normal('Reserved', message)];
  if (before.suitableNodeName !== after.suitableNodeName) {
    const isEdited = before.observedGeneration !== after.observedGeneration;
    const moved = isEdited ? normal('Reserved', message) : warning('Moved', lost());
    return [moved, ...degradation(before, after)];
  }
  return [...degradation(before, after), ...changes(before, after)];
}

function degradation(before: GPUInfoStatus, after: GPUInfoStatus): readonly EventInput[] {
  const degraded = conditionOf(after.conditions, DEGRADED);
  const isNew = degraded?.reason !== conditionOf(before.conditions, DEGRADED)?.reason;
  return degraded !== undefined && isNew ? [warning('Degraded', degraded.message)] : [];
}

/** Returns the events about a node that stays reserved, but changed its host or is available for a shorter time. */
function changes(before: GPUInfoStatus, after: GPUInfoStatus): readonly EventInput[] {
  const { suitableNodeName: node, suitableHostName: host, availableUntil, decidedBy } = after;
  const events: EventInput[] = [];
  if (before.suitableHostName !== host)
    events.push(normal('HostChanged', `Node ${node} moved from host ${before.suitableHostName} to ${host}`));
  const isReduced = before.availableUntil === undefined || (availableUntil ?? '') < before.availableUntil;
  if (availableUntil !== undefined && isReduced)
    events.push(
      warning('AvailabilityReduced', `Node ${node} is available only until ${availableUntil} (${decidedBy})`),
    );
  return events;
}

function normal(reason: string, note: string): EventInput {
  return { type: 'Normal', reason, note };
}

function warning(reason: string, note: string): EventInput {
  return { type: 'Warning', reason, note };
}
