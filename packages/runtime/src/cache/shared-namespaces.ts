import type { KubeObject } from '../kind/object.ts';
import type { NamespacePartition } from './namespace-partition.ts';

type AnyPartition = Pick<NamespacePartition<KubeObject>, 'isCurrent' | 'isFailing' | 'letIn'>;

/**
 * Namespaces that the caches of several kinds watch.
 *
 * Guarantees: a namespace is seen by readers only when all kinds are listed in it, and then of all of them at once. Who
 * reconciles an object there, and asks the cache of another kind for what belongs to it, would take what is not listed
 * yet for what is not there, and make it a second time.
 */
export class SharedNamespaces {
  readonly #partitions = new Map<string, AnyPartition[]>();
  readonly #listeners: (() => void)[] = [];

  /** @param settle called when something has changed, in whatever namespace */
  join(sections: ReadonlyMap<string, AnyPartition>, settle: () => void): void {
    this.#listeners.push(settle);
    for (const [namespace, section] of sections) {
      const others = this.#partitions.get(namespace);
      if (others === undefined) this.#partitions.set(namespace, [section]);
      else others.push(section);
    }
  }

  /** Whether nobody is to wait for it: one kind at least cannot be listed there. */
  isExcluded(namespace: string): boolean {
    return this.#partitions.get(namespace)?.some(({ isFailing }) => isFailing) ?? false;
  }

  /** To be called when a section of this namespace was listed, fails, or does not any more. */
  changed(namespace: string): void {
    const sections = this.#partitions.get(namespace) ?? [];
    if (sections.every(({ isCurrent }) => isCurrent)) for (const section of sections) section.letIn();
    for (const settle of this.#listeners) settle();
  }
}
