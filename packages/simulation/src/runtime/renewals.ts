import { Lease } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { Simulation } from '../world/simulation.ts';
import { textAt } from './fields.ts';
import type { Replica } from './replica.ts';
import type { Sent, Wire } from './wire.ts';

/**
 * Tracks when each replica last sent a lease renewal that was stored. A replica must count its lease deadline from that
 * time or an earlier time.
 */
export class Renewals {
  readonly #simulation: Simulation;
  readonly #renewed = new Map<Replica, number>();
  readonly #listed = new Map<Replica, number>();

  constructor(simulation: Simulation, server: ApiServer, wire: Wire<Replica>) {
    this.#simulation = simulation;
    const sentAt = new WeakMap<Sent<Replica>, number>();
    wire.onSent = (sent) => {
      if (!sent.path.includes('/leases')) return;
      const { now } = simulation.schedule;
      sentAt.set(sent, now);
      if (sent.method === 'GET' && sent.path.includes('/leases?')) this.#listed.set(sent.sender, now);
    };
    server.listen(({ resource, after }) => {
      const { current } = wire;
      if (resource.kind.plural !== Lease.plural || current === undefined || after === undefined) return;
      const holder = textAt(after.object, 'spec', 'holderIdentity') ?? '';
      if (!holder.startsWith(`${current.sender.name}_`)) return;
      // Keeps the time of the write that was sent last. Another write may be stored last: if the lease was deleted, a
      // delayed create can be stored after writes that were sent later.
      const { sender } = current;
      this.#renewed.set(sender, Math.max(this.#renewed.get(sender) ?? 0, sentAt.get(current) ?? 0));
    });
  }

  /** Milliseconds since the replica sent its last stored renewal. */
  age(replica: Replica): number {
    return this.#simulation.schedule.now - (this.#renewed.get(replica) ?? Number.NEGATIVE_INFINITY);
  }

  /** Milliseconds since the replica last listed the leases. */
  ageOfList(replica: Replica): number {
    return this.#simulation.schedule.now - (this.#listed.get(replica) ?? Number.NEGATIVE_INFINITY);
  }
}
