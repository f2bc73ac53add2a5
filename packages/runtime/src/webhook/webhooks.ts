import { jittered, type Logger, type World, wait } from '@vmwright/core';
import type { Client } from '../client/client.ts';
import type { RuntimeMetrics } from '../metrics/runtime-metrics.ts';
import type { Issued } from '../pki/certificate.ts';
import { namesOf, type WebhookAddress } from './address.ts';
import { CertificateFiles } from './certificates/files.ts';
import { CertificateKeeper, type CertificateOptions } from './certificates/keeper.ts';
import { type CertificateSource, pollCertificate } from './certificates/source.ts';
import { placesOf } from './certificates/trust.ts';
import { ClientCaFile } from './client-ca.ts';
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
  /**
   * Folder with `tls.crt`, `tls.key` and, optionally, `ca.crt`, as a mounted Secret has them; read again when they change.
   * The program then issues no certificate. @default the program issues its own
   */
  readonly certificateFolder?: string | undefined;
  /** Requires client certificates for admission requests. @default no certificate is asked for */
  readonly clients?: WebhookClientOptions | undefined;
  /** More names for the certificate that the program issues. */
  readonly names?: readonly string[];
}

export interface WebhookClientOptions {
  /** File with the authorities that issue the certificates (PEM); read again when it changes. */
  readonly caFile: string;
  /** Common names that are accepted. @default all */
  readonly names?: readonly string[] | undefined;
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
/** Between two reads of the authorities of clients. */
const CLIENT_CA_POLL_MS = 10_000;

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
  readonly #onCertificate: ((certificate: Issued) => void)[] = [];
  #source: CertificateSource | undefined;
  #server: WebhookServer | undefined;
  #keeping: Promise<unknown> | undefined;

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
    if (!this.#source?.trusted) throw new Error('the API server was not told yet to trust the webhooks');
  }

  /** The certificate that is served; undefined before `start`. */
  get certificate(): Issued | undefined {
    return this.#source?.serving;
  }

  /** Calls back with each certificate that replaces the one that is served. */
  onCertificate(use: (certificate: Issued) => void): void {
    this.#onCertificate.push(use);
  }

  /** Gives up when the signal aborts. @throws ServerError when the port is taken, AccessError for an unusable client CA */
  async start(signal: AbortSignal): Promise<void> {
    const { world, logger, metrics } = this.#parts;
    const clientCa = this.#options.clients && (await ClientCaFile.read(this.#options.clients.caFile));
    const source = this.#certificates();
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
    logger.info({ port: server.port }, 'serving webhooks');
    await source.trust(signal);
    const stop = this.#stop.signal;
    this.#keeping = Promise.all([
      pollCertificate(source, world, stop, this.#options.certificates?.pollMs),
      clientCa?.follow(world, CLIENT_CA_POLL_MS, (ca) => server.useClientCa(ca), logger, stop),
    ]);
  }

  #certificates(): CertificateSource {
    const { world, client, logger, metrics, name } = this.#parts;
    const { address, certificates, certificateFolder, configuration = name, names = [] } = this.#options;
    const common = {
      ...{ client, logger, metrics: metrics.certificates() },
      trustedIn: placesOf(configuration, this.#webhooks),
      serve: (certificate: Issued) => {
        this.#server?.use(certificate);
        for (const use of this.#onCertificate) use(certificate);
      },
    };
    if (certificateFolder !== undefined)
      return new CertificateFiles({ ...common, folder: certificateFolder, names: namesOf(address) });
    return new CertificateKeeper({
      ...certificates,
      ...common,
      ...{ world, name },
      secret: {
        namespace: this.#options.namespace ?? this.#parts.namespace,
        name: this.#options.secret ?? `${name}-webhook-certificate`,
      },
      names: [...namesOf(address), ...names],
    });
  }

  /** Answers what is under way, and ends. */
  async close(): Promise<void> {
    await this.#server?.close();
    this.#stop.abort();
    await this.#keeping;
  }
}
