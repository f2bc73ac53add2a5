import { type Logger, processMetrics, type Registry, type World } from '@vmwright/core';
import type { Caches } from '../cache/caches.ts';
import type { Client } from '../client/client.ts';
import type { DebugEndpoints } from '../debug/endpoints.ts';
import { StatusServer } from '../server/server.ts';
import { TokenAccess } from '../server/token-access.ts';
import type { Webhooks } from '../webhook/webhooks.ts';
import type { StatusOptions } from './options.ts';

export interface StatusEndpointsParts {
  readonly world: World;
  readonly client: Client;
  readonly log: Logger;
  readonly registry: Registry;
  readonly caches: Pick<Caches, 'unsynced' | 'unlistable' | 'unserved'>;
  readonly webhooks: Webhooks | undefined;
  readonly debug: DebugEndpoints;
}

/**
 * Health, readiness, metrics and debug endpoints of a manager: an HTTP server and, with the option `secure`, an HTTPS
 * server.
 */
export class StatusEndpoints {
  readonly #options: StatusOptions;
  readonly #parts: StatusEndpointsParts;

  constructor(options: StatusOptions, parts: StatusEndpointsParts) {
    if (options.secure !== undefined && parts.webhooks === undefined)
      throw new Error('`status.secure` requires the manager option `webhooks` for its certificate');
    this.#options = options;
    this.#parts = parts;
  }

  /** Starts the HTTP server. */
  async serve(): Promise<AsyncDisposable> {
    const { world, log, registry, debug, caches, webhooks } = this.#parts;
    const { secure: _, ...options } = this.#options;
    processMetrics(registry, { clock: world });
    const server = await StatusServer.start({
      clock: world,
      logger: log,
      metrics: registry,
      debug,
      ...options,
    });
    log.info({ port: server.port }, 'Serving metrics, health and readiness');
    server.ready.add('caches', () => {
      const { unsynced, unlistable, unserved } = caches;
      if (unsynced.length > 0) throw new Error(`caches not synced: ${unsynced.join(', ')}`);
      const notes = [
        ...(unlistable.length === 0 ? [] : [`cannot list ${unlistable.join(', ')}`]),
        ...(unserved.length === 0 ? [] : [`not installed: ${unserved.join(', ')}`]),
      ];
      return notes.length === 0 ? undefined : notes.join('; ');
    });
    if (webhooks !== undefined) server.ready.add('webhook', () => webhooks.check());
    return server;
  }

  /** Starts the HTTPS server, if configured. Call it after the webhooks have started: it uses their certificate. */
  async serveSecure(): Promise<AsyncDisposable | undefined> {
    const { world, client, log, registry, debug, webhooks } = this.#parts;
    const { secure, logLevel } = this.#options;
    const certificate = webhooks?.certificate;
    if (secure === undefined || certificate === undefined) return undefined;
    const access = new TokenAccess({ clock: world, client, logger: log });
    const server = await StatusServer.start({
      clock: world,
      logger: log,
      metrics: registry,
      logLevel,
      debug,
      certificate,
      authorize: (request, path) => access.assert(request, path),
      ...secure,
    });
    webhooks?.onCertificate((next) => server.use(next));
    log.info({ port: server.port }, 'Serving metrics over HTTPS with token authentication');
    return server;
  }
}
