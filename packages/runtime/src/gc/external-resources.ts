/** Object that an external resource was created for, as recorded in the ownership labels of the resource. */
export interface Owner {
  readonly uid: string;
  /** Empty if the backend does not store it. */
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
  /** Returns the owner; undefined if the resource has no ownership labels of this cluster, or is being deleted. */
  ownerOf(item: T): Owner | undefined;
  /** Returns whether a record on the resource says that the operator has deleted its owner. @default false */
  outlivedOwner?(item: T): boolean;
  /** Returns whether a user took the resource over. It is then reported and never deleted. @default false */
  isHeld?(item: T): boolean;
  /** Reads a resource from the backend, not from a cache. @returns undefined if it or its ownership labels are gone */
  refetch(item: T, signal: AbortSignal): Promise<T | undefined>;
  /** Deletes a resource. Calls `assertLeader`, which throws once this process may not act, right before each change. */
  remove(
    item: T,
    options: { readonly signal: AbortSignal; readonly assertLeader: () => void },
  ): Promise<void>;
}
