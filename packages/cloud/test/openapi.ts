import type { Random } from '@vmwright/testbed';
import { isRecord } from '../src/api/record.ts';

/** What the tests need of JSON Schema and of an OpenAPI document: no more words than our document uses. */
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

  /** What is wrong with an answer by the document; nothing if it may be so. */
  async faultsOf({ id, responses }: DocumentedOperation, response: Response): Promise<string[]> {
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
    const complain = (what: string) => found.push(`${where} ${what}: ${JSON.stringify(value)}`);
    const { type, pattern, format, minimum, maximum, minLength, maxLength, required } = schema;
    if (type !== undefined && !hasType(type, value))
      return [`${where} is not of type ${type}: ${JSON.stringify(value)}`];
    if ('const' in schema && value !== schema.const) complain(`is not ${schema.const}`);
    if (schema.enum !== undefined && !list(schema.enum).includes(value)) complain('is none of its values');
    for (const each of list(schema.allOf)) found.push(...this.violations(record(each), value, where));
    if (typeof value === 'string') {
      if (pattern !== undefined && !new RegExp(String(pattern), 'u').test(value))
        complain(`does not match ${pattern}`);
      if (format === 'uuid' && !/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(value))
        complain('is no UUID');
      if (format === 'date-time' && new Date(value).toISOString() !== value) complain('is no time');
      if (value.length < Number(minLength ?? 0)) complain('is too short');
      if (value.length > Number(maxLength ?? Number.POSITIVE_INFINITY)) complain('is too long');
    }
    if (typeof value === 'number') {
      if (value < Number(minimum ?? Number.NEGATIVE_INFINITY)) complain('is too small');
      if (value > Number(maximum ?? Number.POSITIVE_INFINITY)) complain('is too large');
    }
    if (Array.isArray(value) && schema.items !== undefined)
      for (const [at, each] of value.entries())
        found.push(...this.violations(record(schema.items), each, `${where}[${at}]`));
    if (isRecord(value)) {
      for (const name of list(required)) if (!(String(name) in value)) complain(`lacks ${name}`);
      const properties = record(schema.properties ?? {});
      for (const [name, each] of Object.entries(value)) {
        const its = properties[name] ?? schema.additionalProperties;
        if (its === false) complain(`has ${name}`);
        else if (isRecord(its)) found.push(...this.violations(its, each, `${where}.${name}`));
        if (isRecord(schema.propertyNames))
          found.push(...this.violations(schema.propertyNames, name, `${where}: ${name}`));
      }
    }
    return found;
  }

  /** Something that the schema allows. */
  valid(given: Json, random: Random): unknown {
    const schema = this.resolve(given);
    const { type, minimum, maximum, examples } = schema;
    if (schema.enum !== undefined) return random.pick(list(schema.enum));
    if ('const' in schema) return schema.const;
    if (examples !== undefined) return random.pick(list(examples));
    switch (type) {
      case 'integer':
      case 'number': {
        const least = Number(minimum ?? 0);
        return least + random.below(Math.min(Number(maximum ?? 100), least + 100) - least + 1);
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

  /** Something that it most likely does not allow. */
  invalid(given: Json, random: Random): unknown {
    const schema = this.resolve(given);
    if (schema.type === 'object' && random.chance(0.6)) {
      const value = record(this.valid(schema, random));
      const [name, its] = random.pick(Object.entries(record(schema.properties ?? { extra: {} })));
      return random.pick<unknown>([
        { ...value, [name]: this.invalid(record(its), random) },
        { ...value, nothingOfTheKind: 1 },
        Object.fromEntries(Object.entries(value).slice(1)),
        { ...value, labels: Object.fromEntries(Array.from({ length: 70 }, (_, at) => [`l${at}`, ''])) },
        { ...value, labels: { 'with space': 'x', '-a': '', 'a=b': '' } },
      ]);
    }
    return random.pick(STRANGE);
  }
}

const STRANGE: readonly unknown[] = [
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
      throw new Error(`the tests do not know the type ${type}`);
  }
}
