import { Person } from '../../scenario/person.ts';
import type { Simulation } from '../../world/simulation.ts';
import { Machine } from './resource.ts';

const NAMES = ['ant', 'bee', 'cat'];

/** A user who creates, changes and deletes machines, sometimes within seconds. */
export class User {
  readonly #simulation: Simulation;
  readonly #person: Person<Machine>;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.#person = new Person(simulation, Machine);
  }

  /** Plans the user's actions for the given number of milliseconds. */
  plan(ms: number): void {
    const { choices } = this.#simulation;
    for (const name of NAMES) {
      let at = choices.pick(ms / 2);
      const later = () => {
        at += choices.oneIn(2) ? choices.pick(3_000) : choices.pick(ms / 3);
        return Math.min(at, ms);
      };
      this.#person.at(at, () => this.apply(name, 1));
      if (choices.oneIn(2)) this.#person.at(later(), () => this.apply(name, 2));
      if (choices.oneIn(2)) this.#person.at(later(), () => this.apply(name, 1)); // A → B → A
      if (!choices.oneIn(2)) continue;
      this.#person.at(later(), () => this.delete(name));
      if (choices.oneIn(2)) this.#person.at(later(), () => this.apply(name, 1)); // a new object with the same name
    }
  }

  apply(name: string, size: number): void {
    const metadata = { namespace: 'default', name };
    this.#person.does(`applies ${name} with size ${size}`, () =>
      this.#person.client.apply(Machine, { metadata, spec: { size } }),
    );
  }

  delete(name: string): void {
    this.#person.delete({ namespace: 'default', name }, name);
  }
}
