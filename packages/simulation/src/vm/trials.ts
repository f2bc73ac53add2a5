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
 * What has to happen in bounded time can be held to a bound only while nothing else goes wrong. So these come once all
 * has healed; the history has to converge after them as after any trouble.
 */

/** What is tried, by its name in the counts. */
export const TRIALS = ['the cloud was silent in a calm time', 'a status was emptied in a calm time'] as const;

/** Beside what is slow in a calm time too: a probe under way, and a status write with one conflict before it. */
const SLACK_MS = 75_000;
/** Longer than both. */
const SILENCE_MS = UNKNOWN_AFTER_MS + SLACK_MS + 30_000;
/** From the stranger to the API server, to the operator, and back. */
const RESTORED_MS = 75_000;
/** One history in so many has a trial of each kind. */
const RARITY = 4;

export class Trials {
  readonly #truth: Truth;
  readonly #replicas: Replicas;
  /** Since when the cloud has been silent; undefined while it answers. */
  #silentAt: number | undefined;
  /** Since when the status of an object has been empty, by its key. */
  readonly #emptied = new Map<string, number>();
  readonly #looks: (() => void)[] = [];
  #endsAt = 0;

  constructor(truth: Truth, replicas: Replicas) {
    this.#truth = truth;
    this.#replicas = replicas;
  }

  get isOver(): boolean {
    return this.#truth.simulation.schedule.now >= this.#endsAt;
  }

  /** All has healed. @param settledMs after which the lead is somebody's and what users have asked for has landed */
  begin(client: Client, settledMs: number): void {
    const { choices, schedule } = this.#truth.simulation;
    if (!choices.oneIn(RARITY)) return;
    const act = choices.one([() => this.#silence(), () => this.#empty(client)]);
    this.#endsAt = schedule.now + settledMs + SILENCE_MS;
    schedule.after(settledMs, () => {
      act();
      this.#look();
    });
  }

  /** Looks once a second for as long as a trial lasts. */
  #look(): void {
    for (const look of this.#looks) look();
    if (!this.isOver) this.#truth.simulation.schedule.after(1_000, () => this.#look());
  }

  #silence(): void {
    const { network, schedule, counts } = this.#truth.simulation;
    const silentAt = schedule.now;
    counts.add('the cloud was silent in a calm time');
    this.#truth.simulation.note('world', 'the cloud is silent');
    this.#silentAt = silentAt;
    for (const name of this.#replicas.names) network.part(name, CLOUD);
    schedule.after(SILENCE_MS, () => {
      this.#silentAt = undefined;
      for (const name of this.#replicas.names) network.mend(name, CLOUD);
    });
  }

  #empty(client: Client): void {
    const { schedule, counts } = this.#truth.simulation;
    for (const { metadata } of this.#truth.server.objects(VM)) {
      const { namespace = '', name } = metadata;
      const status = { conditions: null, opStatus: null, msg: null, observedGeneration: null };
      const emptied = () => {
        counts.add('a status was emptied in a calm time');
        this.#emptied.set(keyOf(metadata), schedule.now);
      };
      void client
        .mergePatch(VM, { namespace, name }, { status }, { subresource: 'status' })
        .then(emptied, () => undefined);
    }
  }

  /** In a calm time, Ready is not True of any VM when the cloud has been silent for long. */
  readonly unknownWithoutAnswer: Invariant = {
    name: 'Ready is not True without an answer of the cloud',
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
      this.#looks.push(() => {
        if (this.#silentAt === undefined) return;
        const since = Math.max(this.#silentAt, ledSince);
        for (const object of truth.server.objects(VM)) {
          const bound =
            Math.max(since, createdAt.get(object.metadata.uid ?? '') ?? 0) + UNKNOWN_AFTER_MS + SLACK_MS;
          if (schedule.now <= bound) continue;
          const { name } = object.metadata;
          if (isReady(object)) violated(`${name} is Ready ${schedule.now - since} ms after the last answer`);
          if (isCloudAvailable(object))
            violated(`${name} has CloudAvailable ${schedule.now - since} ms after the last answer`);
        }
      });
    },
  };

  /** In a calm time, a status that somebody empties is restored. */
  readonly statusRestored: Invariant = {
    name: 'a status that others have emptied is restored',
    watch: (truth, violated) => {
      const { schedule } = truth.simulation;
      onVmChange(truth, (_, after) => {
        if (after !== undefined && conditionsOf(after).has('Ready'))
          this.#emptied.delete(keyOf(after.metadata));
      });
      this.#looks.push(() => {
        for (const [key, at] of this.#emptied) {
          const object = [...truth.server.objects(VM)].find(({ metadata }) => keyOf(metadata) === key);
          if (object === undefined || conditionsOf(object).has('Ready')) this.#emptied.delete(key);
          else if (schedule.now > at + RESTORED_MS) violated(`${key} has had no conditions since ${at} ms`);
        }
      });
    },
  };
}

function isReady(object: StoredObject): boolean {
  return conditionsOf(object).get('Ready')?.status === 'True';
}
