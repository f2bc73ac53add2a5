import { type Answer, type Operation, operations, problemsOf } from './operations.ts';
import { PROBLEMS, type ProblemCode } from './problems.ts';
import type { Schema } from './schemas.ts';
import * as schemas from './schemas.ts';

const NAMED = new Map<unknown, string>(
  Object.entries(schemas).flatMap(([name, schema]) => (typeof schema === 'function' ? [] : [[schema, name]])),
);

/** The API in OpenAPI 3.1, made of the same table that requests are checked against. */
export function document(withFaults: boolean): Schema {
  const byPath = Map.groupBy(operations(withFaults), ({ path }) => path);
  const paths = [...byPath].map(([path, its]) => [
    path,
    Object.fromEntries(its.map((each) => [each.method.toLowerCase(), described(each, withFaults)])),
  ]);
  return {
    openapi: '3.1.0',
    info: {
      title: 'vmwright private cloud',
      version: '1',
      description:
        'Virtual machines by name. All answers are JSON, and all that are no success are problem details.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', description: 'An API key of the cloud' } },
      schemas: definitionsFor(paths),
    },
  };
}

/** What is referred to by name, directly or by another of them. */
function definitionsFor(using: unknown): Schema {
  const definitions: Record<string, unknown> = {};
  for (const [schema, name] of NAMED) {
    if (!JSON.stringify(using).includes(`"#/components/schemas/${name}"`)) continue;
    const definition = withReferences(schema, true);
    Object.assign(definitions, { [name]: definition }, definitionsFor(definition));
  }
  return definitions;
}

function described(operation: Operation, withFaults: boolean): Schema {
  const { id, summary, open, params = {}, query = {}, headers = {}, body, answers } = operation;
  return {
    operationId: id,
    summary,
    ...(open && { security: [] }),
    parameters: [...inside('path', params), ...inside('query', query), ...inside('header', headers)],
    ...(body && {
      requestBody: { required: true, content: { 'application/json': { schema: withReferences(body) } } },
    }),
    responses: {
      ...Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, success(answer)])),
      ...Object.fromEntries(refusals(problemsOf(operation, withFaults))),
      default: {
        description:
          'What is refused before it is looked at: it came too slowly (408), or its headers are too large (431)',
        content: { 'application/problem+json': { schema: withReferences(schemas.Problem) } },
      },
    },
  };
}

function inside(place: 'path' | 'query' | 'header', parameters: Readonly<Record<string, Schema>>): Schema[] {
  return Object.entries(parameters).map(([name, schema]) => ({
    name: place === 'header' ? headerCase(name) : name,
    in: place,
    required: place === 'path',
    schema: withReferences(schema),
    ...(schema.type === 'array' && { style: 'form', explode: true }),
  }));
}

function success({ description, contentType = 'application/json', schema, headers = {} }: Answer): Schema {
  return {
    description,
    ...(Object.keys(headers).length > 0 && { headers: headersOf(headers) }),
    ...(schema && { content: { [contentType]: { schema: withReferences(schema) } } }),
  };
}

const HEADERS: Partial<Record<number, Readonly<Record<string, string>>>> = {
  401: { 'WWW-Authenticate': 'How to say who you are: Bearer' },
  429: { 'Retry-After': 'Seconds to wait' },
  503: { 'Retry-After': 'Seconds to wait' },
};

function refusals(codes: readonly ProblemCode[]): [string, Schema][] {
  const byStatus = Map.groupBy(new Set(codes), (code) => PROBLEMS[code].status);
  return [...byStatus].map(([status, its]) => [
    String(status),
    {
      description: its.map((code) => PROBLEMS[code].title).join('; or: '),
      ...(HEADERS[status] && { headers: headersOf(HEADERS[status]) }),
      content: {
        'application/problem+json': {
          schema: {
            allOf: [
              withReferences(schemas.Problem),
              { properties: { status: { const: status }, code: { enum: its } } },
            ],
          },
        },
      },
    },
  ]);
}

function headersOf(headers: Readonly<Record<string, string>>): Schema {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [
      name,
      { description, required: true, schema: { type: 'string' } },
    ]),
  );
}

/** What has a name is referred to by it. */
function withReferences(value: unknown, isDefinition = false): unknown {
  const name = NAMED.get(value);
  if (name !== undefined && !isDefinition) return { $ref: `#/components/schemas/${name}` };
  if (Array.isArray(value)) return value.map((each) => withReferences(each));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withReferences(each)]));
}

function headerCase(name: string): string {
  return name.replaceAll(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
}
