import { Family, type FamilyOptions, type MetricDescription, MetricError } from './family.ts';
import { Counter, Gauge, Histogram } from './series.ts';

export interface HistogramOptions<L extends string> extends FamilyOptions<L> {
  /** Inclusive upper bounds in ascending order, without +Inf. @default the default buckets of the Prometheus clients */
  readonly buckets?: readonly number[];
}

/** Default buckets of the Prometheus client libraries, in seconds. */
const DEFAULT_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Returns `count` bounds, each `factor` times the previous one. */
export function exponentialBuckets(start: number, factor: number, count: number): number[] {
  // Rounded, because 1e-8 × 10 × 10 is 0.0000010000000000000002, which differs from the `le` label of a Go program.
  return Array.from({ length: count }, (_, index) => Number((start * factor ** index).toPrecision(12)));
}

/**
 * Registry of all metrics of a program, exposed in Prometheus' text format. It replaces prom-client, in which an update
 * costs ten times as much (docs/internals/decisions/006-metrics.md).
 */
export class Registry {
  /** Content type of `text()`. */
  static readonly contentType = 'text/plain; version=0.0.4; charset=utf-8';

  readonly #families = new Map<string, { text(): string; describe(): MetricDescription }>();
  readonly #beforeText: (() => void)[] = [];

  counter<const L extends string = never>(options: FamilyOptions<L>): Family<Counter, L> {
    return this.#add(new Family('counter', options, () => new Counter()));
  }

  gauge<const L extends string = never>(options: FamilyOptions<L>): Family<Gauge, L> {
    return this.#add(new Family('gauge', options, () => new Gauge()));
  }

  histogram<const L extends string = never>(options: HistogramOptions<L>): Family<Histogram, L> {
    const { name, buckets = DEFAULT_BUCKETS } = options;
    const ascending = buckets.every(
      (bound, index) => Number.isFinite(bound) && bound > (buckets[index - 1] ?? -Infinity),
    );
    if (!ascending || buckets.length === 0)
      throw new MetricError(`the buckets of ${name} must be finite and ascending`);
    return this.#add(new Family('histogram', options, () => new Histogram(buckets)));
  }

  /** Registers a callback that runs before each scrape, for values that are cheaper to read than to keep up to date. */
  beforeText(update: () => void): void {
    this.#beforeText.push(update);
  }

  /** Returns all metrics in Prometheus' text format. */
  text(): string {
    for (const update of this.#beforeText) update();
    let text = '';
    for (const family of this.#families.values()) text += family.text();
    return text;
  }

  /** Describes all metrics in the order of their declaration, including those without a series. */
  describe(): readonly MetricDescription[] {
    return [...this.#families.values()].map((family) => family.describe());
  }

  #add<F extends { readonly name: string; text(): string; describe(): MetricDescription }>(family: F): F {
    if (this.#families.has(family.name)) throw new MetricError(`metric ${family.name} is already registered`);
    this.#families.set(family.name, family);
    return family;
  }
}
