export type MetricType = 'counter' | 'gauge' | 'histogram';

export interface FamilyOptions<L extends string> {
  readonly name: string;
  readonly help: string;
  /** The names of its labels. @default none */
  readonly labels?: readonly L[];
}

/** What a series can do for its family. */
export interface Series {
  lines(name: string, labels: string): string;
}

/** A metric that was declared wrongly: a mistake in the program, not in its use. */
export class MetricError extends Error {
  readonly code = 'METRIC';

  constructor(message: string) {
    super(message);
    this.name = 'MetricError';
  }
}

/**
 * All series of one name. A series is there, at 0, from the moment it is bound; one without labels from the start.
 *
 * Assumptions: a label's values are a fixed, small set (a controller's name, an HTTP status), never the name of an
 * object. A series is never dropped, and each costs memory here and in Prometheus.
 */
export class Family<S extends Series, L extends string> {
  readonly name: string;
  readonly #type: MetricType;
  readonly #help: string;
  readonly #labels: readonly L[];
  readonly #create: () => S;
  /** By their labels as they are written. */
  readonly #series = new Map<string, S>();

  constructor(type: MetricType, { name, help, labels = [] }: FamilyOptions<L>, create: () => S) {
    if (!METRIC_NAME.test(name)) throw new MetricError(`"${name}" is no name for a metric`);
    for (const label of labels) {
      if (!LABEL_NAME.test(label) || (type === 'histogram' && label === 'le'))
        throw new MetricError(`"${label}" is no name for a label of ${name}`);
    }
    if (new Set(labels).size !== labels.length) throw new MetricError(`${name} has a label twice`);
    this.name = name;
    this.#type = type;
    this.#help = help;
    this.#labels = labels;
    this.#create = create;
    if (labels.length === 0) this.#seriesOf('');
  }

  /** The series with these labels. To be kept by whoever uses it often: finding it costs more than using it. */
  with(labels: Readonly<Record<L, string>>): S {
    return this.#seriesOf(this.#labels.map((label) => `${label}="${escapeValue(labels[label])}"`).join(','));
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
/** Names that begin with two underscores are Prometheus' own. */
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/;

function escapeValue(value: string): string {
  return escapeHelp(value).replaceAll('"', '\\"');
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
