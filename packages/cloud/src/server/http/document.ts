import { type Operation, operations, problemsOf, type Success } from './operations.ts';
import { PROBLEMS, type ProblemCode } from './problems.ts';
import type { Schema } from './schemas.ts';
import * as schemas from './schemas.ts';

/** Names of the schemas that become components of the document. */
const NAMED = new Map<unknown, string>(
  Object.entries(schemas).flatMap(([name, schema]) => (typeof schema === 'function' ? [] : [[schema, name]])),
);

/** Builds the OpenAPI 3.1 document from the same operations that requests are validated against. */
export function document(withFaults: boolean): Schema {
  const byPath = Map.groupBy(operations(withFaults), ({ path }) => path);
  const paths = [...byPath].map(([path, methods]) => [
    path,
    Object.fromEntries(methods.map((each) => [each.method.toLowerCase(), toOpenApi(each, withFaults)])),
  ]);
  return {
    openapi: '3.1.0',
    info: {
      title: 'vmwright private cloud',
      version: '1',
      description:
        'Creates and manages virtual machines. Bodies are JSON; errors are problem details (RFC 9457).',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', description: 'API key of the cloud' } },
      schemas: definitionsFor(paths),
    },
  };
}

/** Returns the named schemas that `value` references, directly or through other named schemas. */
function definitionsFor(value: unknown): Schema {
  const definitions: Record<string, unknown> = {};
  for (const [schema, name] of NAMED) {
    if (!JSON.stringify(value).includes(`"#/components/schemas/${name}"`)) continue;
    const definition = withReferences(schema, true);
    Object.assign(definitions, { [name]: definition }, definitionsFor(definition));
  }
  return definitions;
}

function toOpenApi(operation: Operation, withFaults: boolean): Schema {
  const { id, summary, open, params = {}, query = {}, headers = {}, body, successes } = operation;
  return {
    operationId: id,
    summary,
    ...(open && { security: [] }),
    parameters: [
      ...parametersIn('path', params),
      ...parametersIn('query', query),
      ...parametersIn('header', headers),
    ],
    ...(body && {
      requestBody: { required: true, content: { 'application/json': { schema: withReferences(body) } } },
    }),
    responses: {
      ...Object.fromEntries(Object.entries(successes).map(([status, each]) => [status, success(each)])),
      ...Object.fromEntries(errors(problemsOf(operation, withFaults))),
      default: {
        description:
          'Rejected before routing: the request was not received in time (408), or its headers are too large (431)',
        content: { 'application/problem+json': { schema: withReferences(schemas.Problem) } },
      },
    },
  };
}

function parametersIn(
  place: 'path' | 'query' | 'header',
  parameters: Readonly<Record<string, Schema>>,
): Schema[] {
  return Object.entries(parameters).map(([name, schema]) => ({
    name: place === 'header' ? headerCase(name) : name,
    in: place,
    required: place === 'path',
    schema: withReferences(schema),
    ...(schema.type === 'array' && { style: 'form', explode: true }),
  }));
}

function success({ description, contentType = 'application/json', schema, headers = {} }: Success): Schema {
  return {
    description,
    ...(Object.keys(headers).length > 0 && { headers: headersOf(headers) }),
    ...(schema && { content: { [contentType]: { schema: withReferences(schema) } } }),
  };
}

const HEADERS: Partial<Record<number, Readonly<Record<string, string>>>> = {
  401: { 'WWW-Authenticate': 'Authentication scheme: Bearer' },
  429: { 'Retry-After': 'Delay in seconds before the next request' },
  503: { 'Retry-After': 'Delay in seconds before the next request' },
};

function errors(codes: readonly ProblemCode[]): [string, Schema][] {
  const byStatus = Map.groupBy(new Set(codes), (code) => PROBLEMS[code].status);
  return [...byStatus].map(([status, codesOfStatus]) => [
    String(status),
    {
      description: codesOfStatus.map((code) => PROBLEMS[code].title).join(', or: '),
      ...(HEADERS[status] && { headers: headersOf(HEADERS[status]) }),
      content: {
        'application/problem+json': {
          schema: {
            allOf: [
              withReferences(schemas.Problem),
              { properties: { status: { const: status }, code: { enum: codesOfStatus } } },
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

/** Replaces named schemas by references. */
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
