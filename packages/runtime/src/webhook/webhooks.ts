import { jittered, type Logger, type World, wait } from '@vmwright/core';
import type { Client } from '../client/client.ts';
import type { RuntimeMetrics } from '../metrics/runtime-metrics.ts';
import type { Issued } from '../pki/certificate.ts';
import { namesOf, type WebhookAddress } from './address.ts';
import { CertificateFiles } from './certificates/files.ts';
import { CertificateIssuer, type CertificateOptions } from './certificates/issuer.ts';
import { type CertificateSource, pollCertificate } from './certificates/source.ts';
import { trustTargetsOf } from './certificates/trust.ts';
import { ClientCaFile } from './client-ca.ts';
import { endpointsOf, type Webhook } from './endpoints.ts';
import { WebhookServer } from './server.ts';

/** Webhook server of a manager. */
export interface WebhookOptions {
  /** Address at which the API server reaches the webhooks; the same as in the manifests. */
  readonly address: WebhookAddress;
  /** Port to listen on; 0 selects a free one. @default 9443 */
  readonly port?: number;
  /** Address to listen on. @default all addresses */
  readonly host?: string;
  /** Name of the Secret with the certificate that all replicas share. @default `<program>-webhook-certificate` */
  readonly secret?: string;
  /** Namespace of the Secret. @default the namespace of the manager's `access` */
  readonly namespace?: string;
  /** Name of the webhook configurations. @default the program's name */
  readonly configuration?: string;
  readonly certificates?: CertificateOptions;
  /**
   * Directory with `tls.crt`, `tls.key` and, optionally, `ca.crt`, such as a mounted Secret. Changes take effect
   * without a restart. If set, the program issues no certificate. @default the program issues its own certificate
   */
  readonly certificateFolder?: string | undefined;
  /** Requires client certificates for admission requests. @default no client certificate is required */
  readonly clients?: WebhookClientOptions | undefined;
  /** Additional names for the certificate that the program issues. */
  readonly names?: readonly string[];
}

/** Client certificates that the webhook server accepts. */
export interface WebhookClientOptions {
  /** PEM file with the CAs of the client certificates. Changes take effect without a restart. */
  readonly caFile: string;
  /** Accepted common names. @default all */
  readonly names?: readonly string[] | undefined;
}

export interface WebhookDependencies {
  readonly world: World;
  readonly client: Client;
  readonly logger: Logger;
  readonly metrics: RuntimeMetrics;
  /** Name of the program. */
  readonly name: string;
  readonly namespace: string;
}

/** Pause between attempts to obtain the first certificate. */
const RETRY_MS = 1_000;
/** Interval between two reads of the client CA file. */
const CLIENT_CA_POLL_MS = 10_000;

/**
 * Webhooks of a program, with their certificate and server. They run on all replicas, independent of leader election.
 *
 * Flow: `start` resolves when a certificate was obtained, the server listens, and one attempt was made to write the CA
 * to every `caBundle`. Failed writes are retried.
 */
export class Webhooks {
  readonly #options: WebhookOptions;
  readonly #dependencies: WebhookDependencies;
  readonly #webhooks: Webhook[] = [];
  readonly #stop = new AbortController();
  readonly #onCertificate: ((certificate: Issued) => void)[] = [];
  #source: CertificateSource | undefined;
  #server: WebhookServer | undefined;
  #polling: Promise<unknown> | undefined;

  constructor(options: WebhookOptions, dependencies: WebhookDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
  }

  /** Adds a webhook. Must be called before `start`. @throws DeclarationError for a duplicate */
  add(webhook: Webhook): void {
    endpointsOf([...this.#webhooks, webhook], this.#dependencies.logger);
    this.#webhooks.push(webhook);
  }

  /** Readiness check. @throws Error until the webhooks are served and trusted */
  check(): void {
    if (this.#server === undefined) throw new Error('the webhook server is not started yet');
    if (!this.#source?.trusted) throw new Error('the CA is not written to all webhook configurations yet');
  }

  /** Certificate that is served; undefined until `start` has obtained one. */
  get certificate(): Issued | undefined {
    return this.#source?.serving;
  }

  /** Calls the listener with each new certificate to serve. */
  onCertificate(listener: (certificate: Issued) => void): void {
    this.#onCertificate.push(listener);
  }

  /** Starts the server. @throws ServerError if the port is in use, AccessError if the client CA file is not usable */
  async start(signal: AbortSignal): Promise<void> {
    const { world, logger, metrics } = this.#dependencies;
    const clientCa = this.#options.clients && (await ClientCaFile.read(this.#options.clients.caFile));
    const source = this.#certificateSource();
    this.#source = source;
    await source.obtain(signal);
    while (source.serving === undefined && !signal.aborted) {
      await wait(world, jittered(world, RETRY_MS), signal).catch(() => undefined);
      await source.obtain(signal);
    }
    if (source.serving === undefined) return;
    const server = await WebhookServer.start({
      clock: world,
      logger,
      endpoints: endpointsOf(this.#webhooks, logger),
      metrics: (path) => metrics.webhook(path),
      certificate: source.serving,
      clients: clientCa && { ca: clientCa.text, names: this.#options.clients?.names },
      port: this.#options.port ?? 9443,
      host: this.#options.host,
    });
    this.#server = server;
    logger.info({ port: server.port }, 'Serving webhooks');
    await source.trust(signal);
    const stop = this.#stop.signal;
    this.#polling = Promise.all([
      pollCertificate(source, world, stop, this.#options.certificates?.pollMs),
      clientCa?.watch(world, CLIENT_CA_POLL_MS, (ca) => server.useClientCa(ca), logger, stop),
    ]);
  }

  #certificateSource(): CertificateSource {
    const { world, client, logger, metrics, name } = this.#dependencies;
    const { address, certificates, certificateFolder, configuration = name, names = [] } = this.#options;
    const common = {
      client,
      logger,
      metrics: metrics.certificates(),
      trustTargets: trustTargetsOf(configuration, this.#webhooks),
      serve: (certificate: Issued) => {
        this.#server?.use(certificate);
        for (const listener of this.#onCertificate) listener(certificate);
      },
    };
    if (certificateFolder !== undefined)
      return new CertificateFiles({ ...common, folder: certificateFolder, names: namesOf(address) });
    return new CertificateIssuer({
      ...certificates,
      ...common,
      world,
      name,
      secret: {
        namespace: this.#options.namespace ?? this.#dependencies.namespace,
        name: this.#options.secret ?? `${name}-webhook-certificate`,
      },
      names: [...namesOf(address), ...names],
    });
  }

  /** Stops the server after pending reviews are answered. */
  async close(): Promise<void> {
    await this.#server?.close();
    this.#stop.abort();
    await this.#polling;
  }
}
