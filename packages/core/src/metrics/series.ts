/** Goes up only; starts again at 0 with the process. */
export class Counter {
  #value = 0;

  inc(by = 1): void {
    if (!(by >= 0)) throw new RangeError(`a counter cannot go up by ${by}`);
    this.#value += by;
  }

  lines(name: string, labels: string): string {
    return `${name}${braces(labels)} ${this.#value}\n`;
  }
}

/** Goes up and down. */
export class Gauge {
  #value = 0;

  set(value: number): void {
    this.#value = value;
  }

  inc(by = 1): void {
    this.#value += by;
  }

  dec(by = 1): void {
    this.#value -= by;
  }

  lines(name: string, labels: string): string {
    return `${name}${braces(labels)} ${numberText(this.#value)}\n`;
  }
}

/** How many observations fell below each of some bounds, their sum and their number. */
export class Histogram {
  readonly #bounds: readonly number[];
  /** One for each bound and one for what is above the last; added up only when somebody looks. */
  readonly #counts: Float64Array;
  #sum = 0;

  /** @param bounds upper ones, inclusive, rising */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  /** What is not a number is left out: it would make the sum useless for good. */
  observe(value: number): void {
    if (Number.isNaN(value)) return;
    const bounds = this.#bounds;
    let low = 0;
    let high = bounds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (value <= (bounds[middle] ?? Number.POSITIVE_INFINITY)) high = middle;
      else low = middle + 1;
    }
    this.#counts[low] = (this.#counts[low] ?? 0) + 1;
    this.#sum += value;
  }

  lines(name: string, labels: string): string {
    const before = labels === '' ? '' : `${labels},`;
    let text = '';
    let total = 0;
    for (const [index, count] of this.#counts.entries()) {
      total += count;
      text += `${name}_bucket{${before}le="${numberText(this.#bounds[index] ?? Number.POSITIVE_INFINITY)}"} ${total}\n`;
    }
    return `${text}${name}_sum${braces(labels)} ${numberText(this.#sum)}\n${name}_count${braces(labels)} ${total}\n`;
  }
}

function braces(labels: string): string {
  return labels === '' ? '' : `{${labels}}`;
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  return String(value);
}
