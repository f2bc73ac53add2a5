import { fieldAt } from '../apiserver/json.ts';
import { API_SERVER } from '../apiserver/simulated.ts';
import type { Invariant, Truth } from '../invariants/invariant.ts';
import type { FaultInjector } from './fault-injector.ts';
import type { Violation } from './scenario.ts';
import type { Sent } from './traffic.ts';

export interface HistoryOptions {
  readonly truth: Truth;
  readonly faultInjector: FaultInjector;
  readonly invariants: readonly Invariant[];
  /** Duration of the fault phase in virtual milliseconds. */
  readonly faultMs: number;
  /** Whether the system has converged; called once per virtual second. */
  readonly isConverged: () => boolean;
  /** Called when the faults stop. */
  readonly onHealed?: () => void;
  /** Maximum virtual time from the end of the faults until convergence, in milliseconds. @default 400,000 */
  readonly boundMs?: number;
}

/**
 * Time after the end of the faults until all requests in flight have arrived. A request can be late by 31 s and take
 * another 12 s, or hang without a response for 30 s before it is retried.
 */
const SETTLING_MS = 45_000;

/**
 * Default of `boundMs`. It is longer than the sum of the worst cases:
 * - 70 s: a client notices that its watch has stalled
 * - 45 s + 24 s: back-off of the reflector, then a slow list
 * - 15 s + 12 s per request: a leader election
 * - 12.5 s: restart of a process that was killed
 * - 15 s: back-off of the object
 * - 24 s: a slow request in the reconcile of the object; one request in twelve is slow
 */
const BOUND_MS = 400_000;

/**
 * Durations of the idle phase. The usual one is longer than a poll interval. The long one, in one run of 8, is also
 * longer than the interval between bookmarks and the silence timeout of a stream.
 */
const IDLE_MS = 30_000;
const LONG_IDLE = { oneIn: 8, ms: 200_000 };

/**
 * Executes one run of a scenario: faults → convergence within bounded time → an idle phase without writes. Ends at the
 * first violation.
 */
export async function runHistory(options: HistoryOptions): Promise<readonly Violation[]> {
  const { truth, faultInjector, invariants, faultMs, isConverged, onHealed, boundMs = BOUND_MS } = options;
  const { simulation } = truth;
  const { schedule } = simulation;
  const violations: Violation[] = [];
  const report = (invariant: string) => (detail: string) => {
    violations.push({ invariant, atMs: schedule.now, detail });
    simulation.note('invariant', `${invariant} is violated: ${detail}`);
  };
  for (const { name, watch } of invariants) watch?.(truth, report(name));
  const isViolated = () => violations.length > 0;
  const checkHealed = () => {
    for (const { name, healed } of invariants)
      for (const detail of healed?.(truth) ?? []) report(name)(detail);
  };

  const start = schedule.now;
  faultInjector.begin(faultMs);
  await simulation.run({ until: start + faultMs, done: isViolated });
  faultInjector.heal();
  onHealed?.();
  const healedAt = schedule.now;
  if (!isViolated()) await simulation.run({ until: healedAt + SETTLING_MS, done: isViolated });
  let next = 0;
  const isOver = () => {
    if (isViolated()) return true;
    if (schedule.now < next) return false;
    next = schedule.now + 1_000;
    const { traffic } = truth;
    if (traffic.inFlight().some(isNotLease) || traffic.unanswered(API_SERVER).some(isNotLease)) return false;
    return isConverged();
  };
  if (!isViolated()) await simulation.run({ until: healedAt + boundMs, done: isOver });
  if (!isViolated()) checkHealed();
  if (isViolated()) return violations;

  const idleMs = simulation.choices.oneIn(LONG_IDLE.oneIn) ? LONG_IDLE.ms : IDLE_MS;
  const writes = idleWrites(truth);
  const isDisturbed = () => isViolated() || writes.length > 0;
  await simulation.run({ until: schedule.now + idleMs, done: isDisturbed });
  // After the idle time, a leader with a stalled watch may still retry a write that the API server rejects. Waits until
  // the leader notices the stall and no request is left. Rejected writes are not in `writes`.
  const isQuiet = () => isDisturbed() || isOver();
  if (!isDisturbed()) await simulation.run({ until: schedule.now + boundMs, done: isQuiet });
  for (const write of writes) report('no writes when idle')(write);
  if (!isViolated()) checkHealed();
  return violations;
}

/** Whether all invariants that must hold after convergence are satisfied. */
export function isSettled(truth: Truth, invariants: readonly Invariant[]): boolean {
  for (const { healed } of invariants) for (const _ of healed?.(truth) ?? []) return false;
  return true;
}

/**
 * Whether a request writes something other than a lease. Leases are renewed all the time, so a write to a lease is
 * nearly always in flight.
 */
function isNotLease({ path }: Sent): boolean {
  return !path.includes('/leases');
}

/** Collects all writes from now on, except for writes to leases, which are renewed all the time. */
function idleWrites({ server, external }: Truth): readonly string[] {
  const writes: string[] = [];
  server.listen(({ resource, key, after }) => {
    // Ignores Events that report orphaned machines, because each new leader reports them again.
    const isReport = fieldAt(after?.object, ['reason']) === 'Orphaned';
    if (resource.kind.kind !== 'Lease' && !isReport) writes.push(`${resource.kind.kind} ${key} was written`);
  });
  external.listen(({ before, after }) => writes.push(`${(after ?? before)?.id} changed`));
  return writes;
}
