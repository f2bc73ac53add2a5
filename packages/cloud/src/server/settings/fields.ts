import { isRecord } from '../../api/record.ts';
import { StartError } from '../errors.ts';
import type { Range } from '../simulated/model.ts';

/** The fields of an object in the config file, read one by one; what nobody has read at the end is a mistake in it. */
export class Fields {
  readonly #path: string;
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #read = new Set<string>();

  /** @param path as it reads in a complaint: `cloud.json: simulated` */
  constructor(path: string, value: unknown) {
    if (!isRecord(value)) throw new StartError('SETTINGS', `${path} is not an object`);
    this.#path = path;
    this.#fields = value;
  }

  number(name: string, otherwise: number, { min, max }: Range): number {
    const value = this.#take(name) ?? otherwise;
    if (typeof value === 'number' && value >= min && value <= max) return value;
    const bounds = max === Number.POSITIVE_INFINITY ? `from ${min} on` : `from ${min} to ${max}`;
    throw this.#wrong(name, `a number ${bounds}`, value);
  }

  integer(name: string, otherwise: number, range: Range): number {
    const value = this.number(name, otherwise, range);
    if (Number.isSafeInteger(value)) return value;
    throw this.#wrong(name, 'a whole number', value);
  }

  text(name: string): string | undefined {
    const value = this.#take(name);
    if (value === undefined || (typeof value === 'string' && value !== '')) return value;
    throw this.#wrong(name, 'a text', value);
  }

  texts(name: string): readonly string[] {
    const value = this.#take(name) ?? [];
    if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value;
    throw this.#wrong(name, 'a list of texts', value);
  }

  choice<const T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.#take(name);
    const found = choices.find((choice) => choice === value);
    if (value === undefined || found !== undefined) return found;
    throw this.#wrong(name, `one of ${choices.join(', ')}`, value);
  }

  /** `{"min": 1, "max": 2}`, of numbers within some bounds. */
  range(name: string, otherwise: Range, bounds: Range): Range {
    return this.object(name, (fields) => fields.ownRange(otherwise, bounds));
  }

  /** `min` and `max` among others. */
  ownRange(otherwise: Range, bounds: Range): Range {
    const min = this.number('min', otherwise.min, bounds);
    const max = this.number('max', Math.max(otherwise.max, min), bounds);
    if (min > max) throw new StartError('SETTINGS', `${this.#path}: min is above max`);
    return { min, max };
  }

  /** The fields of one within; an empty one where there is none. */
  object<T>(name: string, read: (fields: Fields) => T): T {
    const fields = new Fields(`${this.#path}: ${name}`, this.#take(name) ?? {});
    const result = read(fields);
    fields.end();
    return result;
  }

  /** @throws StartError for a field that nobody wanted */
  end(): void {
    const unknown = Object.keys(this.#fields).find((name) => !this.#read.has(name));
    if (unknown === undefined) return;
    const known = [...this.#read].join(', ');
    throw new StartError('SETTINGS', `${this.#path}: "${unknown}" means nothing here; there are: ${known}`);
  }

  #take(name: string): unknown {
    this.#read.add(name);
    return this.#fields[name];
  }

  #wrong(name: string, what: string, value: unknown): StartError {
    return new StartError('SETTINGS', `${this.#path}: "${name}" is ${what}, not ${JSON.stringify(value)}`);
  }
}
