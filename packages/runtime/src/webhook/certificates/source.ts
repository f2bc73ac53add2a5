import type { Issued } from '../../pki/certificate.ts';

/** Where the certificate of a server comes from, and who has it trusted. */
export interface CertificateSource {
  /** The certificate to serve now; undefined until there is one. */
  readonly serving: Issued | undefined;
  /** Whether the API server has been told to trust it. */
  readonly trusted: boolean;
  /** Looks for a certificate to serve. Logs what fails. */
  obtain(signal: AbortSignal): Promise<void>;
  /** Has it trusted wherever the webhooks are named. Logs what fails. */
  trust(signal: AbortSignal): Promise<void>;
  /** Does both again and again, until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
}
