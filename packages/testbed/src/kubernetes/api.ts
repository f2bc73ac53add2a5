import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { TestbedError } from '../errors.ts';
import type { Access } from './kubeconfig.ts';

/** The fields that all Kubernetes objects have. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly deletionTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
}

/** Thrown when the API server responds with an error status. */
export class ApiError extends TestbedError {
  readonly status: number;

  constructor(status: number, message: string) {
    super('REQUEST_FAILED', message);
    this.status = status;
  }
}

/**
 * Minimal Kubernetes client without cache. It is independent of the runtime's client, because tests of the runtime must
 * not observe the cluster with the client under test.
 */
export class Api implements AsyncDisposable {
  readonly #pool: Pool;
  readonly #headers: Readonly<Record<string, string>>;

  constructor({ server, ca, as }: Access) {
    const identity = 'token' in as ? {} : { cert: as.certificate, key: as.key };
    this.#headers = 'token' in as ? { authorization: `Bearer ${as.token}` } : {};
    // There is no body timeout, because a watch is silent while nothing changes.
    this.#pool = new Pool(server, {
      connect: { ca, ...identity },
      allowH2: false,
      bodyTimeout: 0,
      headersTimeout: 30_000,
    });
  }

  get(path: string): Promise<KubeObject> {
    return this.#send('GET', path).then(object);
  }

  /** Returns the body of a plain-text endpoint, such as `/readyz` or `/metrics`. */
  async text(path: string): Promise<string> {
    const response = await this.#pool.request({ method: 'GET', path, headers: this.#headers });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new ApiError(response.statusCode, `GET ${path}: ${text}`);
    return text;
  }

  async list(path: string): Promise<readonly KubeObject[]> {
    const response = await this.#send('GET', path);
    const items = field(response, 'items');
    return Array.isArray(items) ? items.map(object) : [];
  }

  create(path: string, body: object): Promise<KubeObject> {
    return this.#send('POST', path, body).then(object);
  }

  merge(path: string, body: object): Promise<KubeObject> {
    return this.#send('PATCH', path, body, 'application/merge-patch+json').then(object);
  }

  async delete(path: string): Promise<void> {
    await this.#send('DELETE', path);
  }

  /** Requests a token for a service account. */
  async token(namespace: string, name: string): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    const spec = { expirationSeconds: 365 * 24 * 60 * 60 }; // one year, like the certificates: `make up` may run for months
    const response = await this.#send('POST', path, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec,
    });
    const token = field(response, 'status', 'token');
    if (typeof token !== 'string') throw new ApiError(200, `POST ${path} returned no token`);
    return token;
  }

  /** Yields all existing objects, then each change. Ends when the server closes the stream or the signal aborts. */
  async *watch(path: string, signal: AbortSignal): AsyncGenerator<WatchEvent, void, undefined> {
    const query = `${path.includes('?') ? '&' : '?'}watch=true`;
    const response = await this.#pool.request({
      method: 'GET',
      path: path + query,
      headers: this.#headers,
      signal,
    });
    if (response.statusCode !== 200) {
      throw new ApiError(response.statusCode, `watch of ${path}: ${messageIn(await response.body.text())}`);
    }
    for await (const line of lines(response.body)) {
      const event: unknown = JSON.parse(line);
      const type = field(event, 'type');
      if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED')
        yield { type, object: object(field(event, 'object')) };
      else if (type !== 'BOOKMARK') throw new ApiError(410, `watch of ${path}: ${JSON.stringify(event)}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.destroy();
  }

  async #send(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: object,
    type = 'application/json',
  ) {
    for (;;) {
      const {
        statusCode,
        headers,
        body: received,
      } = await this.#pool.request({
        method,
        path,
        headers: { ...this.#headers, accept: 'application/json', ...(body && { 'content-type': type }) },
        body: body === undefined ? null : JSON.stringify(body),
      });
      const text = await received.text();
      if (statusCode < 300) {
        const result: unknown = JSON.parse(text);
        return result;
      }
      // Retries a response 429 with Retry-After, as client-go does. For example, the API server responds with 429
      // "storage is (re)initializing" after a change of a CRD.
      const retryAfter = Number(headers['retry-after']);
      if (statusCode !== 429 || !(retryAfter > 0))
        throw new ApiError(statusCode, `${method} ${path}: ${messageIn(text)}`);
      await sleep(retryAfter * 1_000);
    }
  }
}

/** Returns the value at a path of field names, or undefined if a field is missing. */
export function field(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((at, name) => (isRecord(at) ? at[name] : undefined), value);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function object(value: unknown): KubeObject {
  if (isObject(value)) return value;
  throw new TestbedError(
    'REQUEST_FAILED',
    `not a Kubernetes object: ${JSON.stringify(value)?.slice(0, 200)}`,
  );
}

/** Checks `metadata` only, because list items have no apiVersion and kind. */
function isObject(value: unknown): value is KubeObject {
  return (
    typeof field(value, 'metadata', 'name') === 'string' &&
    typeof field(value, 'metadata', 'uid') === 'string'
  );
}

function messageIn(text: string): string {
  try {
    const message = field(JSON.parse(text), 'message');
    return typeof message === 'string' ? message : text;
  } catch {
    return text;
  }
}

async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    yield* parts;
  }
}

/** Returns the status of a condition (`True`, `False` or `Unknown`), or undefined if the object does not have it. */
export function condition(object: KubeObject, type: string): unknown {
  const conditions = field(object, 'status', 'conditions');
  return Array.isArray(conditions)
    ? field(
        conditions.find((each) => field(each, 'type') === type),
        'status',
      )
    : undefined;
}
