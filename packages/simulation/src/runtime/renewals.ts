import { Lease } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { Simulation } from '../world/simulation.ts';
import type { Life } from './life.ts';
import { textAt } from './read.ts';
import type { Sent, Wire } from './wire.ts';

/**
 * When each process last sent a renewal of its lease that was stored: the latest moment from which on it may count its
 * time. It knows of this one or of an earlier one.
 */
export class Renewals {
  readonly #simulation: Simulation;
  readonly #renewed = new Map<Life, number>();
  readonly #looked = new Map<Life, number>();

  constructor(simulation: Simulation, server: ApiServer, wire: Wire<Life>) {
    this.#simulation = simulation;
    const sentAt = new WeakMap<Sent<Life>, number>();
    wire.onWay = (sent) => {
      if (!sent.path.includes('/leases')) return;
      const { now } = simulation.schedule;
      sentAt.set(sent, now);
      if (sent.method === 'GET' && sent.path.includes('/leases?')) this.#looked.set(sent.sender, now);
    };
    server.listen(({ resource, after }) => {
      const { current } = wire;
      if (resource.kind.plural !== Lease.plural || current === undefined || after === undefined) return;
      const holder = textAt(after.object, 'spec', 'holderIdentity') ?? '';
      if (!holder.startsWith(`${current.sender.name}_`)) return;
      // A create that was late may land long after later ones, where somebody has deleted the lease.
      const { sender } = current;
      this.#renewed.set(sender, Math.max(this.#renewed.get(sender) ?? 0, sentAt.get(current) ?? 0));
    });
  }

  /** Milliseconds since the last renewal of its lease was sent. */
  age(life: Life): number {
    return this.#simulation.schedule.now - (this.#renewed.get(life) ?? Number.NEGATIVE_INFINITY);
  }

  /** Milliseconds since it last asked for all leases. */
  ageOfLook(life: Life): number {
    return this.#simulation.schedule.now - (this.#looked.get(life) ?? Number.NEGATIVE_INFINITY);
  }
}
