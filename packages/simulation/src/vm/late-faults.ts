import { VM } from '@vmwright/operator';
import { type Client, keyOf } from '@vmwright/runtime';
import type { StoredObject } from '../apiserver/object.ts';
import { CLOUD } from '../cloud/simulated.ts';
import type { Invariant, Truth } from '../invariants/invariant.ts';
import { Holder } from '../invariants/leaders.ts';
import { LEASE } from '../scenario/observed-manager.ts';
import type { Replicas } from '../scenario/replicas.ts';
import { conditionsOf, isCloudAvailable, onVmChange } from './objects.ts';
import { UNKNOWN_AFTER_MS } from './program.ts';

/*
 * Faults that the operator must react to within a time limit. They are injected after the other faults have stopped,
 * because a time limit can be checked only while nothing else fails. The run must converge after these faults, too.
 */

/** Counters of the injected faults. */
export const LATE_FAULTS = [
  'the cloud was silent without other faults',
  'a status was emptied without other faults',
] as const;

/**
 * Tolerance for delays that occur even without faults: a request in progress that lists the servers, and a status write
 * that is repeated after a conflict.
 */
const SLACK_MS = 75_000;
/**
 * Duration of the cloud's silence. It is longer than the sum of the tolerance and the time until the operator must
 * report the outage.
 */
const SILENCE_MS = UNKNOWN_AFTER_MS + SLACK_MS + 30_000;
/**
 * Maximum time from the response to the request that empties a status until the operator has restored the status. It
 * includes the watch event and the operator's write.
 */
const RESTORED_MS = 75_000;
/** Probability of a late fault: one run in 4. */
const RARITY = 4;

export class LateFaults {
  readonly #truth: Truth;
  readonly #replicas: Replicas;
  /** Virtual time at which the cloud stopped responding; undefined while it responds. */
  #silentAt: number | undefined;
  /** Virtual time at which a status was emptied, by key of the VM. */
  readonly #emptied = new Map<string, number>();
  readonly #checks: (() => void)[] = [];
  #endsAt = 0;

  constructor(truth: Truth, replicas: Replicas) {
    this.#truth = truth;
    this.#replicas = replicas;
  }

  get isOver(): boolean {
    return this.#truth.simulation.schedule.now >= this.#endsAt;
  }

  /**
   * Injects at most one fault after the other faults have stopped.
   * @param settledMs time until a leader is elected and user requests have arrived
   */
  begin(client: Client, settledMs: number): void {
    const { choices, schedule } = this.#truth.simulation;
    if (!choices.oneIn(RARITY)) return;
    const act = choices.one([() => this.#silence(), () => this.#empty(client)]);
    this.#endsAt = schedule.now + settledMs + SILENCE_MS;
    schedule.after(settledMs, () => {
      act();
      this.#check();
    });
  }

  /** Runs the checks once per virtual second until the fault ends. */
  #check(): void {
    for (const check of this.#checks) check();
    if (!this.isOver) this.#truth.simulation.schedule.after(1_000, () => this.#check());
  }

  #silence(): void {
    const { network, schedule, counts } = this.#truth.simulation;
    const silentAt = schedule.now;
    counts.add('the cloud was silent without other faults');
    this.#truth.simulation.note('world', 'the cloud is silent');
    this.#silentAt = silentAt;
    for (const name of this.#replicas.names) network.partition(name, CLOUD);
    schedule.after(SILENCE_MS, () => {
      this.#silentAt = undefined;
      for (const name of this.#replicas.names) network.heal(name, CLOUD);
    });
  }

  #empty(client: Client): void {
    const { schedule, counts } = this.#truth.simulation;
    for (const { metadata } of this.#truth.server.objects(VM)) {
      const { namespace = '', name } = metadata;
      const status = { conditions: null, opStatus: null, msg: null, observedGeneration: null };
      const emptied = () => {
        counts.add('a status was emptied without other faults');
        this.#emptied.set(keyOf(metadata), schedule.now);
      };
      void client
        .mergePatch(VM, { namespace, name }, { status }, { subresource: 'status' })
        .then(emptied, () => undefined);
    }
  }

  /**
   * Once the cloud has been silent for `UNKNOWN_AFTER_MS` plus the tolerance, no VM has Ready=True or
   * CloudAvailable=True. Checked while no other faults are active.
   */
  readonly unknownWithoutAnswer: Invariant = {
    name: 'Ready is not True while the cloud is silent',
    watch: (truth, violated) => {
      const { schedule } = truth.simulation;
      let ledSince = 0;
      new Holder(truth, LEASE, () => {
        ledSince = schedule.now;
      });
      const createdAt = new Map<string, number>();
      onVmChange(truth, (before, after) => {
        if (before === undefined && after !== undefined)
          createdAt.set(after.metadata.uid ?? '', schedule.now);
      });
      this.#checks.push(() => {
        if (this.#silentAt === undefined) return;
        const since = Math.max(this.#silentAt, ledSince);
        for (const object of truth.server.objects(VM)) {
          const bound =
            Math.max(since, createdAt.get(object.metadata.uid ?? '') ?? 0) + UNKNOWN_AFTER_MS + SLACK_MS;
          if (schedule.now <= bound) continue;
          const { name } = object.metadata;
          if (isReady(object))
            violated(`${name} has Ready=True ${schedule.now - since} ms after the last response`);
          if (isCloudAvailable(object))
            violated(`${name} has CloudAvailable=True ${schedule.now - since} ms after the last response`);
        }
      });
    },
  };

  /** While no other faults are active, the operator restores an emptied status within `RESTORED_MS`. */
  readonly statusRestored: Invariant = {
    name: 'a status emptied by others is restored',
    watch: (truth, violated) => {
      const { schedule } = truth.simulation;
      onVmChange(truth, (_, after) => {
        if (after !== undefined && conditionsOf(after).has('Ready'))
          this.#emptied.delete(keyOf(after.metadata));
      });
      this.#checks.push(() => {
        for (const [key, at] of this.#emptied) {
          const object = [...truth.server.objects(VM)].find(({ metadata }) => keyOf(metadata) === key);
          if (object === undefined || conditionsOf(object).has('Ready')) this.#emptied.delete(key);
          else if (schedule.now > at + RESTORED_MS)
            violated(`${key} has had no Ready condition since ${at} ms`);
        }
      });
    },
  };
}

function isReady(object: StoredObject): boolean {
  return conditionsOf(object).get('Ready')?.status === 'True';
}
