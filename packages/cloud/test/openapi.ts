import type { Random } from '@vmwright/testbed';
import { isRecord } from '../src/api/record.ts';

export type Json = Readonly<Record<string, unknown>>;

export interface DocumentedOperation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly needsKey: boolean;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: Json }[];
  readonly body: Json | undefined;
  readonly responses: Json;
}

/** OpenAPI document with a validator and a generator for the JSON Schema keywords that it uses. */
export class OpenApi {
  readonly document: Json;

  constructor(document: unknown) {
    this.document = record(document);
  }

  operations(): DocumentedOperation[] {
    return Object.entries(record(this.document.paths)).flatMap(([path, methods]) =>
      Object.entries(record(methods)).map(([method, described]) => {
        const { operationId, security, parameters, requestBody, responses } = record(described);
        const body = requestBody === undefined ? undefined : this.#content(requestBody)['application/json'];
        return {
          id: String(operationId),
          method: method.toUpperCase(),
          path,
          needsKey: !(Array.isArray(security) && security.length === 0),
          parameters: list(parameters).map((each) => {
            const { name, in: place, schema } = record(each);
            return { name: String(name), in: String(place), schema: this.resolve(record(schema)) };
          }),
          body: body === undefined ? undefined : this.resolve(record(record(body).schema)),
          responses: record(responses),
        };
      }),
    );
  }

  resolve(schema: Json): Json {
    const { $ref } = schema;
    if (typeof $ref !== 'string') return schema;
    let value: unknown = this.document;
    for (const part of $ref.replace('#/', '').split('/')) value = record(value)[part];
    return this.resolve(record(value));
  }

  /** Returns a message for each violation of the document by the response; empty if the response conforms. */
  async check({ id, responses }: DocumentedOperation, response: Response): Promise<string[]> {
    const where = `${id} → ${response.status}`;
    const transport = response.status === 408 || response.status === 431;
    const described = responses[response.status] ?? (transport ? responses.default : undefined);
    if (described === undefined) return [`${where} is not in the document: ${await response.text()}`];
    const content = this.#content(described);
    const type = response.headers.get('content-type');
    const [documented] = Object.keys(content);
    const missing = Object.entries(record(record(described).headers ?? {}))
      .filter(([name]) => !response.headers.has(name))
      .map(([name]) => `${where} lacks the header ${name}`);
    const text = await response.text();
    if (documented === undefined)
      return [...missing, ...(text === '' ? [] : [`${where} has a body: ${text}`])];
    if (type?.startsWith(documented) !== true) return [...missing, `${where} is ${type}, not ${documented}`];
    const schema = record(record(content[documented]).schema);
    const body: unknown = documented.includes('json') ? JSON.parse(text) : text;
    return [...missing, ...this.violations(schema, body, where)];
  }

  #content(described: unknown): Json {
    const { content } = record(described);
    return content === undefined ? {} : record(content);
  }

  violations(given: Json, value: unknown, where: string): string[] {
    const schema = this.resolve(given);
    const found: string[] = [];
    const report = (what: string) => found.push(`${where} ${what}: ${JSON.stringify(value)}`);
    const { type, pattern, format, minimum, maximum, minLength, maxLength, required } = schema;
    if (type !== undefined && !hasType(type, value))
      return [`${where} is not of type ${type}: ${JSON.stringify(value)}`];
    if ('const' in schema && value !== schema.const) report(`is not ${schema.const}`);
    if (schema.enum !== undefined && !list(schema.enum).includes(value)) report('is not one of its values');
    for (const each of list(schema.allOf)) found.push(...this.violations(record(each), value, where));
    if (typeof value === 'string') {
      if (pattern !== undefined && !new RegExp(String(pattern), 'u').test(value))
        report(`does not match ${pattern}`);
      if (format === 'uuid' && !/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(value))
        report('is not a UUID');
      if (format === 'date-time' && new Date(value).toISOString() !== value) report('is not a date-time');
      if (value.length < Number(minLength ?? 0)) report('is too short');
      if (value.length > Number(maxLength ?? Number.POSITIVE_INFINITY)) report('is too long');
    }
    if (typeof value === 'number') {
      if (value < Number(minimum ?? Number.NEGATIVE_INFINITY)) report('is too small');
      if (value > Number(maximum ?? Number.POSITIVE_INFINITY)) report('is too large');
    }
    if (Array.isArray(value) && schema.items !== undefined)
      for (const [at, each] of value.entries())
        found.push(...this.violations(record(schema.items), each, `${where}[${at}]`));
    if (isRecord(value)) {
      for (const name of list(required)) if (!(String(name) in value)) report(`lacks ${name}`);
      const properties = record(schema.properties ?? {});
      for (const [name, each] of Object.entries(value)) {
        const property = properties[name] ?? schema.additionalProperties;
        if (property === false) report(`has ${name}`);
        else if (isRecord(property)) found.push(...this.violations(property, each, `${where}.${name}`));
        if (isRecord(schema.propertyNames))
          found.push(...this.violations(schema.propertyNames, name, `${where}: ${name}`));
      }
    }
    return found;
  }

  /** Generates a value that the schema allows. */
  valid(given: Json, random: Random): unknown {
    const schema = this.resolve(given);
    const { type, minimum, maximum, examples } = schema;
    if (schema.enum !== undefined) return random.pick(list(schema.enum));
    if ('const' in schema) return schema.const;
    if (examples !== undefined) return random.pick(list(examples));
    switch (type) {
      case 'integer':
      case 'number': {
        const min = Number(minimum ?? 0);
        return min + random.below(Math.min(Number(maximum ?? 100), min + 100) - min + 1);
      }
      case 'array':
        return Array.from({ length: random.below(3) }, () => this.valid(record(schema.items), random));
      case 'object': {
        const required = list(schema.required);
        const properties = Object.entries(record(schema.properties ?? {}))
          .filter(([name]) => required.includes(name) || random.chance(0.5))
          .map(([name, each]): [string, unknown] => [name, this.valid(record(each), random)]);
        const more = isRecord(schema.additionalProperties) ? schema.additionalProperties : undefined;
        const others = Array.from(
          { length: more === undefined ? 0 : random.below(3) },
          (): [string, unknown] => [
            String(this.valid(record(schema.propertyNames), random)),
            this.valid(more ?? {}, random),
          ],
        );
        return Object.fromEntries([...properties, ...others]);
      }
      default:
        return 'some-text';
    }
  }

  /** Generates a value that the schema most likely does not allow. */
  invalid(given: Json, random: Random): unknown {
    const schema = this.resolve(given);
    if (schema.type === 'object' && random.chance(0.6)) {
      const value = record(this.valid(schema, random));
      const [name, property] = random.pick(Object.entries(record(schema.properties ?? { extra: {} })));
      return random.pick<unknown>([
        { ...value, [name]: this.invalid(record(property), random) },
        { ...value, unknownProperty: 1 },
        Object.fromEntries(Object.entries(value).slice(1)),
        { ...value, labels: Object.fromEntries(Array.from({ length: 70 }, (_, at) => [`l${at}`, ''])) },
        { ...value, labels: { 'with space': 'x', '-a': '', 'a=b': '' } },
      ]);
    }
    return random.pick(INVALID_VALUES);
  }
}

const INVALID_VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  0.5,
  1e300,
  '',
  ' ',
  'with space',
  'ünïcödé ☃ 𝕏',
  'a/b',
  '../..',
  '%00',
  'line\nbreak',
  '\u0000',
  '\ud800',
  "'; DROP TABLE servers; --",
  '$(reboot)',
  'x'.repeat(64),
  'x'.repeat(300),
  [],
  [null],
  {},
  { name: {} },
  { a: { b: { c: [1] } } },
];

export function record(value: unknown): Json {
  if (!isRecord(value)) throw new Error(`not an object: ${JSON.stringify(value)}`);
  return value;
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function hasType(type: unknown, value: unknown): boolean {
  switch (type) {
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type;
    case 'integer':
      return Number.isInteger(value);
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isRecord(value);
    default:
      throw new Error(`unknown type ${type}`);
  }
}
