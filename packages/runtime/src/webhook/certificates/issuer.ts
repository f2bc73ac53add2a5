import { createHash, type X509Certificate } from 'node:crypto';
import { type Logger, messageOf, type World } from '@vmwright/core';
import { keyOf, type ObjectRef } from '../../kind/object.ts';
import type { CertificateMetrics } from '../../metrics/runtime-metrics.ts';
import type { Issued } from '../../pki/certificate.ts';
import { bundleOf, bundleWith } from './bundle.ts';
import { isDue, LIFETIMES, type Lifetimes, planCertificates } from './plan.ts';
import { type SecretClient, SecretStore } from './secret-store.ts';
import type { CertificateSource } from './source.ts';
import { type CertificateState, type Leaf, mergeAuthorities, repaired } from './state.ts';
import { type TrustClient, type TrustTarget, trustInAll } from './trust.ts';

/** Certificates that the program issues for its webhooks. */
export interface CertificateOptions extends Partial<Lifetimes> {
  /**
   * Time in milliseconds for which a new CA must be in every `caBundle` before a certificate of this CA is served. It
   * must be long enough for every API server to observe a changed `caBundle`.
   * @default 300_000
   */
  readonly settleMs?: number;
  /** Interval between two checks of the Secret and of every `caBundle`, in milliseconds, ± 20 %. @default 10_000 */
  readonly pollMs?: number;
}

export interface CertificateIssuerOptions extends Omit<CertificateOptions, 'pollMs'> {
  readonly world: Pick<World, 'now' | 'monotonic'>;
  readonly client: SecretClient & TrustClient;
  readonly logger: Logger;
  readonly metrics?: CertificateMetrics;
  /** Name of the program, from which the common name of its CAs is derived. */
  readonly name: string;
  readonly secret: ObjectRef;
  /** Names by which the API server reaches the webhooks. */
  readonly names: readonly string[];
  readonly trustTargets: readonly TrustTarget[];
  /** Called with each certificate to serve from now on. */
  readonly serve: (certificate: Issued) => void;
}

/** Maximum number of write conflicts in a row before waiting for the next poll. */
const MAX_ATTEMPTS = 5;

/**
 * Issues the webhook certificate with a CA of the program. All replicas share the certificate and the CA in a Secret.
 *
 * Flow: each poll reads the Secret, creates, repairs or renews its content, serves its certificate, and writes its CAs
 * to the `caBundle` of all webhooks.
 *
 * Guarantees: until the served certificate expires, it is replaced by a certificate of another CA only after that CA
 * was in every `caBundle` for `settleMs`. So a renewal makes no request fail, even if replicas are killed at any
 * moment. If the Secret or a `caBundle` is edited or deleted, the next poll repairs it.
 *
 * Assumptions: wall clocks are wrong by less than a fifth of a CA's lifetime. A replica with a larger error may fail
 * until its clock is corrected.
 */
export class CertificateIssuer implements CertificateSource {
  readonly #options: CertificateIssuerOptions;
  readonly #store: SecretStore;
  readonly #lifetimes: Lifetimes;
  readonly #commonName: string;
  #state: CertificateState | undefined;
  #serving: Leaf | undefined;
  /** Monotonic time since which each CA has been in every `caBundle` without interruption, by fingerprint of the CA. */
  #trustedSince = new Map<string, number>();
  /** Fingerprints of the CAs that, at the last poll, had been in every `caBundle` for `settleMs`. */
  #settled = new Set<string>();
  #trusted = false;

  constructor(options: CertificateIssuerOptions) {
    this.#options = options;
    this.#store = new SecretStore(options.client, options.secret);
    this.#lifetimes = {
      authorityMs: options.authorityMs ?? LIFETIMES.authorityMs,
      servingMs: options.servingMs ?? LIFETIMES.servingMs,
    };
    this.#commonName = authorityName(options.name);
  }

  get serving(): Issued | undefined {
    return this.#serving;
  }

  get trusted(): boolean {
    return this.#trusted;
  }

  async obtain(signal: AbortSignal): Promise<void> {
    const { logger, metrics, secret } = this.#options;
    try {
      await this.#syncSecret(signal);
    } catch (error) {
      if (signal.aborted) return;
      metrics?.read(false);
      logger.warn(
        { object: keyOf(secret), error: messageOf(error) },
        'Reading or writing the webhook certificate failed, retrying',
      );
    }
    this.#serveCurrent();
  }

  /** Updates the Secret if needed. After a write conflict the Secret is read again. */
  async #syncSecret(signal: AbortSignal): Promise<void> {
    const { world, names, metrics, logger, secret } = this.#options;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const found = await this.#store.read(signal);
      metrics?.read(true);
      const state = repaired(found.state, this.#state);
      const plan = planCertificates(state, {
        now: world.now(),
        lifetimes: this.#lifetimes,
        commonName: this.#commonName,
        names,
        isSettled: (authority) => this.#isSettled(authority),
      });
      const next = plan?.next ?? state;
      if (next !== found.state) {
        if (!(await this.#store.write(next, found, signal))) continue;
        const reason = plan?.reason ?? 'the Secret was deleted or damaged';
        logger.info({ object: keyOf(secret), reason }, 'Wrote the webhook certificate');
      }
      this.#state = next;
      return;
    }
  }

  /**
   * Serves the certificate of the Secret. If an API server might not trust this certificate yet, the current one stays
   * in use, at most until it expires.
   */
  #serveCurrent(): void {
    const { world, serve, metrics } = this.#options;
    const [next, current] = [this.#state?.leaf, this.#serving];
    if (next === undefined || next.certificate === current?.certificate) return;
    const safe =
      current === undefined ||
      next.authority.fingerprint256 === current.authority.fingerprint256 ||
      this.#isSettled(next.authority) ||
      isDue(current.x509, world.now(), 0);
    if (!safe) return;
    serve(next);
    this.#serving = next;
    metrics?.expires('serving', next.x509.validToDate);
    metrics?.expires('authority', next.authority.validToDate);
  }

  async trust(signal: AbortSignal): Promise<void> {
    const { world, trustTargets, settleMs = 300_000 } = this.#options;
    const served = this.#serving;
    if (served === undefined) return;
    const startedAt = world.monotonic();
    const wanted = mergeAuthorities([served.authority, ...(this.#state?.authorities ?? [])], []);
    const change = (caBundle: string | undefined) => bundleWith(caBundle, wanted, this.#commonName);
    const result = await trustInAll(trustTargets, change, this.#options, signal);
    if (result === undefined) return;
    let presentBefore = new Set(wanted.map(({ fingerprint256 }) => fingerprint256));
    for (const caBundle of result.bundles) {
      const { ours } = bundleOf(caBundle, this.#commonName);
      presentBefore = presentBefore.intersection(new Set(ours.map((each) => each.fingerprint256)));
    }
    // If a target could not be read or written, no CA counts as present, because that target may lack the CA. Otherwise
    // a CA counts as present from the end of the last poll that found it missing until the start of this poll.
    const endedAt = world.monotonic();
    const since = wanted.map(
      ({ fingerprint256: id }) =>
        [id, (presentBefore.has(id) && this.#trustedSince.get(id)) || endedAt] as const,
    );
    this.#trustedSince = new Map(result.complete ? since : []);
    this.#settled = new Set(
      [...this.#trustedSince].flatMap(([id, from]) => (startedAt - from >= settleMs ? [id] : [])),
    );
    this.#trusted ||= result.complete;
  }

  #isSettled({ fingerprint256 }: X509Certificate): boolean {
    return this.#settled.has(fingerprint256);
  }
}

/** Returns the common name of a program's CAs. It has at most 64 characters; longer names are shortened with a hash. */
export function authorityName(program: string): string {
  const name = `${program} webhooks`;
  if (name.length <= 64) return name;
  const hash = createHash('sha256').update(program).digest('hex').slice(0, 10);
  return `${program.slice(0, 44)}-${hash} webhooks`;
}
