import { VM } from '@vmwright/operator';
import { Client } from '@vmwright/runtime';
import { accessTo } from '../apiserver/simulated.ts';
import type { Simulation } from '../world/simulation.ts';
import { DELETION_POLICY, PAUSED, RECREATE } from './objects.ts';

/** What the user's objects are called, and the machines that they ask for, unless they want the same. */
export const NAMES = ['ant', 'bee', 'cat'] as const;

/** A name that two may want, and one that a stranger's machine has. */
export const SHARED = 'vm-shared';
export const TAKEN = 'vm-foreign';

const UPDATED = { metadata: { annotations: { touched: 'yes' } } };

/** All objects that he ever has. */
export const ALL: readonly string[] = NAMES.flatMap((name) => [name, successorOf(name)]);

/** Another object that wants a machine of the same name. */
function successorOf(name: string): string {
  return `${name}-next`;
}

/** Somebody who asks for machines, changes his mind, and lets go of them; sometimes all within seconds. */
export class User {
  readonly #simulation: Simulation;
  readonly #client: Client;
  readonly #process;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    const world = simulation.start('user');
    this.#process = world.process;
    this.#client = new Client({ world, access: accessTo(), fieldManager: 'user' });
  }

  /** Plans what he does within so many milliseconds. */
  plan(ms: number): void {
    const { choices } = this.#simulation;
    for (const name of NAMES) {
      let at = choices.pick(ms / 4);
      const later = () => {
        at += choices.oneIn(2) ? choices.pick(3_000) : choices.pick(ms / 3);
        return Math.min(at, ms);
      };
      const vmname = () => (choices.oneIn(6) ? choices.one([SHARED, SHARED, TAKEN] as const) : `vm-${name}`);
      this.#at(at, () => this.create(name, vmname()));
      if (choices.oneIn(3)) this.#at(later(), () => this.annotate(name, RECREATE, 'true'));
      if (choices.oneIn(8)) {
        this.#at(later(), () => this.annotate(name, PAUSED, 'true'));
        this.#at(later(), () => this.annotate(name, PAUSED, null));
      }
      if (!choices.oneIn(2)) continue;
      this.#at(later(), () => (choices.oneIn(4) ? this.letGo(name) : this.delete(name)));
      if (choices.oneIn(3)) this.#at(later(), () => this.create(successorOf(name), `vm-${name}`)); // its name goes on
      if (choices.oneIn(2)) this.#at(later(), () => this.create(name, vmname())); // another object of the same name
    }
  }

  create(name: string, vmname: string): void {
    this.#simulation.note('user', `wants ${name}, called ${vmname}`);
    const metadata = { namespace: 'default', name };
    void this.#client.create(VM, { metadata, spec: { vmname } }).catch(() => undefined);
  }

  delete(name: string): void {
    this.#simulation.note('user', `wants no ${name}`);
    void this.#client.delete(VM, { namespace: 'default', name }).catch(() => undefined);
  }

  annotate(name: string, annotation: string, value: string | null): void {
    this.#simulation.note('user', `annotates ${name} with ${annotation}: ${value}`);
    const patch = { metadata: { annotations: { [annotation]: value } } };
    void this.#client.mergePatch(VM, { namespace: 'default', name }, patch).catch(() => undefined);
  }

  /** Deletes an object whose machine is to stay. Said before the deletion: afterwards it may come too late. */
  letGo(name: string): void {
    this.#simulation.note('user', `lets go of ${name}`);
    void this.#letGo({ namespace: 'default', name }).catch(() => undefined);
  }

  /** Pauses end. @param touch whether each object is to be looked at again */
  resume(names: Iterable<string>, touch: boolean): void {
    for (const name of names) {
      this.annotate(name, PAUSED, null);
      if (touch)
        void this.#client.mergePatch(VM, { namespace: 'default', name }, UPDATED).catch(() => undefined);
    }
  }

  async #letGo(ref: { readonly namespace: string; readonly name: string }): Promise<void> {
    const { metadata } = await this.#client.get(VM, ref);
    const { uid, resourceVersion, deletionTimestamp } = metadata;
    if (deletionTimestamp !== undefined) return;
    const annotations = { [DELETION_POLICY]: 'Orphan' };
    await this.#client.mergePatch(VM, ref, { metadata: { uid, resourceVersion, annotations } });
    await this.#client.delete(VM, ref, { uid });
  }

  #at(ms: number, act: () => void): void {
    this.#simulation.schedule.after(ms, act, this.#process);
  }
}
