import { Lease } from '@vmwright/runtime';
import { fieldAt } from '../apiserver/json.ts';
import type { Sent } from '../scenario/traffic.ts';
import type { Invariant, Truth } from './invariant.ts';

/** Tracks the holder of a Lease as stored in the API server. */
export class Holder {
  /** The Lease's holderIdentity; empty if there is no holder. */
  identity = '';

  constructor({ server }: Pick<Truth, 'server'>, lease: string, onChange?: (before: string) => void) {
    server.listen(({ resource, after }) => {
      if (resource.kind.kind !== Lease.kind || after?.object.metadata.name !== lease) return;
      const holder = fieldAt(after.object, ['spec', 'holderIdentity']);
      const before = this.identity;
      this.identity = typeof holder === 'string' ? holder : '';
      if (this.identity !== before) onChange?.(before);
    });
  }

  /** Whether this sender holds the lease. The holder's identity is the sender's name, followed by `_` and a UUID. */
  is(sender: string): boolean {
    return this.identity.startsWith(`${sender}_`);
  }
}

/**
 * A replica sends writes only while it holds the lease, so two replicas never send writes at the same time. This
 * includes writes of Events, but not of Leases. A write that arrives after its sender lost the lease is not a
 * violation, because resource versions protect against it.
 */
export function onlyTheLeaderWrites(origin: string, lease: string): Invariant {
  return {
    name: 'only the leader writes',
    watch: (truth, violated) => {
      const holder = new Holder(truth, lease);
      truth.traffic.onSend((sent) => {
        if (sent.origin === origin && !isLease(sent) && !holder.is(sent.sender))
          violated(
            `${sent.sender} sends ${sent.method} ${sent.path} while ${holder.identity || 'no replica'} leads`,
          );
      });
    },
  };
}

function isLease({ path }: Sent): boolean {
  return path.includes('/leases');
}
