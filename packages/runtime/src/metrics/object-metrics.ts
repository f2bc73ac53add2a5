import type { Family, Gauge, Registry } from '@vmwright/core';
import type { ObjectCache } from '../cache/cache.ts';
import type { KubeObject } from '../kind/object.ts';

export interface CountOptions<T> {
  /** All phases that an object can have; one that has none of them counts as `None`. */
  readonly phases: readonly string[];
  readonly phaseOf: (object: T) => string | undefined;
}

/** Of an object without a phase: its controller has not written its status yet. */
const NONE = 'None';
const INDEX = 'metrics/phase';

/**
 * Gauge of the objects in the caches, by kind and phase. Read from the cache's index at each scrape: neither a change of
 * an object nor a scrape costs time by the number of objects. NaN until the cache has its first complete list.
 *
 * Every replica counts all objects: take the maximum over replicas, not the sum.
 */
export class ObjectMetrics {
  readonly #registry: Registry;
  readonly #family: Family<Gauge, 'kind' | 'phase'>;

  /** @param name of the gauge, such as `vmwright_objects` */
  constructor(registry: Registry, name: string) {
    const help = 'Objects by kind and phase, as this replica sees them; NaN until it has listed them';
    this.#registry = registry;
    this.#family = registry.gauge({ name, help, labels: ['kind', 'phase'] });
  }

  /** Counts the objects of a kind from now on. Once for a cache. */
  count<T extends KubeObject>(cache: ObjectCache<T>, { phases, phaseOf }: CountOptions<T>): void {
    const { kind } = cache.kind;
    // The same list for all objects of a phase: thousands of them are kept.
    const values = new Map([...phases, NONE].map((phase) => [phase, [phase] as const]));
    const none = [NONE] as const;
    cache.addIndex(INDEX, (object) => values.get(phaseOf(object) ?? NONE) ?? none);
    const gauges = [...values.keys()].map((phase) => [phase, this.#family.with({ kind, phase })] as const);
    this.#registry.beforeText(() => {
      for (const [phase, gauge] of gauges)
        gauge.set(cache.hasSynced ? cache.countByIndex(INDEX, phase) : Number.NaN);
    });
  }
}
