import { Lease } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { Simulation } from '../world/simulation.ts';
import { AdminClient } from './admin-client.ts';
import { SHARD_MAP } from './ownership.ts';
import type { Replicas } from './replicas.ts';

/** Interval between two faults that keep a replica from renewing its lease or from listing leases. */
const TAMPER_INTERVAL_MS = 32_000;

/**
 * Tampers with the leases of sharding as a user might. Each run uses at most one kind of tampering, because sharding
 * tolerates each kind alone but not all combinations, such as deleting both the shard map and a member's lease.
 */
export class LeaseTampering {
  readonly #simulation: Simulation;
  readonly #server: ApiServer;
  readonly #name: string;
  readonly #admin: AdminClient;
  readonly #replicas: Replicas;
  readonly #touchAll: () => void;

  /** @param touchAll changes an object in every namespace, so that all replicas reconcile */
  constructor(
    simulation: Simulation,
    server: ApiServer,
    name: string,
    replicas: Replicas,
    touchAll: () => void,
  ) {
    this.#replicas = replicas;
    this.#touchAll = touchAll;
    this.#simulation = simulation;
    this.#server = server;
    this.#name = name;
    this.#admin = new AdminClient(server);
  }

  plan(withinMs: number): void {
    const { choices } = this.#simulation;
    const from = 12_000 + choices.pick(withinMs - 30_000);
    switch (choices.pick(7)) {
      case 0:
        break;
      case 3:
      case 4:
        for (let at = from; at < withinMs; at += TAMPER_INTERVAL_MS)
          this.#after(at, () => {
            const which = choices.pick(this.#replicas.count);
            if (choices.oneIn(2)) this.#replicas.dropLists(which);
            else this.#replicas.dropRenewals(which);
            this.#pauseAtDeadline(which);
          });
        break;
      case 1:
        this.#after(from, () => this.#deleteShardMap());
        break;
      case 2:
        this.#after(from, () => this.#editShardMap());
        break;
      default: {
        // Deletes a member's lease repeatedly. Whenever the member creates its lease again, the other members must
        // treat it as a new member.
        const often = choices.oneIn(2);
        const times = often ? 20 + choices.pick(60) : 1 + choices.pick(8);
        const everyMs = often ? 300 + choices.pick(500) : 500 + choices.pick(8_000);
        const which = choices.pick(3);
        for (let time = 0; time < times; time++)
          this.#after(from + time * everyMs, () => this.#deleteMember(which));
        if (often) this.#keepBusy(from);
      }
    }
  }

  #deleteShardMap(): void {
    this.#note('the shard map was deleted manually');
    this.#dropLists();
    this.#keepBusy();
    this.#admin.delete(Lease, `${this.#name}-shards`);
  }

  #editShardMap(): void {
    const { choices } = this.#simulation;
    this.#note('the shard map was edited manually');
    this.#dropLists();
    this.#keepBusy();
    const text = choices.one([null, '{"shards":']);
    this.#admin.merge(Lease, `${this.#name}-shards`, { metadata: { annotations: { [SHARD_MAP]: text } } });
  }

  /**
   * Makes all replicas reconcile around the time at which other replicas may take over the shards of a replica that
   * seems to be gone. This reveals a replica that continues to work on these shards.
   */
  #keepBusy(from = 0): void {
    for (let at = 13_000; at < 25_000; at += 2_000) this.#after(from + at, () => this.#touchAll());
  }

  /**
   * In two of three cases, keeps a random replica from reading the shard map. That replica must still stop its work in
   * time.
   */
  #dropLists(): void {
    const { choices } = this.#simulation;
    if (!choices.oneIn(3)) {
      const which = choices.pick(this.#replicas.count);
      this.#replicas.dropLists(which);
      if (choices.oneIn(2)) this.#pauseAtDeadline(which);
    }
  }

  /**
   * Pauses a replica during its work, from right before its lease deadline until another replica may have taken over.
   * The replica's deadline timer then fires late, so only a check of the clock stops the work.
   */
  #pauseAtDeadline(which: number): void {
    const { choices } = this.#simulation;
    const inMs = 5_000 + choices.pick(4_500);
    const untilMs = 13_500 + choices.pick(6_500);
    this.#after(inMs - 50 - choices.pick(400), () => this.#touchAll());
    this.#after(inMs, () => this.#replicas.pauseFor(which, untilMs - inMs));
  }

  #deleteMember(which: number): void {
    const members = [...this.#server.objects(Lease)].filter(
      ({ metadata: { name } }) => name.startsWith(`${this.#name}-`) && name !== `${this.#name}-shards`,
    );
    const member = members[which % Math.max(members.length, 1)];
    if (member === undefined) return;
    this.#note('the lease of a member was deleted manually');
    this.#admin.delete(Lease, member.metadata.name);
  }

  /** Runs an action later, unless the faults have stopped by then. */
  #after(ms: number, act: () => void): void {
    const { schedule, network } = this.#simulation;
    schedule.after(ms, () => {
      if (network.faulty) act();
    });
  }

  #note(what: string): void {
    this.#simulation.counts.add(what);
    this.#simulation.note('tampering', what);
  }
}
