import { nodeWorld, wait } from '@vmwright/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { LabelChanges, NewServer } from '../../api/server.ts';
import type { FaultSettings, Faults } from '../faults/faults.ts';
import type { ApiKeys } from '../keys/api-keys.ts';
import { CloudMetrics } from '../metrics/cloud-metrics.ts';
import type { Store } from '../store/store.ts';
import type { App } from './app.ts';
import { document } from './document.ts';
import { FAULTY, type OperationId, operation } from './operations.ts';
import { Problem } from './problems.ts';
import { readQuery } from './query.ts';
import type { Schema } from './schemas.ts';
import type { Query, Servers } from './servers.ts';

export interface RoutesOptions {
  readonly servers: Servers;
  readonly store: Pick<Store, 'countByState'>;
  readonly keys: Pick<ApiKeys, 'accept'>;
  readonly metrics: CloudMetrics;
  /** None: there is no way to make it misbehave. */
  readonly faults: Faults | undefined;
}

/** Gives each operation of the table what carries it out. */
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
  app.route<{ Querystring: Query }>({
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

  const described = document(faults !== undefined);
  app.route({ ...route('getDocument'), handler: async () => described });
  app.route({ ...route('getHealth'), handler: async () => ({ status: 'ok' }) });
  app.route({
    ...route('getReadiness'),
    handler: async () => {
      store.countByState(); // throws when the data cannot be read
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
      if (min > max) throw new Problem('INVALID_REQUEST', 'The body: latencyMs.min is above latencyMs.max.');
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
  const suffer = async (request: FastifyRequest, reply: FastifyReply) => {
    const fate = FAULTY.includes(id) ? faults?.fateOf(id) : undefined; // what sets the faults right stays right
    if (fate === undefined) return;
    const { delayMs, refusedWith, lost } = fate;
    if (delayMs > 0) await wait(nodeWorld, delayMs, NEVER);
    if (refusedWith !== undefined) throw injected(refusedWith);
    if (lost === undefined) return;
    const lose = () => {
      metrics.answered(path, method, 0, reply.elapsedTime / 1000);
      request.raw.socket.destroy();
    };
    if (lost === 'after') losses.set(request, lose);
    else {
      reply.hijack();
      lose();
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
    onRequest: open ? [] : [authorize, suffer],
    preValidation: async (request: FastifyRequest) => {
      if (query !== undefined) request.query = readQuery(query, request.query);
    },
    onSend: async (request: FastifyRequest) => losses.get(request)?.(), // the effect is there; the answer is not to be
  };
}

/** What breaks the connection of a request whose answer is to be lost. */
const losses = new WeakMap<FastifyRequest, () => void>();

const NEVER = new AbortController().signal;

function objectOf(properties: Readonly<Record<string, Schema>>, required: readonly string[] = []): Schema {
  return { type: 'object', properties, required };
}

function injected(status: 429 | 500 | 503): Problem {
  const detail = 'This is a fault that a test has asked for.';
  if (status === 500) return new Problem('INTERNAL', detail);
  const headers = { 'retry-after': '0' };
  return new Problem(status === 429 ? 'TOO_MANY_REQUESTS' : 'UNAVAILABLE', detail, { headers });
}
