/** Ends a run: an invariant that holds in every scenario is violated. */
export class InvariantError extends Error {
  readonly invariant: string;

  constructor(invariant: string, detail: string) {
    super(detail);
    this.name = 'InvariantError';
    this.invariant = invariant;
  }
}
