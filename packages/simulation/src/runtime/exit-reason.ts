import type { Replica } from './replica.ts';
import { STOPPED } from './replicas.ts';
import type { Violations } from './violations.ts';

/**
 * Reasons for which a program may exit by itself, to be restarted: it cannot work, or cannot be sure that it
 * stopped.
 */
const REASONS = ['no complete list of', 'a reconcile has not ended within'];

/** Reports a violation if a replica exits for an unknown reason. */
export function checkExitReason(violations: Violations, { name }: Replica, why: string): void {
  if (why !== STOPPED && !REASONS.some((reason) => why.includes(reason)))
    violations.add('a replica exits only for a known reason', `${name} exited: ${why}`);
}
