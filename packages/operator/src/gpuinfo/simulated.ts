import { createHash } from 'node:crypto';
import { keyOf } from '@vmwright/runtime';
import type { Candidate, GpuPool } from './candidate.ts';
import { Multimap } from './multimap.ts';
import type { GPUInfo } from './resource.ts';
import { parseRfc3339 } from './time-sources/times.ts';

const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;

/** Model of simulated GPUs. */
const MODEL = 'simulated';
/** Source of simulated maintenance. */
const SOURCE = 'simulation';

/**
 * Earliest and latest start of the simulated maintenance, in hours after the last midnight (UTC). At every time of the
 * day, 300 to 400 hours are left until the start.
 */
const [FIRST_HOUR, LAST_HOUR] = [324, 400];

/**
 * Replaces the GPUs and the maintenance of a node by simulated ones. The node has one GPU or none. Its next maintenance
 * begins in 300 to 400 hours. Both are derived from a hash of the seed and the name of the node. Each day at midnight,
 * the start of the maintenance moves by a day, so that it is always in the future. The start does not move while the
 * node is reserved.
 * @param reportedStart start of the maintenance in the status of a GPUInfo that has reserved this node
 */
export function simulated(
  candidate: Candidate,
  seed: string,
  now: number,
  reportedStart?: number,
): { readonly candidate: Candidate; readonly pool: GpuPool | undefined } {
  const { name } = candidate;
  const hash = createHash('sha256').update(`${seed}\0${name}`).digest();
  const hasGpu = (hash[0] ?? 0) < 128;
  const hours = FIRST_HOUR + (hash.readUInt32BE(1) % (LAST_HOUR - FIRST_HOUR + 1));
  const midnight = Math.floor(now / DAY_MS) * DAY_MS;
  const id = `node/${name}`;
  const { deviceClass: _class, resource: _resource, ...rest } = candidate;
  return {
    candidate: {
      ...rest,
      gpus: hasGpu ? { pool: id, models: [MODEL] } : undefined,
      maintenance: [{ startsAt: reportedStart ?? midnight + hours * HOUR_MS, source: SOURCE }],
    },
    pool: hasGpu ? { id, total: 1, uses: [] } : undefined,
  };
}

/** Returns the time when the start of the simulated maintenance changes: the next midnight (UTC). */
export function simulationChangesAt(now: number): number {
  return (Math.floor(now / DAY_MS) + 1) * DAY_MS;
}

/** Starts of simulated maintenance that the statuses of GPUInfos report. */
export class ReportedStarts {
  readonly #reported = new Map<string, { readonly node: string; readonly startsAt: number }>();
  readonly #byNode = new Multimap<string, string>();

  /** Records a change of a GPUInfo. @returns the nodes whose maintenance may have changed */
  onInfo({ metadata, status = {} }: GPUInfo, isGone: boolean): readonly string[] {
    const key = keyOf(metadata);
    const before = this.#reported.get(key);
    if (before !== undefined) this.#byNode.delete(before.node, key);
    this.#reported.delete(key);
    const { phase, suitableNodeName: node, availableUntil = '', decidedBy } = status;
    const startsAt = parseRfc3339(availableUntil);
    if (
      isGone ||
      phase !== 'Reserved' ||
      decidedBy !== SOURCE ||
      node === undefined ||
      startsAt === undefined
    )
      return before === undefined ? [] : [before.node];
    this.#reported.set(key, { node, startsAt });
    this.#byNode.add(node, key);
    return before === undefined || before.node === node ? [node] : [before.node, node];
  }

  /** Returns the earliest future start of maintenance that is reported for a node; undefined if there is none. */
  of(node: string, now: number): number | undefined {
    const starts = [...this.#byNode.get(node)].flatMap((key) => this.#reported.get(key)?.startsAt ?? []);
    const next = Math.min(...starts.filter((startsAt) => startsAt > now));
    return Number.isFinite(next) ? next : undefined;
  }
}
