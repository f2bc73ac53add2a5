/** Something outside the cluster that an object stands for: a machine, a disk. */
export interface OutsideResource {
  readonly id: string;
  /** The UID that our mark on it names; a foreign one has none. */
  readonly owner: string | undefined;
  /** Its deletion has begun. */
  readonly leaving: boolean;
}

/** `before` is missing when it has come, `after` when it is gone. */
export interface OutsideChange {
  readonly before: OutsideResource | undefined;
  readonly after: OutsideResource | undefined;
}

/** The true state of a backend. */
export interface Outside {
  /** All there are, also those that are leaving. */
  all(): Iterable<OutsideResource>;
  /** Told of each change, at the moment of it. */
  listen(listener: (change: OutsideChange) => void): void;
}
