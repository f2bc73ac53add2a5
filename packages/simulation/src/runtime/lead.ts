import type { ApiServer } from '../apiserver/api-server.ts';
import { Holder } from '../invariants/leaders.ts';
import type { Counts } from '../world/counts.ts';
import type { Findings } from './findings.ts';
import type { Life } from './life.ts';
import type { Renewals } from './renewals.ts';
import type { Wire } from './wire.ts';

/** What is counted here, and must have happened over many seeds. */
export const OF_THE_LEAD = [
  'leadership moved to another replica',
  'leadership was lost during a reconcile',
  'a write arrived after another replica became leader',
] as const;

interface LeadParts {
  readonly renewals: Renewals;
  /** For how long one may act after the last renewal was sent. */
  readonly renewMs: number;
  readonly server: ApiServer;
  readonly wire: Wire<Life>;
  readonly findings: Findings;
  readonly counts: Counts;
  readonly lives: () => readonly Life[];
}

/**
 * Two leaders never both act: whoever sends a write, or calls the outside, has the lease at that very moment, by the API
 * server's truth. What was sent before and arrives later is no matter of the election; resource versions guard against it.
 * @returns to be called when somebody acts
 */
export function actsOnlyWhileLeading(lease: string, parts: LeadParts) {
  const { server, wire, findings, counts, lives, renewals, renewMs } = parts;
  const add = (what: (typeof OF_THE_LEAD)[number]) => counts.add(what);
  const holder = new Holder({ server }, lease, (before) => {
    if (before === '') return;
    add('leadership moved to another replica');
    for (const { name, working } of lives()) {
      if (!before.startsWith(`${name}_`) || working.size === 0) continue;
      add('leadership was lost during a reconcile');
      if (holder.identity === '')
        findings.add(
          'leadership is released last',
          `${name} still works on ${[...working].map(({ key }) => key).join(', ')}`,
        );
    }
  });
  const acts = (life: Life, what: string): void => {
    if (!holder.is(life.name))
      findings.add(
        'only the leader acts',
        `${life.name}: ${what}; ${holder.identity || 'nobody'} has the lease`,
      );
    if (renewals.age(life) > renewMs)
      findings.add(
        'no action after the lease deadline',
        `${life.name}: ${what}, ${renewals.age(life)} ms after its last renewal`,
      );
  };
  wire.onWrite = ({ sender, method, path }) => {
    if (isFenced(path)) acts(sender, `${method} ${path}`);
  };
  wire.onLand = ({ sender, path }) => {
    if (isFenced(path) && !holder.is(sender.name)) add('a write arrived after another replica became leader');
  };
  return acts;
}

/** Leases and events are not: nothing depends on them. */
function isFenced(path: string): boolean {
  return !path.includes('/leases') && !path.includes('/events');
}
