/** Monotonic counter. Starts at 0 with the process. */
export class Counter {
  #value = 0;

  inc(by = 1): void {
    if (!(by >= 0)) throw new RangeError(`a counter cannot be incremented by ${by}`);
    this.#value += by;
  }

  lines(name: string, labels: string): string {
    return `${name}${braces(labels)} ${this.#value}\n`;
  }
}

/** Value that can go up and down. */
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

/** Cumulative histogram: the number of observations per bucket, the sum of all values, and the total number. */
export class Histogram {
  readonly #bounds: readonly number[];
  /** Number of observations in each bucket; the last bucket is +Inf. `lines` computes the cumulative numbers. */
  readonly #counts: Float64Array;
  #sum = 0;

  /** @param bounds inclusive upper bounds in ascending order */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  /** Records a value. NaN is ignored, because it would make the sum NaN permanently. */
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
