/** The state of a kind's objects in one namespace; see `NamespacePartition`. */
export interface SharedPartition {
  readonly isCurrent: boolean;
  readonly isFailing: boolean;
  publish(): void;
}

/**
 * Coordinates the namespaces that the caches of several kinds watch.
 *
 * Guarantees: the objects of a namespace become visible for all kinds at the same time, once every kind is listed
 * there. If one kind became visible before the others, a reconcile could miss an object of another kind, and
 * create it a second time.
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

  /** Whether at least one kind cannot be listed in this namespace. If so, the caches sync without the namespace. */
  isExcluded(namespace: string): boolean {
    return this.#partitions.get(namespace)?.some(({ isFailing }) => isFailing) ?? false;
  }

  /**
   * Call it when a partition of this namespace was listed, began to fail, or recovered. Publishes the namespace if all
   * its partitions are current. Then calls the `onChange` of every cache.
   */
  changed(namespace: string): void {
    const partitions = this.#partitions.get(namespace) ?? [];
    if (partitions.every(({ isCurrent }) => isCurrent))
      for (const partition of partitions) partition.publish();
    for (const onChange of this.#listeners) onChange();
  }
}
