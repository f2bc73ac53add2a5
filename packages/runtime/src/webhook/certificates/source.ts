import { jittered, type World, wait } from '@vmwright/core';
import type { Issued } from '../../pki/certificate.ts';

/** Source of the webhook server's certificate. It also makes the API server trust the certificate. */
export interface CertificateSource {
  /** Certificate to serve; undefined until one was obtained. */
  readonly serving: Issued | undefined;
  /** Whether the CA has been written to the `caBundle` of all webhooks at least once. */
  readonly trusted: boolean;
  /** Obtains or renews the certificate to serve. Logs failures. */
  obtain(signal: AbortSignal): Promise<void>;
  /** Writes the CA to the `caBundle` of all webhooks. Logs failures. */
  trust(signal: AbortSignal): Promise<void>;
}

/**
 * Obtains the certificate and makes it trusted, periodically until the signal aborts.
 * @param pollMs interval in milliseconds, ± 20 %
 */
export async function pollCertificate(
  source: Pick<CertificateSource, 'obtain' | 'trust'>,
  world: Pick<World, 'after' | 'random'>,
  signal: AbortSignal,
  pollMs = 10_000,
): Promise<void> {
  while (!signal.aborted) {
    await source.obtain(signal);
    await source.trust(signal);
    await wait(world, jittered(world, pollMs, 0.2), signal).catch(() => undefined);
  }
}
