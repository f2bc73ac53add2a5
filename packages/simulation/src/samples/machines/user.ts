import { KubectlUser } from '../../scenario/kubectl-user.ts';
import type { Simulation } from '../../world/simulation.ts';
import { Machine } from './resource.ts';

const NAMES = ['ant', 'bee', 'cat'];

/** A user who creates, changes and deletes machines, sometimes within seconds. */
export class User {
  readonly #simulation: Simulation;
  readonly #kubectl: KubectlUser<Machine>;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.#kubectl = new KubectlUser(simulation, Machine);
  }

  /** Schedules the user's actions within the given number of milliseconds. */
  plan(ms: number): void {
    const { choices } = this.#simulation;
    for (const name of NAMES) {
      let at = choices.pick(ms / 2);
      const later = () => {
        at += choices.oneIn(2) ? choices.pick(3_000) : choices.pick(ms / 3);
        return Math.min(at, ms);
      };
      this.#kubectl.at(at, () => this.apply(name, 1));
      if (choices.oneIn(2)) this.#kubectl.at(later(), () => this.apply(name, 2));
      if (choices.oneIn(2)) this.#kubectl.at(later(), () => this.apply(name, 1)); // back to the first size
      if (!choices.oneIn(2)) continue;
      this.#kubectl.at(later(), () => this.delete(name));
      if (choices.oneIn(2)) this.#kubectl.at(later(), () => this.apply(name, 1)); // a new object with the same name
    }
  }

  apply(name: string, size: number): void {
    const metadata = { namespace: 'default', name };
    this.#kubectl.run(`applies ${name} with size ${size}`, () =>
      this.#kubectl.client.apply(Machine, { metadata, spec: { size } }),
    );
  }

  delete(name: string): void {
    this.#kubectl.delete({ namespace: 'default', name }, name);
  }
}
