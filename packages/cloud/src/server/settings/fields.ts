import { isRecord } from '../../api/record.ts';
import { StartError } from '../errors.ts';
import type { Range } from '../simulated/model.ts';

/** Validating reader of an object in the config file. `end` rejects the fields that were not read. */
export class Fields {
  readonly #path: string;
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #read = new Set<string>();

  /** @param path prefix of error messages, such as `cloud.json: simulated` */
  constructor(path: string, value: unknown) {
    if (!isRecord(value)) throw new StartError('SETTINGS', `${path} must be an object`);
    this.#path = path;
    this.#fields = value;
  }

  number(name: string, fallback: number, { min, max }: Range): number {
    const value = this.#take(name) ?? fallback;
    if (typeof value === 'number' && value >= min && value <= max) return value;
    const bounds = max === Number.POSITIVE_INFINITY ? `of at least ${min}` : `from ${min} to ${max}`;
    throw this.#invalid(name, `a number ${bounds}`, value);
  }

  integer(name: string, fallback: number, range: Range): number {
    const value = this.number(name, fallback, range);
    if (Number.isSafeInteger(value)) return value;
    throw this.#invalid(name, 'an integer', value);
  }

  string(name: string): string | undefined {
    const value = this.#take(name);
    if (value === undefined || (typeof value === 'string' && value !== '')) return value;
    throw this.#invalid(name, 'a non-empty string', value);
  }

  strings(name: string): readonly string[] {
    const value = this.#take(name) ?? [];
    if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value;
    throw this.#invalid(name, 'an array of strings', value);
  }

  choice<const T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.#take(name);
    const found = choices.find((choice) => choice === value);
    if (value === undefined || found !== undefined) return found;
    throw this.#invalid(name, `one of ${choices.join(', ')}`, value);
  }

  /** Reads an object such as `{"min": 1, "max": 2}`, and checks that both numbers are within `bounds`. */
  range(name: string, fallback: Range, bounds: Range): Range {
    return this.object(name, (fields) => fields.ownRange(fallback, bounds));
  }

  /** Reads `min` and `max` of this object, which may have other fields too. */
  ownRange(fallback: Range, bounds: Range): Range {
    const min = this.number('min', fallback.min, bounds);
    const max = this.number('max', Math.max(fallback.max, min), bounds);
    if (min > max) throw new StartError('SETTINGS', `${this.#path}: min is greater than max`);
    return { min, max };
  }

  /** Reads a nested object. A missing object is read as an empty one. */
  object<T>(name: string, read: (fields: Fields) => T): T {
    const fields = new Fields(`${this.#path}: ${name}`, this.#take(name) ?? {});
    const result = read(fields);
    fields.end();
    return result;
  }

  /** @throws StartError if the object has a field that was not read */
  end(): void {
    const unknown = Object.keys(this.#fields).find((name) => !this.#read.has(name));
    if (unknown === undefined) return;
    const known = [...this.#read].join(', ');
    throw new StartError('SETTINGS', `${this.#path}: unknown field "${unknown}"; known fields: ${known}`);
  }

  #take(name: string): unknown {
    this.#read.add(name);
    return this.#fields[name];
  }

  #invalid(name: string, expected: string, value: unknown): StartError {
    return new StartError(
      'SETTINGS',
      `${this.#path}: "${name}" must be ${expected}, not ${JSON.stringify(value)}`,
    );
  }
}
