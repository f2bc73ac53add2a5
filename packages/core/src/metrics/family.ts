export type MetricType = 'counter' | 'gauge' | 'histogram';

export interface FamilyOptions<L extends string> {
  readonly name: string;
  readonly help: string;
  /** Label names. @default none */
  readonly labels?: readonly L[];
}

export interface Series {
  /** Returns the series in Prometheus' text format. */
  lines(name: string, labels: string): string;
}

/** Description of a metric, for documentation. */
export interface MetricDescription {
  readonly name: string;
  readonly type: MetricType;
  readonly help: string;
  readonly labels: readonly string[];
}

/** Thrown when a metric is declared with an invalid name, label or bucket, or when it is declared twice. */
export class MetricError extends Error {
  readonly code = 'METRIC';

  constructor(message: string) {
    super(message);
    this.name = 'MetricError';
  }
}

/**
 * Metric family: all series of one metric name. A family without labels exposes its only series immediately. In a
 * family with labels, a series starts at 0 when `with` is first called for its labels.
 *
 * Assumptions: a label has a small, fixed set of values, such as controller names or HTTP statuses, never object names.
 * Series are never dropped, and each costs memory here and in Prometheus.
 */
export class Family<S extends Series, L extends string> {
  readonly name: string;
  readonly #type: MetricType;
  readonly #help: string;
  readonly #labels: readonly L[];
  readonly #create: () => S;
  /** Series by their formatted labels. */
  readonly #series = new Map<string, S>();

  constructor(type: MetricType, { name, help, labels = [] }: FamilyOptions<L>, create: () => S) {
    if (!METRIC_NAME.test(name)) throw new MetricError(`"${name}" is not a valid metric name`);
    for (const label of labels) {
      if (!LABEL_NAME.test(label) || (type === 'histogram' && label === 'le'))
        throw new MetricError(`"${label}" is not a valid label name of ${name}`);
    }
    if (new Set(labels).size !== labels.length)
      throw new MetricError(`${name} declares the same label twice`);
    this.name = name;
    this.#type = type;
    this.#help = help;
    this.#labels = labels;
    this.#create = create;
    if (labels.length === 0) this.#seriesOf('');
  }

  /** Returns the series with these labels. Hot paths should keep the result: the lookup costs more than an update. */
  with(labels: Readonly<Record<L, string>>): S {
    return this.#seriesOf(this.#labels.map((label) => `${label}="${escapeValue(labels[label])}"`).join(','));
  }

  describe(): MetricDescription {
    return { name: this.name, type: this.#type, help: this.#help, labels: this.#labels };
  }

  text(): string {
    let text = `# HELP ${this.name} ${escapeHelp(this.#help)}\n# TYPE ${this.name} ${this.#type}\n`;
    for (const [labels, series] of this.#series) text += series.lines(this.name, labels);
    return text;
  }

  #seriesOf(key: string): S {
    const found = this.#series.get(key);
    if (found !== undefined) return found;
    const created = this.#create();
    this.#series.set(key, created);
    return created;
  }
}

const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
/** Label names that begin with two underscores are reserved by Prometheus. */
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/;

function escapeValue(value: string): string {
  return escapeHelp(value).replaceAll('"', '\\"');
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
