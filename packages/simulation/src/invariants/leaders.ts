import { Lease } from '@vmwright/runtime';
import { fieldAt } from '../apiserver/json.ts';
import type { Sent } from '../scenario/traffic.ts';
import type { Invariant, Truth } from './invariant.ts';

/** Who holds a lease by the API server's own record. */
export class Holder {
  /** As the lease has it; empty for nobody. */
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

  /** The runtime adds an id of the process to the name it is given. */
  is(sender: string): boolean {
    return this.identity.startsWith(`${sender}_`);
  }
}

/**
 * A replica that writes to the API server holds the lease at the moment of sending, so no two ever do at the same time.
 * (When it lands is another matter: resource versions guard against that.) Events are written by the leader too.
 */
export function onlyTheLeaderWrites(origin: string, lease: string): Invariant {
  return {
    name: 'only the leader writes',
    watch: (truth, violated) => {
      const holder = new Holder(truth, lease);
      truth.traffic.onSend((sent) => {
        if (sent.origin === origin && !isLease(sent) && !holder.is(sent.sender))
          violated(
            `${sent.sender} sends ${sent.method} ${sent.path} while ${holder.identity || 'nobody'} leads`,
          );
      });
    },
  };
}

function isLease({ path }: Sent): boolean {
  return path.includes('/leases');
}
