import { Lease } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { Simulation } from '../world/simulation.ts';
import { Hand } from './hand.ts';
import { LEDGER } from './ownership.ts';
import type { Replicas } from './replicas.ts';

/** From one time that somebody cannot renew, or not look, to the next. */
const MUTE_MS = 32_000;

/**
 * Does to the leases of a sharding what people should not, but one thing a run: sharding promises to stand each of them,
 * not that somebody deletes the ledger and a member's lease at the same time.
 */
export class Meddler {
  readonly #simulation: Simulation;
  readonly #server: ApiServer;
  readonly #name: string;
  readonly #hand: Hand;
  readonly #replicas: Replicas;
  readonly #touchAll: () => void;

  /** @param touchAll gives all replicas something to do */
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
    this.#hand = new Hand(server);
  }

  plan(withinMs: number): void {
    const { choices } = this.#simulation;
    const from = 12_000 + choices.pick(withinMs - 30_000);
    switch (choices.pick(7)) {
      case 0:
        break;
      case 3:
      case 4:
        for (let at = from; at < withinMs; at += MUTE_MS)
          this.#after(at, () => {
            const which = choices.pick(this.#replicas.count);
            if (choices.oneIn(2)) this.#replicas.blind(which);
            else this.#replicas.mute(which);
            this.#freezeAtTheEnd(which);
          });
        break;
      case 1:
        this.#after(from, () => this.#deleteLedger());
        break;
      case 2:
        this.#after(from, () => this.#editLedger());
        break;
      default: {
        // Again and again: a member that comes back is to be taken for a new one each time.
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

  #deleteLedger(): void {
    this.#tell('the shard map was deleted manually');
    this.#blind();
    this.#keepBusy();
    this.#hand.delete(Lease, `${this.#name}-shards`);
  }

  #editLedger(): void {
    const { choices } = this.#simulation;
    this.#tell('the shard map was edited manually');
    this.#blind();
    this.#keepBusy();
    const text = choices.one([null, '{"shards":']);
    this.#hand.merge(Lease, `${this.#name}-shards`, { metadata: { annotations: { [LEDGER]: text } } });
  }

  /** Whoever goes on when he should have stopped is at work when the others take him for gone. */
  #keepBusy(from = 0): void {
    for (let at = 13_000; at < 25_000; at += 2_000) this.#after(from + at, () => this.#touchAll());
  }

  /** Who cannot see what was done to the ledger must stop all the same. */
  #blind(): void {
    const { choices } = this.#simulation;
    if (!choices.oneIn(3)) {
      const which = choices.pick(this.#replicas.count);
      this.#replicas.blind(which);
      if (choices.oneIn(2)) this.#freezeAtTheEnd(which);
    }
  }

  /**
   * Its time is up after some seconds: it is stopped amid its work right before, and goes on when another may have begun.
   * Its timers are late then, so only a look at the clock keeps it from going on with what it was about to do.
   */
  #freezeAtTheEnd(which: number): void {
    const { choices } = this.#simulation;
    const inMs = 5_000 + choices.pick(4_500);
    const untilMs = 13_500 + choices.pick(6_500);
    this.#after(inMs - 50 - choices.pick(400), () => this.#touchAll());
    this.#after(inMs, () => this.#replicas.freeze(which, untilMs - inMs));
  }

  #deleteMember(which: number): void {
    const members = [...this.#server.objects(Lease)].filter(
      ({ metadata: { name } }) => name.startsWith(`${this.#name}-`) && name !== `${this.#name}-shards`,
    );
    const member = members[which % Math.max(members.length, 1)];
    if (member === undefined) return;
    this.#tell('the lease of a member was deleted manually');
    this.#hand.delete(Lease, member.metadata.name);
  }

  /** Nothing more once all has healed. */
  #after(ms: number, act: () => void): void {
    const { schedule, network } = this.#simulation;
    schedule.after(ms, () => {
      if (network.faulty) act();
    });
  }

  #tell(what: string): void {
    this.#simulation.counts.add(what);
    this.#simulation.note('meddler', what);
  }
}
