import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { type Logger, messageOf } from '@vmwright/core';
import type { CertificateMetrics } from '../../metrics/runtime-metrics.ts';
import type { Issued } from '../../pki/certificate.ts';
import { certificatesIn, isSignedBy } from '../../pki/pem.ts';
import { bundleAdding } from './bundle.ts';
import type { CertificateSource } from './source.ts';
import { type TrustClient, type TrustTarget, trustInAll } from './trust.ts';

export interface CertificateFilesOptions {
  readonly client: TrustClient;
  readonly logger: Logger;
  readonly metrics?: CertificateMetrics;
  /** Directory with `tls.crt`, `tls.key` and, optionally, `ca.crt`: a mounted Secret of type kubernetes.io/tls. */
  readonly folder: string;
  /** Names by which the API server reaches the webhooks. */
  readonly names: readonly string[];
  readonly trustTargets: readonly TrustTarget[];
  /** Called with each new certificate. */
  readonly serve: (certificate: Issued) => void;
}

/**
 * Serves a certificate from files that an external issuer such as cert-manager maintains.
 *
 * Flow: each poll reads the files, serves a changed certificate, and writes `ca.crt` to the `caBundle` of all webhooks.
 *
 * Guarantees: a certificate is served only with a matching key. If the files cannot be read or do not match, for
 * example while they are being replaced, the last valid certificate stays in use. A `caBundle` is not written if there
 * is no `ca.crt`, or if another controller such as cert-manager injects the `caBundle`.
 */
export class CertificateFiles implements CertificateSource {
  readonly #options: CertificateFilesOptions;
  #serving: Issued | undefined;
  #authorities: readonly X509Certificate[] = [];
  #trusted = false;

  constructor(options: CertificateFilesOptions) {
    this.#options = options;
  }

  get serving(): Issued | undefined {
    return this.#serving;
  }

  get trusted(): boolean {
    return this.#trusted;
  }

  async obtain(signal: AbortSignal): Promise<void> {
    const { folder, logger, metrics } = this.#options;
    try {
      await this.#read();
      metrics?.read(true);
    } catch (error) {
      if (signal.aborted) return;
      metrics?.read(false);
      logger.warn({ folder, error: messageOf(error) }, 'Reading the webhook certificate failed, retrying');
    }
  }

  async trust(signal: AbortSignal): Promise<void> {
    if (this.#serving === undefined) return;
    const change = (caBundle: string | undefined) => bundleAdding(caBundle, this.#authorities);
    const result = await trustInAll(this.#options.trustTargets, change, this.#options, signal);
    this.#trusted ||= result?.complete ?? false;
  }

  async #read(): Promise<void> {
    const { folder, names, logger, metrics, serve } = this.#options;
    const [certificate, key, ca] = await Promise.all([
      readFile(join(folder, 'tls.crt'), 'utf8'),
      readFile(join(folder, 'tls.key'), 'utf8'),
      readFile(join(folder, 'ca.crt'), 'utf8').catch(unlessMissing),
    ]);
    const x509 = new X509Certificate(certificate);
    // Reading two files is not atomic, so they may be from different versions. Swapping a symbolic link does not
    // prevent that.
    if (!x509.checkPrivateKey(createPrivateKey(key)))
      throw new Error('tls.key does not match tls.crt; the files may be in the middle of a replacement');
    this.#authorities = certificatesIn(ca ?? '');
    const isNew = certificate !== this.#serving?.certificate || key !== this.#serving.key;
    if (!isNew) return;
    const missing = names.filter(
      (name) => (isIP(name) ? x509.checkIP(name) : x509.checkHost(name)) === undefined,
    );
    if (missing.length > 0)
      logger.warn({ folder, missing }, 'The webhook certificate lacks names by which the server is reached');
    serve({ certificate, key }); // throws if TLS cannot use the certificate; the previous one then stays in use
    this.#serving = { certificate, key };
    metrics?.expires('serving', x509.validToDate);
    const authority = this.#authorities.find((each) => isSignedBy(x509, each));
    if (authority !== undefined) metrics?.expires('authority', authority.validToDate);
    logger.info(
      { folder, expires: x509.validToDate.toISOString() },
      'Serving the webhook certificate from files',
    );
  }
}

function unlessMissing(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
  throw error;
}
