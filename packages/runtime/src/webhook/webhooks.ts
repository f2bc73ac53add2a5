import type { Client } from '../client/client.ts';
import type { Logger } from '../log/logger.ts';
import type { RuntimeMetrics } from '../metrics/runtime-metrics.ts';
import { wait } from '../world/wait.ts';
import type { World } from '../world/world.ts';
import { namesOf, type WebhookAddress } from './address.ts';
import { CertificateKeeper, type CertificateOptions } from './certificates/keeper.ts';
import { placesOf } from './certificates/trust.ts';
import { endpointsOf, type Webhook } from './endpoints.ts';
import { WebhookServer } from './server.ts';

export interface WebhookOptions {
  /** Where the API server finds them; the same as in the manifests. */
  readonly address: WebhookAddress;
  /** On which they are served; 0 for any that is free. @default 9443 */
  readonly port?: number;
  /** @default all addresses of this machine */
  readonly host?: string;
  /** Of the Secret that replicas share. @default the program's name and `-webhook-certificate` */
  readonly secret?: string;
  /** Of the Secret. @default the one that the access names */
  readonly namespace?: string;
  /** Of the webhook configurations. @default the program's name */
  readonly configuration?: string;
  readonly certificates?: CertificateOptions;
}

export interface WebhooksParts {
  readonly world: World;
  readonly client: Client;
  readonly logger: Logger;
  readonly metrics: RuntimeMetrics;
  /** Of the program. */
  readonly name: string;
  readonly namespace: string;
}

/** Before the next attempt at a first certificate. */
const RETRY_MS = 1_000;

/**
 * The webhooks of a program: its certificate, its server, and that it is trusted.
 *
 * Flow: `start` resolves when a certificate is there, the server answers, and the API server was told whom to trust (or
 * could not be: that is tried again). It needs no lead: all replicas answer.
 */
export class Webhooks {
  readonly #options: WebhookOptions;
  readonly #parts: WebhooksParts;
  readonly #webhooks: Webhook[] = [];
  readonly #stop = new AbortController();
  #keeper: CertificateKeeper | undefined;
  #server: WebhookServer | undefined;
  #keeping: Promise<void> | undefined;

  constructor(options: WebhookOptions, parts: WebhooksParts) {
    this.#options = options;
    this.#parts = parts;
  }

  /** Before `start`. @throws DeclarationError for what is there already */
  add(webhook: Webhook): void {
    endpointsOf([...this.#webhooks, webhook], this.#parts.logger);
    this.#webhooks.push(webhook);
  }

  /** @throws Error that says what is missing until they can be asked */
  check(): void {
    if (this.#server === undefined) throw new Error('the webhooks are not served yet');
    if (!this.#keeper?.trusted) throw new Error('the API server was not told yet to trust the webhooks');
  }

  /** Gives up when the signal aborts. @throws ServerError when the port is taken */
  async start(signal: AbortSignal): Promise<void> {
    const { world, client, logger, metrics, name } = this.#parts;
    const { address, certificates, configuration = name } = this.#options;
    const keeper = new CertificateKeeper({
      ...certificates,
      world,
      client,
      logger,
      metrics: metrics.certificates(),
      name,
      secret: {
        namespace: this.#options.namespace ?? this.#parts.namespace,
        name: this.#options.secret ?? `${name}-webhook-certificate`,
      },
      names: namesOf(address),
      trustedIn: placesOf(configuration, this.#webhooks),
      serve: (certificate) => this.#server?.use(certificate),
    });
    this.#keeper = keeper;
    await keeper.obtain(signal);
    while (keeper.serving === undefined && !signal.aborted) {
      await wait(world, RETRY_MS * (0.5 + world.random()), signal).catch(() => undefined);
      await keeper.obtain(signal);
    }
    if (keeper.serving === undefined) return;
    this.#server = await WebhookServer.start({
      clock: world,
      logger,
      endpoints: endpointsOf(this.#webhooks, logger),
      metrics: (path) => metrics.webhook(path),
      certificate: keeper.serving,
      port: this.#options.port ?? 9443,
      host: this.#options.host,
    });
    logger.info({ port: this.#server.port }, 'serving webhooks');
    await keeper.trust(signal);
    this.#keeping = keeper.run(this.#stop.signal);
  }

  /** Answers what is under way, and ends. */
  async close(): Promise<void> {
    await this.#server?.close();
    this.#stop.abort();
    await this.#keeping;
  }
}
