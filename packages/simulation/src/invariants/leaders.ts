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

  /** Whether this replica holds the lease. The runtime appends a process id to the replica's name. */
  is(sender: string): boolean {
    return this.identity.startsWith(`${sender}_`);
  }
}

/**
 * A replica that writes to a server holds the lease when it sends the request, so two replicas never write at
 * the same time. Requests that arrive late are guarded by resource versions instead. Events are also written
 * by the leader only.
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
