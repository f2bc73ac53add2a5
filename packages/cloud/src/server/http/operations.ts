import type { ProblemCode } from './problems.ts';
import type { Schema } from './schemas.ts';
import * as schemas from './schemas.ts';

export interface Answer {
  readonly description: string;
  /** @default 'application/json' */
  readonly contentType?: string;
  /** None for an answer without a body. */
  readonly schema?: Schema;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One thing that the API can do: what fastify checks requests against, and what the document says. */
export interface Operation {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `/servers/{id}` */
  readonly path: string;
  readonly summary: string;
  /** Asked for without an API key. */
  readonly open?: true;
  readonly params?: Readonly<Record<string, Schema>>;
  readonly query?: Readonly<Record<string, Schema>>;
  readonly headers?: Readonly<Record<string, Schema>>;
  readonly body?: Schema;
  readonly answers: Readonly<Record<number, Answer>>;
  /** Beside those that any operation has. */
  readonly problems: readonly ProblemCode[];
}

const id = { id: { type: 'string', description: 'Of a server', maxLength: 255 } };

const OF_API = {
  checkName: {
    id: 'checkName',
    method: 'GET',
    path: '/check/{name}',
    summary: 'Whether a server could be called that',
    params: { name: schemas.Name },
    answers: { 200: { description: 'It could', schema: schemas.Availability } },
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
          'Makes it one server however often it is sent: the same key and body give the same server, also after a lost answer. Kept for a time after the server is deleted, so that a late duplicate does not bring it back',
        pattern: '^[!-~]{1,255}$',
        examples: ['0d6e5e4c-2f0c-4f4e-8a37-6d9f3f4b0c11', 'a'],
      },
    },
    body: schemas.NewServer,
    answers: {
      200: { description: 'The server that this key has created before', schema: schemas.Server },
      201: {
        description: 'A new server, on its way up',
        schema: schemas.Server,
        headers: { Location: 'The path of the server' },
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
    summary: 'The servers, page by page, in the order of their creation',
    query: {
      limit: { type: 'integer', minimum: 1, maximum: 1000, default: 100, description: 'How many a page' },
      cursor: schemas.Cursor,
      name: schemas.Name,
      label: {
        type: 'array',
        maxItems: 16,
        items: schemas.LabelSelector,
        description: 'May be given more than once: servers that have them all',
      },
    },
    answers: {
      200: {
        description: 'A page; `next` is there unless it is the last. A server that stays is in exactly one',
        schema: schemas.ServerPage,
      },
    },
    problems: ['INVALID_REQUEST', 'INVALID_NAME'],
  },
  getServer: {
    id: 'getServer',
    method: 'GET',
    path: '/servers/{id}',
    summary: 'A server',
    params: id,
    answers: { 200: { description: 'It', schema: schemas.Server } },
    problems: ['NOT_FOUND', 'INVALID_REQUEST'],
  },
  getServerStatus: {
    id: 'getServerStatus',
    method: 'GET',
    path: '/servers/{id}/status',
    summary: 'What changes about a server by itself',
    params: id,
    answers: { 200: { description: 'Its state and use of CPU', schema: schemas.ServerStatus } },
    problems: ['NOT_FOUND', 'INVALID_REQUEST'],
  },
  relabelServer: {
    id: 'relabelServer',
    method: 'PATCH',
    path: '/servers/{id}',
    summary: "Change a server's labels: those given are set, null takes one away, others stay",
    params: id,
    body: schemas.Relabelling,
    answers: { 200: { description: 'The server as it is then', schema: schemas.Server } },
    problems: ['NOT_FOUND', 'INVALID_REQUEST'],
  },
  deleteServer: {
    id: 'deleteServer',
    method: 'DELETE',
    path: '/servers/{id}',
    summary: 'Delete a server. It is `deleting` until its machine is gone, and then not found',
    params: id,
    answers: { 204: { description: 'It is being deleted' } },
    problems: ['NOT_FOUND', 'INVALID_REQUEST'],
  },
} as const satisfies Record<string, Operation>;

const ABOUT_ITSELF = {
  getDocument: {
    id: 'getDocument',
    method: 'GET',
    path: '/openapi.json',
    summary: 'This document',
    open: true,
    answers: { 200: { description: 'OpenAPI 3.1', schema: { type: 'object' } } },
    problems: [],
  },
  getHealth: {
    id: 'getHealth',
    method: 'GET',
    path: '/healthz',
    summary: 'Whether the process is alive',
    open: true,
    answers: { 200: { description: 'It is', schema: schemas.Health } },
    problems: [],
  },
  getReadiness: {
    id: 'getReadiness',
    method: 'GET',
    path: '/readyz',
    summary: 'Whether it can do its work: its data can be read',
    open: true,
    answers: { 200: { description: 'It can', schema: schemas.Health } },
    problems: [],
  },
  getMetrics: {
    id: 'getMetrics',
    method: 'GET',
    path: '/metrics',
    summary: 'Metrics in the text format of Prometheus',
    open: true,
    answers: {
      200: { description: 'Metrics', contentType: 'text/plain; version=0.0.4', schema: { type: 'string' } },
    },
    problems: [],
  },
} as const satisfies Record<string, Operation>;

/** Those that faults can happen to. */
export const FAULTY: readonly string[] = Object.keys(OF_API);

const OF_FAULTS = {
  setFaults: {
    id: 'setFaults',
    method: 'PUT',
    path: '/faults',
    summary: 'Make the API misbehave, for tests',
    body: schemas.faultSettings(FAULTY),
    answers: { 200: { description: 'From the next request on', schema: schemas.FaultReport } },
    problems: ['INVALID_REQUEST'],
  },
  getFaults: {
    id: 'getFaults',
    method: 'GET',
    path: '/faults',
    summary: 'The faults that are set, and how often each has happened since',
    answers: { 200: { description: 'They', schema: schemas.FaultReport } },
    problems: [],
  },
  clearFaults: {
    id: 'clearFaults',
    method: 'DELETE',
    path: '/faults',
    summary: 'Let the API behave again',
    answers: { 204: { description: 'It does' } },
    problems: [],
  },
} as const satisfies Record<string, Operation>;

const ALL = { ...OF_API, ...ABOUT_ITSELF, ...OF_FAULTS };

export type OperationId = keyof typeof ALL;

export function operation(id: OperationId): Operation {
  return ALL[id];
}

/** All there are; those of faults only where they are let in. */
export function operations(withFaults: boolean): readonly Operation[] {
  return Object.values({ ...OF_API, ...ABOUT_ITSELF, ...(withFaults && OF_FAULTS) });
}

/** What any operation of this kind may answer. */
export function problemsOf(operation: Operation, withFaults: boolean): ProblemCode[] {
  const { method, open, params, problems } = operation;
  const faulty = withFaults && FAULTY.includes(operation.id);
  return [
    ...(open ? [] : (['UNAUTHORIZED', 'TOO_MANY_REQUESTS'] as const)),
    ...(method === 'GET' && params === undefined ? [] : (['MALFORMED_REQUEST'] as const)),
    ...(params === undefined ? [] : (['PATH_TOO_LONG'] as const)),
    ...(method === 'GET' ? [] : (['BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'] as const)),
    ...problems,
    ...(faulty ? (['INTERNAL'] as const) : []),
    'UNAVAILABLE',
  ];
}
