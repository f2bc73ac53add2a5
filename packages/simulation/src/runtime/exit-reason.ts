import type { Replica } from './replica.ts';
import { STOPPED } from './replicas.ts';
import type { Violations } from './violations.ts';

/**
 * Error texts with which a program may exit in order to be restarted, because it cannot list its objects or a reconcile
 * did not end in time.
 */
const REASONS = ['no complete list of', 'a reconcile has not ended within'];

/** Reports a violation if a replica exits for an unknown reason. */
export function checkExitReason(violations: Violations, { name }: Replica, why: string): void {
  if (why !== STOPPED && !REASONS.some((reason) => why.includes(reason)))
    violations.add('a replica exits only for a known reason', `${name} exited: ${why}`);
}
