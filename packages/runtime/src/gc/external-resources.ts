/** Object that an external resource was created for, as recorded in the ownership labels of the resource. */
export interface Owner {
  readonly uid: string;
  /** Namespace; empty if the backend does not store it. */
  readonly namespace: string;
  /** Name for messages; owners are compared by UID. Empty if the backend does not store it. */
  readonly name: string;
}

/** Resources in a backend with ownership labels of this cluster: servers in a cloud, machines in a vCenter. */
export interface ExternalResources<T> {
  /** Returns all resources, whether or not their owner exists. */
  list(signal: AbortSignal): Promise<readonly T[]>;
  idOf(item: T): string;
  /** Returns the type and name of a resource for messages: `server web-1`. */
  describe(item: T): string;
  /** Returns the creation time; undefined if the backend does not report it. */
  createdAt(item: T): Date | undefined;
  /**
   * Returns the owner; undefined if the resource has no ownership labels of this cluster, or if the resource itself is
   * being deleted.
   */
  ownerOf(item: T): Owner | undefined;
  /**
   * Returns whether the resource has the mark that the operator sets on a resource which remains after the deletion of
   * its owner.
   * @default false
   */
  outlivedOwner?(item: T): boolean;
  /** Returns whether a user took the resource over. It is then reported and never deleted. @default false */
  isHeld?(item: T): boolean;
  /**
   * Reads a resource from the backend, not from a cache.
   * @returns undefined if the resource or its ownership labels are gone
   */
  refetch(item: T, signal: AbortSignal): Promise<T | undefined>;
  /** Deletes a resource, unless it is gone already. */
  remove(item: T, options: RemoveOptions): Promise<void>;
}

/** Options of `ExternalResources.remove`. */
export interface RemoveOptions {
  readonly signal: AbortSignal;
  /** Throws once this process may no longer change the backend. Must be called right before each change. */
  readonly assertLeader: () => void;
  /**
   * Must be called with each change as soon as the backend has accepted it, because the process may end before the
   * resource is gone.
   */
  readonly onChange: (change: ExternalChange) => void;
}

/** A change of an external resource that its backend has accepted. */
export interface ExternalChange {
  /** `stop`: the backend requires that the resource is stopped before it is deleted. */
  readonly type: 'stop' | 'delete';
  /** Task of the backend that makes the change. @default none */
  readonly task?: string;
}
