type Kind = 'counter' | 'gauge' | 'histogram';

/** The labels of a series, as they are written. */
type Labels = Readonly<Record<string, string>>;

interface Series {
  readonly labels: string;
  value: number;
  /** Of a histogram: how many fell below each bound, one more than there are bounds. */
  readonly buckets: number[];
  sum: number;
}

/** All series of one name, written as Prometheus reads them. */
class Family {
  readonly #name: string;
  readonly #kind: Kind;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, Series>();

  constructor(kind: Kind, name: string, help: string, bounds: readonly number[] = []) {
    this.#kind = kind;
    this.#name = name;
    this.#help = help;
    this.#bounds = bounds;
  }

  add(labels: Labels, by = 1): void {
    this.#of(labels).value += by;
  }

  set(labels: Labels, value: number): void {
    this.#of(labels).value = value;
  }

  observe(labels: Labels, value: number): void {
    const series = this.#of(labels);
    const at = this.#bounds.findIndex((bound) => value <= bound);
    const index = at === -1 ? this.#bounds.length : at;
    series.buckets[index] = (series.buckets[index] ?? 0) + 1;
    series.sum += value;
  }

  text(): string {
    const lines = [`# HELP ${this.#name} ${this.#help}`, `# TYPE ${this.#name} ${this.#kind}`];
    for (const series of this.#series.values()) {
      if (this.#kind === 'histogram') lines.push(...this.#histogram(series));
      else lines.push(`${this.#name}${braces(series.labels)} ${series.value}`);
    }
    return `${lines.join('\n')}\n`;
  }

  *#histogram({ labels, buckets, sum }: Series): Generator<string, void, undefined> {
    let total = 0;
    for (const [at, count] of buckets.entries()) {
      total += count;
      const le = `le="${this.#bounds[at] ?? '+Inf'}"`;
      yield `${this.#name}_bucket${braces(labels === '' ? le : `${labels},${le}`)} ${total}`;
    }
    yield `${this.#name}_sum${braces(labels)} ${sum}`;
    yield `${this.#name}_count${braces(labels)} ${total}`;
  }

  #of(labels: Labels): Series {
    const key = Object.entries(labels)
      .map(([name, value]) => `${name}="${escaped(value)}"`)
      .join(',');
    const found = this.#series.get(key);
    if (found !== undefined) return found;
    const buckets = Array.from({ length: this.#bounds.length + 1 }, () => 0);
    const created = { labels: key, value: 0, buckets, sum: 0 };
    this.#series.set(key, created);
    return created;
  }
}

/** Metrics in Prometheus' text format. */
export class Registry {
  static readonly contentType = 'text/plain; version=0.0.4; charset=utf-8';

  readonly #families: Family[] = [];

  counter(name: string, help: string): Pick<Family, 'add'> {
    return this.#add(new Family('counter', name, help));
  }

  gauge(name: string, help: string): Pick<Family, 'set'> {
    return this.#add(new Family('gauge', name, help));
  }

  /** @param bounds upper ones, inclusive, rising */
  histogram(name: string, help: string, bounds: readonly number[]): Pick<Family, 'observe'> {
    return this.#add(new Family('histogram', name, help, bounds));
  }

  text(): string {
    return this.#families.map((family) => family.text()).join('');
  }

  #add(family: Family): Family {
    this.#families.push(family);
    return family;
  }
}

function braces(labels: string): string {
  return labels === '' ? '' : `{${labels}}`;
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}
