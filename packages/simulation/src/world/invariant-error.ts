/** Ends a run when an invariant that applies to every scenario is violated. */
export class InvariantError extends Error {
  readonly invariant: string;

  constructor(invariant: string, detail: string) {
    super(detail);
    this.name = 'InvariantError';
    this.invariant = invariant;
  }
}
