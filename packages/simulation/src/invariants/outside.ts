/** A resource outside the cluster that an object manages, such as a machine or a disk. */
export interface OutsideResource {
  readonly id: string;
  /** UID in its ownership label; undefined for a foreign resource. */
  readonly owner: string | undefined;
  /** Whether its deletion has started. */
  readonly leaving: boolean;
}

/** A change of an external resource. `before` is undefined for a creation, `after` for a removal. */
export interface OutsideChange {
  readonly before: OutsideResource | undefined;
  readonly after: OutsideResource | undefined;
}

/** The state of a backend model. */
export interface Outside {
  /** All resources, including those being deleted. */
  all(): Iterable<OutsideResource>;
  /** Calls the listener synchronously on each change. */
  listen(listener: (change: OutsideChange) => void): void;
}
