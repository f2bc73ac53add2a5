/** The state of a kind's objects in one namespace; see `NamespacePartition`. */
export interface SharedPartition {
  readonly isCurrent: boolean;
  readonly isFailing: boolean;
  publish(): void;
}

/**
 * Coordinates the namespaces that the caches of several kinds watch.
 *
 * Guarantees: the objects of a namespace become visible only when every kind is listed there, and then for all kinds at
 * once. Otherwise a reconcile could conclude that an object of a kind that is not listed yet does not exist, and create
 * it a second time.
 */
export class SharedNamespaces {
  readonly #partitions = new Map<string, SharedPartition[]>();
  readonly #listeners: (() => void)[] = [];

  /** Adds the partitions of a cache. @param onChange called after each call of `changed` */
  join(partitions: ReadonlyMap<string, SharedPartition>, onChange: () => void): void {
    this.#listeners.push(onChange);
    for (const [namespace, partition] of partitions) {
      const others = this.#partitions.get(namespace);
      if (others === undefined) this.#partitions.set(namespace, [partition]);
      else others.push(partition);
    }
  }

  /** Whether caches sync without this namespace, because at least one kind cannot be listed there. */
  isExcluded(namespace: string): boolean {
    return this.#partitions.get(namespace)?.some(({ isFailing }) => isFailing) ?? false;
  }

  /**
   * Publishes the namespace if all its partitions are current, and calls the `onChange` of every cache. Must be called
   * when a partition of this namespace has been listed, has begun to fail, or has recovered.
   */
  changed(namespace: string): void {
    const partitions = this.#partitions.get(namespace) ?? [];
    if (partitions.every(({ isCurrent }) => isCurrent))
      for (const partition of partitions) partition.publish();
    for (const onChange of this.#listeners) onChange();
  }
}
