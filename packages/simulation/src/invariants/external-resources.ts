/** A resource outside the cluster that an object manages, such as a machine or a disk. */
export interface ExternalResource {
  readonly id: string;
  /** UID in the ownership label; undefined for a foreign resource. */
  readonly owner: string | undefined;
  /** Whether its deletion has started. */
  readonly deleting: boolean;
}

/** A change of an external resource. `before` is undefined for a creation, `after` for a removal. */
export interface ExternalResourceChange {
  readonly before: ExternalResource | undefined;
  readonly after: ExternalResource | undefined;
}

/** The state of a backend model. */
export interface ExternalResources {
  /** All resources, including those being deleted. */
  all(): Iterable<ExternalResource>;
  /** Calls the listener synchronously on each change. */
  listen(listener: (change: ExternalResourceChange) => void): void;
}
