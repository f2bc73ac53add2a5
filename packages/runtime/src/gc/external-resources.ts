/** The object that a machine was created for, by the machine's ownership labels. */
export interface Owner {
  readonly uid: string;
  readonly namespace: string;
  /** For people; the UID decides. Empty where the backend does not keep it. */
  readonly name: string;
}

/** The resources of a backend that carry ownership labels of this cluster: servers of a cloud, machines of a vCenter. */
export interface ExternalResources<T> {
  /** All of them, whether or not their owner exists. */
  list(signal: AbortSignal): Promise<readonly T[]>;
  idOf(item: T): string;
  /** What it is and its name, for people: `server web-1`. */
  describe(item: T): string;
  /** Undefined where the backend does not report it. */
  createdAt(item: T): Date | undefined;
  /** Undefined where the item is not ours, or is being deleted already. */
  ownerOf(item: T): Owner | undefined;
  /** Whether the item itself records that its owner was deleted by the operator. @default never */
  outlivedOwner?(item: T): boolean;
  /** Whether people took the item over. Such an item is reported and never deleted. @default never */
  isHeld?(item: T): boolean;
  /** Reads the item again, past any inventory. @returns undefined when it is gone, or carries no label of ours any more */
  refetch(item: T, signal: AbortSignal): Promise<T | undefined>;
  /** @param allow called right before each change, throws when this process must not act any more */
  remove(
    item: T,
    options: { readonly signal: AbortSignal; readonly assertLeader: () => void },
  ): Promise<void>;
}
