import { Family, type FamilyOptions, MetricError } from './family.ts';
import { Counter, Gauge, Histogram } from './series.ts';

export interface HistogramOptions<L extends string> extends FamilyOptions<L> {
  /** Upper bounds, inclusive, rising; infinity is added. @default DEFAULT_BUCKETS */
  readonly buckets?: readonly number[];
}

/** Seconds; those of Prometheus' own clients. */
const DEFAULT_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** `count` bounds, each `factor` times the one before. */
export function exponentialBuckets(start: number, factor: number, count: number): number[] {
  // Rounded, for 1e-8 × 10 × 10 is 0.0000010000000000000002 and would be another series than Go's.
  return Array.from({ length: count }, (_, index) => Number((start * factor ** index).toPrecision(12)));
}

/**
 * The metrics of a program, written as Prometheus reads them. Own code because the library for it takes ten
 * times as long a use, and brings more than is needed (docs/internals/decisions/006-metrics.md).
 */
export class Registry {
  /** Of what `text` gives. */
  static readonly contentType = 'text/plain; version=0.0.4; charset=utf-8';

  readonly #families = new Map<string, { text(): string }>();
  readonly #before: (() => void)[] = [];

  counter<const L extends string = never>(options: FamilyOptions<L>): Family<Counter, L> {
    return this.#add(new Family('counter', options, () => new Counter()));
  }

  gauge<const L extends string = never>(options: FamilyOptions<L>): Family<Gauge, L> {
    return this.#add(new Family('gauge', options, () => new Gauge()));
  }

  histogram<const L extends string = never>(options: HistogramOptions<L>): Family<Histogram, L> {
    const { name, buckets = DEFAULT_BUCKETS } = options;
    const rising = buckets.every(
      (bound, index) => Number.isFinite(bound) && bound > (buckets[index - 1] ?? -Infinity),
    );
    if (!rising || buckets.length === 0) throw new MetricError(`the buckets of ${name} do not rise`);
    return this.#add(new Family('histogram', options, () => new Histogram(buckets)));
  }

  /** Called before each look at the metrics: for those that are cheaper to ask for then than to keep. */
  beforeText(set: () => void): void {
    this.#before.push(set);
  }

  /** All metrics, in Prometheus' text format. */
  text(): string {
    for (const set of this.#before) set();
    let text = '';
    for (const family of this.#families.values()) text += family.text();
    return text;
  }

  #add<F extends { readonly name: string; text(): string }>(family: F): F {
    if (this.#families.has(family.name)) throw new MetricError(`there are two metrics ${family.name}`);
    this.#families.set(family.name, family);
    return family;
  }
}
