import type { Replica } from './replica.ts';
import { STOPPED } from './replicas.ts';
import type { Violations } from './violations.ts';

/**
 * Error texts of the known reasons for an exit: the program cannot list its objects, or a reconcile did not end in
 * time. In both cases, the program exits in order to be restarted.
 */
const REASONS = ['no complete list of', 'a reconcile has not ended within'];

/** Reports a violation if a replica exits for an unknown reason. */
export function checkExitReason(violations: Violations, { name }: Replica, why: string): void {
  if (why !== STOPPED && !REASONS.some((reason) => why.includes(reason)))
    violations.add('a replica exits only for a known reason', `${name} exited: ${why}`);
}
