import type { ApiServer } from '../apiserver/api-server.ts';
import { Holder } from '../invariants/leaders.ts';
import type { Counts } from '../world/counts.ts';
import type { Renewals } from './renewals.ts';
import type { Replica } from './replica.ts';
import type { Violations } from './violations.ts';
import type { Wire } from './wire.ts';

/** Critical moments that are counted here. When many seeds are run, each of them must occur in at least one seed. */
export const LEADERSHIP_MOMENTS = [
  'leadership moved to another replica',
  'leadership was lost during a reconcile',
  'a write arrived after another replica became leader',
] as const;

interface LeadParts {
  readonly renewals: Renewals;
  /** Maximum time for which a leader may act after it sent its last successful renewal. */
  readonly renewMs: number;
  readonly server: ApiServer;
  readonly wire: Wire<Replica>;
  readonly violations: Violations;
  readonly counts: Counts;
  readonly replicas: () => readonly Replica[];
}

/**
 * Checks that two replicas never act as leader at the same time. When a replica sends a write or calls an external
 * system, it must hold the lease that is stored in the API server. A write that arrives after leadership has moved is
 * not a violation, because resource versions protect against it.
 * @returns function that must be called when a replica calls an external system
 */
export function checkLeadership(lease: string, parts: LeadParts) {
  const { server, wire, violations, counts, replicas, renewals, renewMs } = parts;
  const add = (what: (typeof LEADERSHIP_MOMENTS)[number]) => counts.add(what);
  const holder = new Holder({ server }, lease, (before) => {
    if (before === '') return;
    add('leadership moved to another replica');
    for (const { name, working } of replicas()) {
      if (!before.startsWith(`${name}_`) || working.size === 0) continue;
      add('leadership was lost during a reconcile');
      if (holder.identity === '')
        violations.add(
          'leadership is released last',
          `${name} released the lease while it reconciles ${[...working].map(({ key }) => key).join(', ')}`,
        );
    }
  });
  const acts = (replica: Replica, what: string): void => {
    if (!holder.is(replica.name))
      violations.add(
        'only the leader acts',
        `${replica.name}: ${what}; ${holder.identity || 'no replica'} has the lease`,
      );
    if (renewals.age(replica) > renewMs)
      violations.add(
        'no action after the lease deadline',
        `${replica.name}: ${what}, ${renewals.age(replica)} ms after its last renewal`,
      );
  };
  wire.onWrite = ({ sender, method, path }) => {
    if (isFenced(path)) acts(sender, `${method} ${path}`);
  };
  wire.onArrival = ({ sender, path }) => {
    if (isFenced(path) && !holder.is(sender.name)) add('a write arrived after another replica became leader');
  };
  return acts;
}

/**
 * Whether only the leader may write to this path. Every replica may write Leases, to become leader, and
 * Events, because nothing depends on Events.
 */
function isFenced(path: string): boolean {
  return !path.includes('/leases') && !path.includes('/events');
}
