import type { X509Certificate } from 'node:crypto';
import {
  silentLogger,
  type Timer,
  type TransportRequest,
  type TransportResponse,
  type World,
} from '@vmwright/core';
import { noCredentials } from '../src/access/credentials.ts';
import { Client } from '../src/client/client.ts';
import { Secret } from '../src/kind/builtin/secret.ts';
import { ValidatingWebhookConfiguration } from '../src/kind/builtin/webhook-configuration.ts';
import { CustomResourceDefinition } from '../src/kind/crd.ts';
import { collectionPath, objectPath } from '../src/kind/kind.ts';
import { isJsonObject, type JsonObject } from '../src/kind/schema/json.ts';
import type { Issued } from '../src/pki/certificate.ts';
import { certificatesIn, isSignedBy } from '../src/pki/pem.ts';
import { CertificateIssuer } from '../src/webhook/certificates/issuer.ts';
import { pollCertificate } from '../src/webhook/certificates/source.ts';
import type { TrustTarget } from '../src/webhook/certificates/trust.ts';
import type { SeededRandom, Timeline } from './election-model.ts';

/*
 * Model of replicas that share a certificate, in virtual time. Their API server stores a Secret, a webhook
 * configuration and a CRD. Requests are delayed and lost. Replicas have inaccurate clocks and are killed at any moment.
 */

export const START = Date.UTC(2030, 0, 1);
export const SECRET = objectPath(Secret, { namespace: 'system', name: 'certificate' });
export const CONFIGURATION = objectPath(ValidatingWebhookConfiguration, { name: 'model' });
export const CRD = objectPath(CustomResourceDefinition, { name: 'widgets.model' });
const SECRETS = collectionPath(Secret, 'system');

type Json = Record<string, unknown>;

/**
 * `caBundle` that an object has had since the time `at`. Undefined if the object has none, or if another user wrote or
 * deleted the object at that time.
 */
interface BundleVersion {
  readonly at: number;
  readonly caBundle: string | undefined;
}

/** Subset of the API server that the certificate issuer uses. */
export class ModelServer {
  readonly #timeline: Timeline;
  readonly #objects = new Map<string, Json>();
  readonly #history = new Map<string, BundleVersion[]>();
  #version = 0;
  readonly counts = { conflicts: 0, creates: 0, secretWrites: 0, bundleWrites: 0 };

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  get(path: string): Json | undefined {
    return this.#objects.get(path);
  }

  /** Writes an object on behalf of another user. */
  put(path: string, object: Json | undefined): void {
    if (object === undefined) this.#objects.delete(path);
    else this.#store(path, object);
    this.#history.get(path)?.push({ at: this.#timeline.now, caBundle: undefined });
  }

  /** Yields all values of `caBundle` that an API server may use if its watch lags by at most `lagMs`. */
  *bundlesSeen(path: string, lagMs: number): Generator<string> {
    const history = this.#history.get(path) ?? [];
    for (const [index, { caBundle }] of history.entries()) {
      const end = history[index + 1]?.at ?? Number.POSITIVE_INFINITY;
      if (end >= this.#timeline.now - lagMs && caBundle !== undefined) yield caBundle;
    }
  }

  handle({ method, path: target, body = '{}' }: TransportRequest): { status: number; body: unknown } {
    const path = target.split('?')[0] ?? '';
    const sent: unknown = JSON.parse(body);
    const found = this.#objects.get(path);
    if (method === 'POST' && path === SECRETS && isJsonObject(sent)) {
      if (this.#objects.has(SECRET)) return failure(409, 'AlreadyExists');
      this.counts.creates += 1;
      return { status: 201, body: this.#store(SECRET, { ...sent }) };
    }
    if (found === undefined) return failure(404, 'NotFound');
    if (method === 'GET') return { status: 200, body: found };
    const changed = Array.isArray(sent) ? jsonPatched(found, sent) : mergePatched(found, sent);
    if (changed === undefined) {
      this.counts.conflicts += 1;
      return Array.isArray(sent) ? failure(422, 'Invalid') : failure(409, 'Conflict');
    }
    this.counts[path === SECRET ? 'secretWrites' : 'bundleWrites'] += 1;
    return { status: 200, body: this.#store(path, changed) };
  }

  #store(path: string, object: Json): Json {
    this.#version += 1;
    const metadata = isJsonObject(object.metadata) ? object.metadata : {};
    const stored = { ...object, metadata: { ...metadata, resourceVersion: String(this.#version) } };
    this.#objects.set(path, stored);
    if (path !== SECRET) {
      const history = this.#history.get(path) ?? [];
      history.push({ at: this.#timeline.now, caBundle: caBundleIn(stored) });
      this.#history.set(path, history);
    }
    return stored;
  }
}

export function configuration(caBundle?: string): Json {
  const clientConfig = { url: 'https://model', ...(caBundle !== undefined && { caBundle }) };
  const others = { name: 'not.ours.model', clientConfig: { caBundle: 'b3RoZXJz' } };
  return { metadata: { name: 'model' }, webhooks: [others, { name: 'ours.model', clientConfig }] };
}

export function crd(caBundle?: string): Json {
  const clientConfig = { url: 'https://model', ...(caBundle !== undefined && { caBundle }) };
  return {
    metadata: { name: 'widgets.model' },
    spec: { conversion: { strategy: 'Webhook', webhook: { clientConfig } } },
  };
}

/** Returns the `caBundle` of the program's webhook in a webhook configuration or CRD. */
export function caBundleIn(object: JsonObject): string | undefined {
  const [, caBundle] = /"(?:ours\.model|strategy)".*?"caBundle":"([^"]*)"/.exec(JSON.stringify(object)) ?? [];
  return caBundle;
}

function mergePatched(object: Json, patch: unknown): Json | undefined {
  if (!isJsonObject(patch) || !isJsonObject(patch.metadata) || !isJsonObject(object.metadata))
    return undefined;
  if (patch.metadata.resourceVersion !== object.metadata.resourceVersion) return undefined;
  return { ...object, data: { ...(isJsonObject(object.data) && object.data), ...(patch.data ?? {}) } };
}

function jsonPatched(object: Json, patch: readonly unknown[]): Json | undefined {
  const copy = structuredClone(object);
  for (const operation of patch) {
    if (!isJsonObject(operation)) return undefined;
    const segments = String(operation.path).split('/').slice(1);
    const last = segments.pop() ?? '';
    let at: unknown = copy;
    for (const segment of segments) at = isRecord(at) ? at[segment] : undefined;
    if (!isRecord(at)) return undefined;
    if (operation.op === 'test' && at[last] !== operation.value) return undefined;
    if (operation.op === 'add') at[last] = operation.value;
  }
  return copy;
}

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null;
}

function failure(code: number, reason: string) {
  return { status: code, body: { kind: 'Status', status: 'Failure', code, reason, message: reason } };
}

export type ModelNetwork = 'good' | 'lossy' | 'down';

/** Durations of the model; the lifetimes are minutes instead of years. */
export const TIMES = { authorityMs: 6_000_000, servingMs: 1_800_000, settleMs: 90_000, pollMs: 30_000 };

export interface ReplicaOptions {
  readonly timeline: Timeline;
  readonly server: ModelServer;
  readonly random: SeededRandom;
  readonly times?: Partial<typeof TIMES>;
}

export class Replica {
  readonly #options: ReplicaOptions;
  #incarnation = 0;
  #stop = new AbortController();
  #clockOffset = 0;
  network: ModelNetwork = 'good';
  served: Issued | undefined;
  issuer: CertificateIssuer | undefined;
  readonly counts = { swaps: 0, lost: 0 };

  constructor(options: ReplicaOptions) {
    this.#options = options;
  }

  /** Deviation of the replica's wall clock from true time, in milliseconds. */
  set clockOffset(ms: number) {
    this.#clockOffset = ms;
  }

  start(): void {
    this.kill();
    const world = this.#world(this.#incarnation);
    const access = { server: { origin: 'https://model' }, credentials: noCredentials, namespace: 'system' };
    const { pollMs, ...times } = { ...TIMES, ...this.#options.times };
    const issuer = new CertificateIssuer({
      ...times,
      world,
      client: new Client({ world, access, fieldManager: 'model', timeoutMs: 5_000 }),
      logger: silentLogger,
      name: 'model',
      secret: { namespace: 'system', name: 'certificate' },
      names: ['model.system.svc'],
      trustTargets: [inConfiguration, inCrd],
      serve: (certificate) => {
        if (this.served !== undefined) this.counts.swaps += 1;
        this.served = certificate;
      },
    });
    this.issuer = issuer;
    this.#stop = new AbortController();
    void pollCertificate(issuer, world, this.#stop.signal, pollMs);
  }

  /** Kills the process. Requests that were already sent still reach the server. */
  kill(): void {
    this.#incarnation += 1;
    this.served = undefined;
    this.issuer = undefined;
  }

  #world(incarnation: number): World {
    const { timeline, random } = this.#options;
    return {
      now: () => START + timeline.now + this.#clockOffset,
      monotonic: () => timeline.now,
      random: () => random.next(),
      uuid: () => String(random.next()),
      after: (ms, callback): Timer => {
        let cancelled = false;
        timeline.at(timeline.now + Math.max(ms, 0), () => {
          if (!cancelled && incarnation === this.#incarnation) callback();
        });
        return {
          cancel: () => {
            cancelled = true;
          },
        };
      },
      connect: () => ({
        request: (request) => this.#request(incarnation, request),
        close: async () => undefined,
      }),
    };
  }

  #request(incarnation: number, request: TransportRequest): Promise<TransportResponse> {
    const { timeline, server } = this.#options;
    return new Promise((resolve, reject) => {
      request.signal?.addEventListener('abort', () => reject(request.signal?.reason), { once: true });
      const ifAlive = (callback: () => void) => () => {
        if (incarnation === this.#incarnation) callback();
      };
      if (this.#isLost()) {
        timeline.at(
          timeline.now + 20,
          ifAlive(() => reject(new Error('reset'))),
        );
        return;
      }
      timeline.at(timeline.now + this.#delay(), () => {
        const { status, body } = server.handle(request);
        if (this.#isLost()) return; // the client has to time out
        const text = JSON.stringify(body);
        const response = {
          status,
          header: () => undefined,
          text: async () => text,
          async *lines() {
            yield text;
          },
        };
        timeline.at(
          timeline.now + this.#delay(),
          ifAlive(() => resolve(response)),
        );
      });
    });
  }

  #delay(): number {
    return 1 + 200 * this.#options.random.next() ** 4;
  }

  #isLost(): boolean {
    const lost = this.network === 'down' || (this.network === 'lossy' && this.#options.random.next() < 0.3);
    if (lost) this.counts.lost += 1;
    return lost;
  }
}

const inConfiguration: TrustTarget = {
  kind: ValidatingWebhookConfiguration,
  name: 'model',
  read: async (client, signal) => {
    const object = await client.get(ValidatingWebhookConfiguration, { name: 'model' }, { signal });
    const index = object.webhooks?.findIndex(({ name }) => name === 'ours.model') ?? -1;
    const caBundle = object.webhooks?.[index]?.clientConfig.caBundle;
    return { object, places: [{ path: `/webhooks/${index}/clientConfig/caBundle`, caBundle }] };
  },
};

const inCrd: TrustTarget = {
  kind: CustomResourceDefinition,
  name: 'widgets.model',
  read: async (client, signal) => {
    const object = await client.get(CustomResourceDefinition, { name: 'widgets.model' }, { signal });
    const path = '/spec/conversion/webhook/clientConfig/caBundle';
    return { object, places: [{ path, caBundle: caBundleIn({ ...object }) }] };
  },
};

const verified = new Map<string, { leaf: X509Certificate; issuers: readonly X509Certificate[] }>();

export function isValidAt(certificate: X509Certificate, time: number): boolean {
  return certificate.validFromDate.getTime() <= time && time < certificate.validToDate.getTime();
}

/** Returns whether an API server with this `caBundle` accepts this serving certificate. */
export function accepts(caBundle: string, { certificate }: Issued, time: number): boolean {
  const key = `${caBundle} ${certificate}`;
  const known = verified.get(key) ?? verify(caBundle, certificate);
  verified.set(key, known);
  return isValidAt(known.leaf, time) && known.issuers.some((authority) => isValidAt(authority, time));
}

function verify(caBundle: string, certificate: string) {
  const [leaf] = certificatesIn(certificate);
  if (leaf === undefined) throw new Error('the served certificate is invalid');
  const bundle = certificatesIn(Buffer.from(caBundle, 'base64').toString());
  return { leaf, issuers: bundle.filter((authority) => isSignedBy(leaf, authority)) };
}
