import type { Family, Gauge, Registry } from '@vmwright/core';
import type { ObjectCache } from '../cache/cache.ts';
import type { KubeObject } from '../kind/object.ts';

/** Phases by which the objects of a kind are counted. */
export interface CountOptions<T> {
  /** All phases that an object can have. An object in none of them counts as `None`. */
  readonly phases: readonly string[];
  readonly phaseOf: (object: T) => string | undefined;
}

/** Phase of an object without a known phase, for example because its controller has not written the status yet. */
const NONE = 'None';
const INDEX = 'metrics/phase';

/**
 * Gauge of cached objects by kind and phase; NaN until the cache has synced. Each scrape reads the counts from an index
 * of the cache, so the cost of a scrape does not depend on the number of objects.
 *
 * Every replica counts all objects: aggregate with `max`, not `sum`.
 */
export class ObjectMetrics {
  readonly #registry: Registry;
  readonly #family: Family<Gauge, 'kind' | 'phase'>;

  /** @param name name of the gauge, such as `vmwright_objects` */
  constructor(registry: Registry, name: string) {
    const help =
      'Number of objects by kind and phase. The phase is None before the first status, and the value is NaN until the objects are listed. Every replica counts all objects, so aggregate with max';
    this.#registry = registry;
    this.#family = registry.gauge({ name, help, labels: ['kind', 'phase'] });
  }

  /** Adds the objects of a cache to the gauge. Call it once per cache. */
  count<T extends KubeObject>(cache: ObjectCache<T>, { phases, phaseOf }: CountOptions<T>): void {
    const { kind } = cache.kind;
    // The index stores the array that this function returns. To save memory, all objects of a phase share one array.
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
