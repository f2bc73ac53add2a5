import { fieldAt } from '../apiserver/json.ts';
import { API_SERVER } from '../apiserver/simulated.ts';
import type { Invariant, Truth } from '../invariants/invariant.ts';
import type { Violation } from './scenario.ts';
import type { Sent } from './traffic.ts';
import type { Trouble } from './trouble.ts';

export interface HistoryOptions {
  readonly truth: Truth;
  readonly trouble: Trouble;
  readonly invariants: readonly Invariant[];
  /** How long things go wrong. */
  readonly troubleMs: number;
  /** Whether all is as wanted; asked once a virtual second. */
  readonly isConverged: () => boolean;
  /** Called when all has healed. */
  readonly onHealed?: () => void;
  /** Within which all must be as wanted after the last fault. @default see below */
  readonly boundMs?: number;
}

/**
 * Until what was on the wire when all healed has landed: a request may be late by 31 s and be 12 s under way beside
 * that, or hang unanswered for 30 s before it is sent again.
 */
const SETTLING_MS = 45_000;

/**
 * Within which all must be as wanted after the last fault. The longest way there: a watch that has stalled just before
 * is noticed after 70 s of silence; the reflector waits up to 45 s by then, having failed often, for a list that takes
 * up to 24 s; an election needs 15 s and up to 12 s for each of its calls, and a program that was just killed up to
 * 12.5 s to come back; the object then waits up to 15 s for its back-off, and each of the handful of calls it takes may
 * need 24 s, one in twelve of which does.
 */
const BOUND_MS = 400_000;

/** Longer than a poll takes to come round; in one history of so many, longer than bookmarks and resumed watches do. */
const REST_MS = 30_000;
const LONG_REST = { oneIn: 8, ms: 200_000 };

/**
 * Lives a history through: trouble → healed → converged within bounded time → a time of rest, in which nobody writes.
 * Ends at the first violation: what comes after one is of no interest.
 */
export async function liveThrough(options: HistoryOptions): Promise<readonly Violation[]> {
  const { truth, trouble, invariants, troubleMs, isConverged, onHealed, boundMs = BOUND_MS } = options;
  const { simulation } = truth;
  const { schedule } = simulation;
  const violations: Violation[] = [];
  const tell = (invariant: string) => (detail: string) => {
    violations.push({ invariant, atMs: schedule.now, detail });
    simulation.note('invariant', `${invariant} is violated: ${detail}`);
  };
  for (const { name, watch } of invariants) watch?.(truth, tell(name));
  const isViolated = () => violations.length > 0;
  const checkHealed = () => {
    for (const { name, healed } of invariants) for (const detail of healed?.(truth) ?? []) tell(name)(detail);
  };

  const start = schedule.now;
  trouble.begin(troubleMs);
  await simulation.run({ until: start + troubleMs, done: isViolated });
  trouble.heal();
  onHealed?.();
  const healedAt = schedule.now;
  if (!isViolated()) await simulation.run({ until: healedAt + SETTLING_MS, done: isViolated });
  let next = 0;
  const isOver = () => {
    if (isViolated()) return true;
    if (schedule.now < next) return false;
    next = schedule.now + 1_000;
    const { traffic } = truth;
    if (traffic.onTheWire().some(isNoRenewal) || traffic.unanswered(API_SERVER).some(isNoRenewal))
      return false;
    return isConverged();
  };
  if (!isViolated()) await simulation.run({ until: healedAt + boundMs, done: isOver });
  if (!isViolated()) checkHealed();
  if (isViolated()) return violations;

  const restMs = simulation.choices.oneIn(LONG_REST.oneIn) ? LONG_REST.ms : REST_MS;
  const writes = restingWrites(truth);
  const isDisturbed = () => isViolated() || writes.length > 0;
  await simulation.run({ until: schedule.now + restMs, done: isDisturbed });
  // The lead may have gone to one whose watch is dead: it tries what is refused until it notices, and then rests too.
  const isQuiet = () => isDisturbed() || isOver();
  if (!isDisturbed()) await simulation.run({ until: schedule.now + boundMs, done: isQuiet });
  for (const write of writes) tell('no writes when idle')(write);
  if (!isViolated()) checkHealed();
  return violations;
}

/** Whether nothing is left to be done. */
export function isSettled(truth: Truth, invariants: readonly Invariant[]): boolean {
  for (const { healed } of invariants) for (const _ of healed?.(truth) ?? []) return false;
  return true;
}

/** The lease is renewed for ever, so there is always a write of it on the wire. */
function isNoRenewal({ path }: Sent): boolean {
  return !path.includes('/leases');
}

/** What is written from now on, but for leases, which are renewed for ever. */
function restingWrites({ server, outside }: Truth): readonly string[] {
  const writes: string[] = [];
  server.listen(({ resource, key, after }) => {
    // A replica that becomes the leader reports orphans again.
    const isReport = fieldAt(after?.object, ['reason']) === 'Orphaned';
    if (resource.kind.kind !== 'Lease' && !isReport) writes.push(`${resource.kind.kind} ${key} was written`);
  });
  outside.listen(({ before, after }) => writes.push(`${(after ?? before)?.id} changed outside`));
  return writes;
}
