import { nodeWorld, wait } from '@vmwright/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { LabelChanges, NewServer } from '../../api/server.ts';
import type { FaultSettings, Faults } from '../faults/faults.ts';
import type { ApiKeys } from '../keys/api-keys.ts';
import { CloudMetrics } from '../metrics/cloud-metrics.ts';
import type { Store } from '../store/store.ts';
import type { App } from './app.ts';
import { document } from './document.ts';
import { FAULT_TARGETS, type OperationId, operation } from './operations.ts';
import { Problem } from './problems.ts';
import { convertQuery } from './query.ts';
import type { Schema } from './schemas.ts';
import type { ListQuery, Servers } from './servers.ts';

export interface RoutesOptions {
  readonly servers: Servers;
  readonly store: Pick<Store, 'countByState'>;
  readonly keys: Pick<ApiKeys, 'accept'>;
  readonly metrics: CloudMetrics;
  /** Fault injection; undefined if it is disabled, in which case `/faults` does not exist. */
  readonly faults: Faults | undefined;
}

/** Registers a handler for each operation. */
export function addRoutes(app: App, options: RoutesOptions): void {
  const { servers, store, metrics, faults } = options;
  const route = (id: OperationId) => routeOf(id, options);

  app.route<{ Params: { name: string } }>({
    ...route('checkName'),
    handler: async ({ params: { name } }) => {
      servers.check(name);
      return { name, available: true };
    },
  });
  app.route<{ Body: NewServer; Headers: { 'idempotency-key'?: string } }>({
    ...route('createServer'),
    handler: async ({ body, headers }, reply) => {
      const { isNew, server } = servers.create(body, headers['idempotency-key']);
      if (isNew) reply.code(201).header('location', `/servers/${server.id}`);
      return server;
    },
  });
  app.route<{ Querystring: ListQuery }>({
    ...route('listServers'),
    handler: async ({ query }) => servers.page(query),
  });
  app.route<{ Params: { id: string } }>({
    ...route('getServer'),
    handler: async ({ params: { id } }) => servers.get(id),
  });
  app.route<{ Params: { id: string } }>({
    ...route('getServerStatus'),
    handler: async ({ params: { id } }) => servers.status(id),
  });
  app.route<{ Params: { id: string }; Body: { labels: LabelChanges } }>({
    ...route('relabelServer'),
    handler: async ({ params: { id }, body: { labels } }) => servers.relabel(id, labels),
  });
  app.route<{ Params: { id: string } }>({
    ...route('deleteServer'),
    handler: async ({ params: { id } }, reply) => {
      servers.delete(id);
      return reply.code(204).send();
    },
  });

  const openApi = document(faults !== undefined);
  app.route({ ...route('getDocument'), handler: async () => openApi });
  app.route({ ...route('getHealth'), handler: async () => ({ status: 'ok' }) });
  app.route({
    ...route('getReadiness'),
    handler: async () => {
      store.countByState(); // throws if the database cannot be read
      return { status: 'ok' };
    },
  });
  app.route({
    ...route('getMetrics'),
    handler: async (_, reply) =>
      reply.type(CloudMetrics.contentType).send(metrics.text(store.countByState())),
  });

  if (faults === undefined) return;
  app.route<{ Body: FaultSettings }>({
    ...route('setFaults'),
    handler: async ({ body }) => {
      const { min = 0, max = 0 } = body.latencyMs ?? {};
      if (min > max)
        throw new Problem('INVALID_REQUEST', 'The body: latencyMs.min is greater than latencyMs.max.');
      faults.set(body);
      return faults.report;
    },
  });
  app.route({ ...route('getFaults'), handler: async () => faults.report });
  app.route({
    ...route('clearFaults'),
    handler: async (_, reply) => {
      faults.clear();
      return reply.code(204).send();
    },
  });
}

function routeOf(id: OperationId, { keys, faults, metrics }: RoutesOptions) {
  const { method, path, open, params, query, headers, body } = operation(id);
  const authorize = async ({ headers: { authorization } }: FastifyRequest) => {
    if (keys.accept(authorization)) return;
    throw new Problem(
      'UNAUTHORIZED',
      'Send `Authorization: Bearer <API key>` with one of the keys of this cloud.',
      {
        headers: { 'www-authenticate': 'Bearer' },
      },
    );
  };
  const injectFault = async (request: FastifyRequest, reply: FastifyReply) => {
    const fault = FAULT_TARGETS.includes(id) ? faults?.next(id) : undefined; // faults are never injected into /faults itself
    if (fault === undefined) return;
    const { delayMs, errorStatus, lost } = fault;
    if (delayMs > 0) await wait(nodeWorld, delayMs, NEVER);
    if (errorStatus !== undefined) throw injected(errorStatus);
    if (lost === undefined) return;
    const breakConnection = () => {
      metrics.requestHandled(path, method, 0, reply.elapsedTime / 1000);
      request.raw.socket.destroy();
    };
    if (lost === 'after') pendingBreaks.set(request, breakConnection);
    else {
      reply.hijack();
      breakConnection();
    }
  };
  return {
    method,
    url: path.replaceAll(/\{(\w+)\}/g, ':$1'),
    schema: {
      ...(params && { params: objectOf(params, Object.keys(params)) }),
      ...(query && { querystring: { ...objectOf(query), additionalProperties: false } }),
      ...(headers && { headers: objectOf(headers) }),
      ...(body && { body }),
    },
    config: { path },
    onRequest: open ? [] : [authorize, injectFault],
    preValidation: async (request: FastifyRequest) => {
      if (query !== undefined) request.query = convertQuery(query, request.query);
    },
    // If the injected fault is a lost response, closes the connection here: after the request was executed, and before
    // its response is sent.
    onSend: async (request: FastifyRequest) => pendingBreaks.get(request)?.(),
  };
}

/** Functions that close the connection of a request after its execution, so that its response is lost. */
const pendingBreaks = new WeakMap<FastifyRequest, () => void>();

const NEVER = new AbortController().signal;

function objectOf(properties: Readonly<Record<string, Schema>>, required: readonly string[] = []): Schema {
  return { type: 'object', properties, required };
}

function injected(status: 429 | 500 | 503): Problem {
  const detail = 'Injected fault, configured by PUT /faults.';
  if (status === 500) return new Problem('INTERNAL', detail);
  const headers = { 'retry-after': '0' };
  return new Problem(status === 429 ? 'TOO_MANY_REQUESTS' : 'UNAVAILABLE', detail, { headers });
}
