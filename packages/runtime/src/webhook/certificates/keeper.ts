import { createHash, type X509Certificate } from 'node:crypto';
import { type Logger, messageOf, type World } from '@vmwright/core';
import { keyOf, type ObjectRef } from '../../kind/object.ts';
import type { CertificateMetrics } from '../../metrics/runtime-metrics.ts';
import type { Issued } from '../../pki/certificate.ts';
import { bundleOf, bundleWith } from './bundle.ts';
import { type Held, type Leaf, mended, together } from './held.ts';
import { isDue, LIFETIMES, type Lifetimes, planned } from './plan.ts';
import { type SecretClient, SecretStore } from './secret-store.ts';
import type { CertificateSource } from './source.ts';
import { type TrustClient, type TrustedIn, trustInAll } from './trust.ts';

export interface CertificateOptions extends Partial<Lifetimes> {
  /**
   * How long a new authority must have been trusted everywhere before a certificate of it is served: the time in which
   * every API server surely learns of a changed `caBundle`. @default 300_000
   */
  readonly settleMs?: number;
  /** Between two looks at the Secret and at what is trusted, give or take a fifth. @default 10_000 */
  readonly pollMs?: number;
}

export interface CertificateKeeperOptions extends Omit<CertificateOptions, 'pollMs'> {
  readonly world: Pick<World, 'now' | 'monotonic'>;
  readonly client: SecretClient & TrustClient;
  readonly logger: Logger;
  readonly metrics?: CertificateMetrics;
  /** Of the program; its authorities are known by it. */
  readonly name: string;
  readonly secret: ObjectRef;
  /** Under which the server is reached. */
  readonly names: readonly string[];
  readonly trustedIn: readonly TrustedIn[];
  /** Told of each certificate from which on to serve by it. */
  readonly serve: (certificate: Issued) => void;
}

/** After so many writes of others in a row, the next round will do. */
const MOST_TRIES = 5;

/**
 * Sees to it that this replica serves by a certificate that the API servers trust.
 *
 * Flow, every ten seconds: read the Secret that all replicas share → create, restore or renew what it holds → take up its
 * serving certificate → have its authorities trusted wherever the webhooks are named.
 *
 * Guarantees: a certificate of another authority than the one served by is taken up only after that authority was seen
 * to be trusted everywhere for `settleMs`, so a renewal drops no request, whichever replica dies at whatever point;
 * a Secret or a `caBundle` that someone spoils or deletes is put right in the next round.
 * Assumptions: wall clocks are wrong by less than a fifth of an authority's life, or their own replica fails until they
 * are right again.
 */
export class CertificateKeeper implements CertificateSource {
  readonly #options: CertificateKeeperOptions;
  readonly #store: SecretStore;
  readonly #lifetimes: Lifetimes;
  readonly #commonName: string;
  #held: Held | undefined;
  #serving: Leaf | undefined;
  /** By fingerprint: since when an authority was seen to be trusted everywhere, without a break. */
  #since = new Map<string, number>();
  /** Those for which that was long enough, when last looked. */
  #settled = new Set<string>();
  #trusted = false;

  constructor(options: CertificateKeeperOptions) {
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

  /** Whether what is served by has been seen to be trusted everywhere. */
  get trusted(): boolean {
    return this.#trusted;
  }

  /** The first half of a round: has a certificate to serve by, if it can be had. What fails is logged. */
  async obtain(signal: AbortSignal): Promise<void> {
    const { logger, metrics, secret } = this.#options;
    try {
      await this.#share(signal);
    } catch (error) {
      if (signal.aborted) return;
      metrics?.read(false);
      logger.warn(
        { object: keyOf(secret), error: messageOf(error) },
        'the webhook certificate is out of reach',
      );
    }
    this.#take();
  }

  /** The Secret holds what it should, or another has just written it and is read again. */
  async #share(signal: AbortSignal): Promise<void> {
    const { world, names, metrics, logger, secret } = this.#options;
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const found = await this.#store.read(signal);
      metrics?.read(true);
      const held = mended(found.held, this.#held);
      const plan = planned(held, {
        now: world.now(),
        lifetimes: this.#lifetimes,
        commonName: this.#commonName,
        names,
        isSettled: (authority) => this.#isSettled(authority),
      });
      const next = plan?.next ?? held;
      if (next !== found.held) {
        if (!(await this.#store.write(next, found, signal))) continue;
        const because = plan?.because ?? 'it was gone or spoilt';
        logger.info({ object: keyOf(secret), because }, 'the webhook certificate was renewed');
      }
      this.#held = next;
      return;
    }
  }

  /** Serves by what is held, unless that could be unknown to an API server that knows what is served by now. */
  #take(): void {
    const { world, serve, metrics } = this.#options;
    const [next, current] = [this.#held?.leaf, this.#serving];
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

  /** The other half: all that is held is trusted wherever the webhooks are named. What fails is logged. */
  async trust(signal: AbortSignal): Promise<void> {
    const { world, trustedIn, settleMs = 300_000 } = this.#options;
    const served = this.#serving;
    if (served === undefined) return;
    const began = world.monotonic();
    const wanted = together([served.authority, ...(this.#held?.authorities ?? [])], []);
    const change = (caBundle: string | undefined) => bundleWith(caBundle, wanted, this.#commonName);
    const result = await trustInAll(trustedIn, change, this.#options, signal);
    if (result === undefined) return;
    let before = new Set(wanted.map(({ fingerprint256 }) => fingerprint256));
    for (const caBundle of result.bundles) {
      const { ours } = bundleOf(caBundle, this.#commonName);
      before = before.intersection(new Set(ours.map((each) => each.fingerprint256)));
    }
    // Nothing is settled that cannot be seen: it may be missing there. Counted from the end of the look that found it
    // missing to the beginning of this one.
    const ended = world.monotonic();
    const since = wanted.map(
      ({ fingerprint256: id }) => [id, (before.has(id) && this.#since.get(id)) || ended] as const,
    );
    this.#since = new Map(result.complete ? since : []);
    this.#settled = new Set([...this.#since].flatMap(([id, from]) => (began - from >= settleMs ? [id] : [])));
    this.#trusted ||= result.complete;
  }

  #isSettled({ fingerprint256 }: X509Certificate): boolean {
    return this.#settled.has(fingerprint256);
  }
}

/** The common name of a program's authorities. A certificate takes 64 characters: a longer name is told apart by its hash. */
export function authorityName(program: string): string {
  const name = `${program} webhooks`;
  if (name.length <= 64) return name;
  const hash = createHash('sha256').update(program).digest('hex').slice(0, 10);
  return `${program.slice(0, 44)}-${hash} webhooks`;
}
