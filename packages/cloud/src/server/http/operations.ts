import type { ProblemCode } from './problems.ts';
import type { Schema } from './schemas.ts';
import * as schemas from './schemas.ts';

/** A successful response. */
export interface Success {
  readonly description: string;
  /** @default 'application/json' */
  readonly contentType?: string;
  /** Schema of the body; undefined for a response without a body. */
  readonly schema?: Schema;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An operation of the API: the schemas that fastify validates requests against, and its OpenAPI description. */
export interface Operation {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path template, such as `/servers/{id}`. */
  readonly path: string;
  readonly summary: string;
  /** Whether the operation needs no API key. @default false */
  readonly open?: true;
  readonly params?: Readonly<Record<string, Schema>>;
  readonly query?: Readonly<Record<string, Schema>>;
  readonly headers?: Readonly<Record<string, Schema>>;
  readonly body?: Schema;
  /** Successful responses by status. */
  readonly successes: Readonly<Record<number, Success>>;
  /** Problems beyond those that `problemsOf` adds to every operation. */
  readonly problems: readonly ProblemCode[];
}

const id = { id: { type: 'string', description: 'Server id', maxLength: 255 } };

const API_OPERATIONS = {
  checkName: {
    id: 'checkName',
    method: 'GET',
    path: '/check/{name}',
    summary: 'Check whether a name is available',
    params: { name: schemas.Name },
    successes: { 200: { description: 'The name is available', schema: schemas.Availability } },
    problems: ['PROHIBITED_NAME', 'NAME_TAKEN', 'INVALID_NAME'],
  },
  createServer: {
    id: 'createServer',
    method: 'POST',
    path: '/servers',
    summary: 'Create a server',
    headers: {
      'idempotency-key': {
        type: 'string',
        description:
          'Makes the request idempotent: any number of requests with the same key and body create one server and return it. The key is kept for some time after the server is deleted, so that a late duplicate does not recreate it',
        pattern: '^[!-~]{1,255}$',
        examples: ['0d6e5e4c-2f0c-4f4e-8a37-6d9f3f4b0c11', 'a'],
      },
    },
    body: schemas.NewServer,
    successes: {
      200: {
        description: 'The server that was created earlier with this Idempotency-Key',
        schema: schemas.Server,
      },
      201: {
        description: 'The new server, which is building',
        schema: schemas.Server,
        headers: { Location: 'Path of the server' },
      },
    },
    problems: [
      'PROHIBITED_NAME',
      'NAME_TAKEN',
      'INVALID_NAME',
      'INVALID_REQUEST',
      'IDEMPOTENCY_KEY_REUSED',
      'SERVER_GONE',
    ],
  },
  listServers: {
    id: 'listServers',
    method: 'GET',
    path: '/servers',
    summary: 'List servers page by page, in order of creation',
    query: {
      limit: {
        type: 'integer',
        minimum: 1,
        maximum: 1000,
        default: 100,
        description: 'Maximum number of servers per page',
      },
      cursor: schemas.Cursor,
      name: schemas.Name,
      label: {
        type: 'array',
        maxItems: 16,
        items: schemas.LabelSelector,
        description: 'Label selectors; a server must match all of them',
      },
    },
    successes: {
      200: {
        description:
          'A page; `next` is absent on the last page. A server that exists during the whole listing is in exactly one page',
        schema: schemas.ServerPage,
      },
    },
    problems: ['INVALID_REQUEST', 'INVALID_NAME'],
  },
  getServer: {
    id: 'getServer',
    method: 'GET',
    path: '/servers/{id}',
    summary: 'Get a server',
    params: id,
    successes: { 200: { description: 'The server', schema: schemas.Server } },
    problems: ['NOT_FOUND', 'INVALID_REQUEST'],
  },
  getServerStatus: {
    id: 'getServerStatus',
    method: 'GET',
    path: '/servers/{id}/status',
    summary: 'Get the state and CPU utilization of a server',
    params: id,
    successes: { 200: { description: 'State and CPU utilization', schema: schemas.ServerStatus } },
    problems: ['NOT_FOUND', 'INVALID_REQUEST'],
  },
  relabelServer: {
    id: 'relabelServer',
    method: 'PATCH',
    path: '/servers/{id}',
    summary: 'Change labels of a server; null removes a label, other labels are unchanged',
    params: id,
    body: schemas.Relabelling,
    successes: { 200: { description: 'The server with its new labels', schema: schemas.Server } },
    problems: ['NOT_FOUND', 'INVALID_REQUEST'],
  },
  deleteServer: {
    id: 'deleteServer',
    method: 'DELETE',
    path: '/servers/{id}',
    summary: 'Delete a server. It is `deleting` until its machine is removed; afterwards it does not exist',
    params: id,
    successes: { 204: { description: 'The server is being deleted' } },
    problems: ['NOT_FOUND', 'INVALID_REQUEST'],
  },
} as const satisfies Record<string, Operation>;

const META_OPERATIONS = {
  getDocument: {
    id: 'getDocument',
    method: 'GET',
    path: '/openapi.json',
    summary: 'Get this document',
    open: true,
    successes: { 200: { description: 'OpenAPI 3.1 document', schema: { type: 'object' } } },
    problems: [],
  },
  getHealth: {
    id: 'getHealth',
    method: 'GET',
    path: '/healthz',
    summary: 'Liveness probe',
    open: true,
    successes: { 200: { description: 'The process is alive', schema: schemas.Health } },
    problems: [],
  },
  getReadiness: {
    id: 'getReadiness',
    method: 'GET',
    path: '/readyz',
    summary: 'Readiness probe: the database can be read',
    open: true,
    successes: { 200: { description: 'The server is ready', schema: schemas.Health } },
    problems: [],
  },
  getMetrics: {
    id: 'getMetrics',
    method: 'GET',
    path: '/metrics',
    summary: 'Get metrics in the Prometheus text format',
    open: true,
    successes: {
      200: { description: 'Metrics', contentType: 'text/plain; version=0.0.4', schema: { type: 'string' } },
    },
    problems: [],
  },
} as const satisfies Record<string, Operation>;

/** Ids of the operations that faults can be injected into. */
export const FAULT_TARGETS: readonly string[] = Object.keys(API_OPERATIONS);

const FAULT_OPERATIONS = {
  setFaults: {
    id: 'setFaults',
    method: 'PUT',
    path: '/faults',
    summary: 'Configure fault injection, for tests',
    body: schemas.faultSettings(FAULT_TARGETS),
    successes: {
      200: { description: 'Fault injection applies to all following requests', schema: schemas.FaultReport },
    },
    problems: ['INVALID_REQUEST'],
  },
  getFaults: {
    id: 'getFaults',
    method: 'GET',
    path: '/faults',
    summary: 'Get the fault injection settings and the number of injected faults',
    successes: { 200: { description: 'Settings and counts', schema: schemas.FaultReport } },
    problems: [],
  },
  clearFaults: {
    id: 'clearFaults',
    method: 'DELETE',
    path: '/faults',
    summary: 'Disable fault injection',
    successes: { 204: { description: 'Fault injection is disabled' } },
    problems: [],
  },
} as const satisfies Record<string, Operation>;

const ALL = { ...API_OPERATIONS, ...META_OPERATIONS, ...FAULT_OPERATIONS };

export type OperationId = keyof typeof ALL;

export function operation(id: OperationId): Operation {
  return ALL[id];
}

/** Returns all operations. Those of `/faults` exist only if fault injection is enabled. */
export function operations(withFaults: boolean): readonly Operation[] {
  return Object.values({ ...API_OPERATIONS, ...META_OPERATIONS, ...(withFaults && FAULT_OPERATIONS) });
}

/** Returns all problems that the operation may respond with. */
export function problemsOf(operation: Operation, withFaults: boolean): ProblemCode[] {
  const { method, open, params, problems } = operation;
  const faultTarget = withFaults && FAULT_TARGETS.includes(operation.id);
  return [
    ...(open ? [] : (['UNAUTHORIZED', 'TOO_MANY_REQUESTS'] as const)),
    ...(method === 'GET' && params === undefined ? [] : (['MALFORMED_REQUEST'] as const)),
    ...(params === undefined ? [] : (['PATH_TOO_LONG'] as const)),
    ...(method === 'GET' ? [] : (['BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'] as const)),
    ...problems,
    ...(faultTarget ? (['INTERNAL'] as const) : []),
    'UNAVAILABLE',
  ];
}
