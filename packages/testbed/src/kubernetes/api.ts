import { Pool } from 'undici';
import { TestbedError } from '../errors.ts';
import type { Access } from './kubeconfig.ts';

/** Any Kubernetes object, as much as all of them have in common. */
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

export class ApiError extends TestbedError {
  readonly status: number;

  constructor(status: number, message: string) {
    super('REQUEST_FAILED', message);
    this.status = status;
  }
}

/**
 * The testbed's own plain client, kept apart from the runtime's on purpose: what proves a client right must not be
 * built on it. No cache, no retries.
 */
export class Api implements AsyncDisposable {
  readonly #pool: Pool;
  readonly #headers: Readonly<Record<string, string>>;

  constructor({ server, ca, as }: Access) {
    const identity = 'token' in as ? {} : { cert: as.certificate, key: as.key };
    this.#headers = 'token' in as ? { authorization: `Bearer ${as.token}` } : {};
    // Watches last; a stream may be silent for as long as nothing happens.
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

  /** The plain text of an answer: `/readyz`, `/metrics`. */
  async text(path: string): Promise<string> {
    const response = await this.#pool.request({ method: 'GET', path, headers: this.#headers });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new ApiError(response.statusCode, `GET ${path}: ${text}`);
    return text;
  }

  async list(path: string): Promise<readonly KubeObject[]> {
    const answer = await this.#send('GET', path);
    const items = field(answer, 'items');
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

  /** A new token of a service account. */
  async token(namespace: string, name: string): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    const spec = { expirationSeconds: 365 * 24 * 60 * 60 }; // as the certificates: `make up` may run long
    const answer = await this.#send('POST', path, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec,
    });
    const token = field(answer, 'status', 'token');
    if (typeof token !== 'string') throw new ApiError(200, `POST ${path} answered no token`);
    return token;
  }

  /** First all that is there, then each change; ends when the server closes the stream or the signal says so. */
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
    const response = await this.#pool.request({
      method,
      path,
      headers: { ...this.#headers, accept: 'application/json', ...(body && { 'content-type': type }) },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.body.text();
    if (response.statusCode >= 300)
      throw new ApiError(response.statusCode, `${method} ${path}: ${messageIn(text)}`);
    const answer: unknown = JSON.parse(text);
    return answer;
  }
}

/** The value at a path of fields, of whatever shape it is. */
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

/** List items come without apiVersion and kind. */
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

/** The status of a condition: `True`, `False`, `Unknown`, or undefined where there is none. */
export function condition(object: KubeObject, type: string): unknown {
  const conditions = field(object, 'status', 'conditions');
  return Array.isArray(conditions)
    ? field(
        conditions.find((each) => field(each, 'type') === type),
        'status',
      )
    : undefined;
}
