import { timeOf } from '../times.ts';
import type { Allocation } from './allocation.ts';
import type { Candidate, Facts } from './candidate.ts';
import { endOf, HOUR_MS, isFreeOfMaintenance, nextMaintenance } from './maintenance.ts';
import type { Occupancy } from './occupancy.ts';
import { type Request, shapeOf } from './request.ts';
import { type GPUInfoStatus, MAX_CANDIDATES } from './resource.ts';
import { type Rejection, Suitability, windowOf } from './suitability.ts';

/** A node and why it does not meet a request. */
export interface Evaluated {
  readonly candidate: Candidate;
  /** Undefined if the node is suitable. */
  readonly rejection: Rejection | undefined;
}

/** What an evaluation is based on. */
export interface EvaluationInput {
  readonly facts: Facts;
  readonly allocation: Allocation;
  readonly horizonMs: number;
}

/** Text of each rejection in the summary, such as `without GPU` in `2 without GPU`. */
const RESULTS: Readonly<Record<Rejection, string>> = {
  OtherLabels: 'with other labels',
  NoGpu: 'without GPU',
  HasGpu: 'with GPU',
  OtherModel: 'with another GPU model',
  TooFewGpus: 'with too few GPUs',
  FactsUnknown: 'unknown',
  NotReady: 'not ready',
  Unschedulable: 'unschedulable',
  Tainted: 'tainted',
  PoweredOff: 'powered off',
  HostUnavailable: 'on an unavailable host',
  HostInMaintenance: 'on a host in maintenance',
  InUse: 'in use',
  Reserved: 'reserved',
  TooShort: 'maintenance',
  BeyondHorizon: 'beyond the horizon',
};

/**
 * Rejections in order: the later in the list, the closer the node is to being suitable. FactsUnknown comes after the
 * mismatches, because the node may match.
 */
const ORDER = Object.keys(RESULTS).filter((reason): reason is Rejection => reason in RESULTS);

/** All nodes, judged for one request, or for several requests with equal specs. */
export class Evaluation {
  readonly #request: Request;
  readonly #input: EvaluationInput;
  readonly #now: number;
  readonly #nodes: readonly Evaluated[];
  // Many requests share an evaluation, so results are computed once.
  readonly #candidates = once(() => this.#listed());
  readonly #summary = once(() => this.#counted());
  readonly #closest = once(() => this.#nearest());
  readonly #fitsIfShortenedTo = once(() => this.#mostHours());
  readonly #fitsFrom = once(() => this.#earliest());

  constructor(request: Request, input: EvaluationInput, now: number) {
    const { facts, allocation, horizonMs } = input;
    const suitability = new Suitability(request, horizonMs);
    const window = windowOf(request, now);
    this.#request = request;
    this.#input = input;
    this.#now = now;
    this.#nodes = facts.candidates.map((candidate) => ({
      candidate,
      rejection: suitability.rejection(candidate, allocation.occupancy, window),
    }));
  }

  get size(): number {
    return this.#nodes.length;
  }

  /** Returns why the node that is closest to being suitable was rejected; undefined if no node was rejected. */
  closest(): Rejection | undefined {
    return this.#closest();
  }

  #nearest(): Rejection | undefined {
    const present = new Set(this.#nodes.map(({ rejection }) => rejection));
    return ORDER.findLast((rejection) => present.has(rejection));
  }

  /** Returns why a node was rejected, in a sentence; undefined if it is suitable or does not exist. */
  messageFor(name: string): string | undefined {
    const found = this.#nodes.find(({ candidate }) => candidate.name === name);
    return found?.rejection && this.#message(found.candidate, found.rejection);
  }

  /** Returns at most `MAX_CANDIDATES` nodes: first the suitable ones by name, then the others by name. */
  candidates(): NonNullable<GPUInfoStatus['candidates']> {
    return this.#candidates();
  }

  #listed(): NonNullable<GPUInfoStatus['candidates']> {
    const suitable = this.#nodes.filter(({ rejection }) => rejection === undefined);
    const rejected = this.#nodes.filter(({ rejection }) => rejection !== undefined);
    return [...suitable, ...rejected].slice(0, MAX_CANDIDATES).map(({ candidate, rejection }) => ({
      node: candidate.name,
      host: candidate.host,
      suitable: rejection === undefined,
      ...(rejection === undefined
        ? { availableHours: hoursUntil(this.#availableUntil(candidate), this.#now) }
        : { reason: rejection, message: this.#message(candidate, rejection) }),
    }));
  }

  /** Returns the number of nodes by result: `4 nodes: 2 without GPU, 1 reserved, 1 with maintenance at 2026-…`. */
  summary(): string {
    return this.#summary();
  }

  #counted(): string {
    const counts = new Map<Rejection, number>();
    let suitable = 0;
    let maintenanceAt = Number.POSITIVE_INFINITY;
    for (const { candidate, rejection } of this.#nodes) {
      if (rejection === undefined) suitable++;
      else counts.set(rejection, (counts.get(rejection) ?? 0) + 1);
      if (rejection === 'TooShort') maintenanceAt = Math.min(maintenanceAt, this.#availableUntil(candidate));
    }
    const parts = ORDER.flatMap((rejection) => {
      const count = counts.get(rejection);
      if (count === undefined) return [];
      if (rejection !== 'TooShort') return [`${count} ${RESULTS[rejection]}`];
      if (maintenanceAt <= this.#now) return [`${count} in maintenance now`];
      return [`${count} with maintenance ${count > 1 ? 'from' : 'at'} ${timeOf(maintenanceAt)}`];
    });
    const results = [...(suitable > 0 ? [`${suitable} suitable`] : []), ...parts].join(', ');
    const nodes = this.size === 1 ? '1 node' : `${this.size} nodes`;
    return results === '' ? nodes : `${nodes}: ${results}`;
  }

  /**
   * Returns the largest `desAccTime`, in whole hours, that one of the nodes could meet now. Considers only nodes that
   * are available, but not for long enough. Undefined if no node is available for an hour.
   */
  fitsIfShortenedTo(): number | undefined {
    return this.#fitsIfShortenedTo();
  }

  #mostHours(): number | undefined {
    let most = 0;
    for (const { candidate, rejection } of this.#nodes)
      if (rejection === 'TooShort' || rejection === 'BeyondHorizon')
        most = Math.max(most, hoursUntil(this.#availableUntil(candidate), this.#now));
    return most > 0 ? most : undefined;
  }

  /** Returns the time at which `fitsIfShortenedTo` decreases if no fact changes; undefined if it never decreases. */
  changesAt(): number | undefined {
    const hours = this.fitsIfShortenedTo();
    if (hours === undefined) return undefined;
    let latest = 0;
    for (const { candidate, rejection } of this.#nodes) {
      if (rejection === 'TooShort') latest = Math.max(latest, this.#availableUntil(candidate));
      // The horizon moves with the current time, so the hours until the horizon do not decrease.
      if (rejection === 'BeyondHorizon' && hoursUntil(this.#input.horizonMs, 0) >= hours) return undefined;
    }
    return latest - hours * HOUR_MS + 1;
  }

  /** Returns the earliest time at which a node is expected to be suitable; undefined if no such time is known. */
  fitsFrom(): number | undefined {
    return this.#fitsFrom();
  }

  #earliest(): number | undefined {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { candidate, rejection } of this.#nodes)
      if (rejection === 'Reserved' || rejection === 'TooShort')
        earliest = Math.min(earliest, this.#freeFrom(candidate, earliest));
    return Number.isFinite(earliest) ? earliest : undefined;
  }

  /**
   * Returns the time from which a node is expected to be suitable; infinity if none is known.
   * @param before stops the search at this time
   */
  #freeFrom({ gpus, maintenance }: Candidate, before: number): number {
    const { uid, hours, gpus: wanted } = this.#request;
    const { occupancy } = this.#input.allocation;
    let at = this.#now;
    if (gpus !== undefined && occupancy.freeFor(uid, gpus.pool) < wanted)
      at = occupancy.steps(gpus.pool).find(({ free }) => free >= wanted)?.at ?? Number.POSITIVE_INFINITY;
    // From `at` on, the number of free GPUs does not decrease: only ends of reservations are expected. So only
    // maintenance can delay the start further.
    for (const each of maintenance) {
      if (at >= before || isFreeOfMaintenance(maintenance, at, at + hours * HOUR_MS)) break;
      at = Math.max(at, endOf(each));
    }
    return isFreeOfMaintenance(maintenance, at, at + hours * HOUR_MS) ? at : Number.POSITIVE_INFINITY;
  }

  #availableUntil({ maintenance }: Candidate): number {
    return nextMaintenance(maintenance, this.#now)?.startsAt ?? this.#now + this.#input.horizonMs;
  }

  #message(candidate: Candidate, rejection: Rejection): string {
    const { occupancy } = this.#input.allocation;
    return rejectionMessage(rejection, candidate, occupancy, this.#input.horizonMs, this.#now);
  }
}

/** Returns a function that computes a value at its first call, and returns the same value at later calls. */
function once<T>(compute: () => T): () => T {
  let result: { readonly value: T } | undefined;
  return () => {
    result ??= { value: compute() };
    return result.value;
  };
}

/** Evaluations of requests without a node, by allocation and spec. Requests with equal specs share one. */
const shared = new WeakMap<Allocation, Map<string, Evaluation>>();

/**
 * Returns the evaluation of a request that has no node. Equal requests share an evaluation until its
 * `fitsIfShortenedTo` changes.
 * @param now milliseconds since 1970
 */
export function evaluationOf(request: Request, input: EvaluationInput, now: number): Evaluation {
  const { allocation, facts } = input;
  // The evaluation of a request with a job is not shared: an equal request cannot use the GPUs of that job's pods.
  if (facts.jobs.has(request.uid)) return new Evaluation(request, input, now);
  const known = shared.get(allocation) ?? new Map<string, Evaluation>();
  shared.set(allocation, known);
  const shape = shapeOf(request);
  const found = known.get(shape);
  if (found !== undefined && now < (found.changesAt() ?? Number.POSITIVE_INFINITY)) return found;
  const evaluation = new Evaluation(request, input, now);
  known.set(shape, evaluation);
  return evaluation;
}

/** Returns the whole hours from `from` to `time`, rounded down; 0 if `time` is earlier. */
export function hoursUntil(time: number, from: number): number {
  return Math.max(0, Math.floor((time - from) / HOUR_MS));
}

/** Returns why a node is not suitable, in words that are the same on every evaluation. */
export function rejectionMessage(
  rejection: Rejection,
  { blocker, gpus, maintenance }: Candidate,
  occupancy: Occupancy,
  horizonMs: number,
  now: number,
): string {
  const total = gpus === undefined ? 0 : occupancy.total(gpus.pool);
  const shortage = total === 1 ? 'its GPU is' : `too few of its ${total} GPUs are free; the others are`;
  switch (rejection) {
    case 'OtherLabels':
      return 'its labels do not match spec.nodeSelector';
    case 'NoGpu':
      return 'it has no GPU';
    case 'HasGpu':
      return 'it has a GPU and is kept for requests with gpuRequired: true';
    case 'OtherModel':
      return `its GPU model is ${gpus?.models.join(', ') || 'unknown'}`;
    case 'TooFewGpus':
      return `it has only ${total} ${total === 1 ? 'GPU' : 'GPUs'}`;
    case 'Reserved':
      return `${shortage} reserved`;
    case 'InUse':
      return `${shortage} in use by pods`;
    case 'TooShort': {
      const { startsAt = now, source = '' } = nextMaintenance(maintenance, now) ?? {};
      return `maintenance ${startsAt > now ? `at ${timeOf(startsAt)}` : 'has begun'} (${source})`;
    }
    case 'BeyondHorizon':
      return `no maintenance is known, and the node counts as available for only ${horizonMs / HOUR_MS} h (--gpu-horizon)`;
    default:
      return blocker?.message ?? RESULTS[rejection];
  }
}
