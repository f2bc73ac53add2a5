import { Client } from '@vmwright/runtime';
import { accessTo } from '../../apiserver/simulated.ts';
import type { Simulation } from '../../world/simulation.ts';
import { Machine } from './resource.ts';

const NAMES = ['ant', 'bee', 'cat'];

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
      let at = choices.pick(ms / 2);
      const later = () => {
        at += choices.oneIn(2) ? choices.pick(3_000) : choices.pick(ms / 3);
        return Math.min(at, ms);
      };
      this.#at(at, () => this.apply(name, 1));
      if (choices.oneIn(2)) this.#at(later(), () => this.apply(name, 2));
      if (choices.oneIn(2)) this.#at(later(), () => this.apply(name, 1)); // A → B → A
      if (!choices.oneIn(2)) continue;
      this.#at(later(), () => this.delete(name));
      if (choices.oneIn(2)) this.#at(later(), () => this.apply(name, 1)); // another object of the same name
    }
  }

  apply(name: string, size: number): void {
    this.#simulation.note('user', `wants ${name} of size ${size}`);
    const metadata = { namespace: 'default', name };
    void this.#client.apply(Machine, { metadata, spec: { size } }).catch(() => undefined);
  }

  delete(name: string): void {
    this.#simulation.note('user', `wants no ${name}`);
    void this.#client.delete(Machine, { namespace: 'default', name }).catch(() => undefined);
  }

  #at(ms: number, act: () => void): void {
    this.#simulation.schedule.after(ms, act, this.#process);
  }
}
