import type { Invariant, Truth } from '../invariants/invariant.ts';

/** The operator changes nothing in another vCenter to which the configured address temporarily leads. */
export class ForeignChanges implements Invariant {
  readonly name = 'no change is made in another vCenter';
  readonly #violated: ((what: string) => void)[] = [];

  readonly watch = (_: Truth, violated: (what: string) => void): void => {
    this.#violated.push(violated);
  };

  report(what: string): void {
    for (const violated of this.#violated) violated(what);
  }
}
