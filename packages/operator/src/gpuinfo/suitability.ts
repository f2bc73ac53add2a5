import type { Candidate } from './candidate.ts';
import { Glob } from './glob.ts';
import { HOUR_MS, isFreeOfMaintenance, nextMaintenance } from './maintenance.ts';
import type { Occupancy } from './occupancy.ts';
import type { REJECTIONS } from './rejections.ts';
import type { Request } from './request.ts';

/** Why a node does not meet a request: the first check that fails, in the order of `REJECTIONS`. */
export type Rejection = (typeof REJECTIONS)[number]['reason'];

/** Period in which a job needs the node. Both ends are in milliseconds since 1970. */
export interface Window {
  readonly start: number;
  /** Equal to `start` if the request has no minimum time. */
  readonly end: number;
}

/** Returns the period in which a job that starts now needs its node. */
export function windowOf({ hours }: Pick<Request, 'hours'>, now: number): Window {
  return { start: now, end: now + hours * HOUR_MS };
}

/** Whether labels match all entries of a selector. */
export function hasLabels(
  labels: Readonly<Record<string, string>>,
  selector: readonly (readonly [string, string])[],
): boolean {
  for (const [label, value] of selector) if (labels[label] !== value) return false;
  return true;
}

/** Checks whether nodes meet one request. */
export class Suitability {
  readonly #request: Request;
  readonly #selector: readonly (readonly [string, string])[];
  readonly #models: ModelPattern | undefined;
  readonly #isBeyondHorizon: boolean;

  /** @param horizonMs time for which a node without known maintenance counts as available */
  constructor(request: Request, horizonMs: number) {
    this.#request = request;
    this.#selector = Object.entries(request.nodeSelector);
    this.#models = request.model === undefined ? undefined : new ModelPattern(request.model);
    this.#isBeyondHorizon = request.hours * HOUR_MS > horizonMs;
  }

  /** Returns why a node cannot be chosen; undefined if it is suitable. */
  rejection(candidate: Candidate, occupancy: Occupancy, window: Window): Rejection | undefined {
    return (
      this.#mismatch(candidate, occupancy) ??
      candidate.blocker?.reason ??
      this.#shortage(candidate, occupancy) ??
      this.#interruption(candidate, window)
    );
  }

  /**
   * Returns why the labels or the GPUs of a node do not match the request. Ignores whether the node is ready, and how
   * many of its GPUs are free. Returns `FactsUnknown` if the facts about the node are unknown.
   */
  #mismatch({ labels, blocker, gpus }: Candidate, occupancy: Occupancy): Rejection | undefined {
    const { gpus: wanted } = this.#request;
    if (!hasLabels(labels, this.#selector)) return 'OtherLabels';
    if (blocker?.reason === 'FactsUnknown') return 'FactsUnknown'; // checked before the GPUs, which may be unknown too
    if (gpus === undefined) return wanted > 0 ? 'NoGpu' : undefined;
    if (wanted === 0) return 'HasGpu';
    if (this.#models !== undefined && !gpus.models.some((model) => this.#models?.matches(model)))
      return 'OtherModel';
    return occupancy.total(gpus.pool) < wanted ? 'TooFewGpus' : undefined;
  }

  #shortage({ gpus }: Candidate, occupancy: Occupancy): Rejection | undefined {
    const { uid, gpus: wanted } = this.#request;
    if (gpus === undefined || occupancy.freeFor(uid, gpus.pool) >= wanted) return undefined;
    return occupancy.wouldFitWithoutReservations(uid, gpus.pool, wanted) ? 'Reserved' : 'InUse';
  }

  #interruption({ maintenance }: Candidate, { start, end }: Window): Rejection | undefined {
    if (!isFreeOfMaintenance(maintenance, start, end)) return 'TooShort';
    const isOpen = this.#isBeyondHorizon && nextMaintenance(maintenance, start) === undefined;
    return isOpen ? 'BeyondHorizon' : undefined;
  }
}

/** Pattern of GPU models: `*` stands for any characters; upper and lower case are the same. */
class ModelPattern {
  readonly #glob: Glob;
  readonly #known = new Map<string, boolean>();

  constructor(pattern: string) {
    this.#glob = new Glob(pattern.toLowerCase());
  }

  matches(model: string): boolean {
    let matches = this.#known.get(model);
    if (matches === undefined) {
      matches = this.#glob.matches(model.toLowerCase());
      this.#known.set(model, matches);
    }
    return matches;
  }
}
