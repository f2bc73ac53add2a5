import { messageOf, type World } from '@vmwright/core';
import type { Access } from '../access/access.ts';
import { apiVersionOf, collectionPath, type Kind, objectPath, resourceOf } from '../kind/kind.ts';
import type { KubeObject, ObjectRef } from '../kind/object.ts';
import { ApiError, ConnectionError } from './errors.ts';
import type {
  ApplyMetadata,
  ApplyOptions,
  CallOptions,
  DeleteOptions,
  Draft,
  JsonPatchOperation,
  ListOptions,
  PatchOptions,
  WatchOptions,
  WriteOptions,
  WriteScope,
} from './options.ts';
import { withQuery } from './query.ts';
import { isRecord } from './record.ts';
import { type ApiRequest, PAGE_BYTES, type RequestObserver, Requests } from './requests.ts';
import {
  isObjectOf,
  objectOf,
  type Page,
  pageOf,
  type Scale,
  scaleOf,
  uidOf,
  type WatchEvent,
  watchEvent,
} from './responses.ts';

const JSON_TYPE = 'application/json';
const METADATA = `${JSON_TYPE};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`;
const METADATA_LIST = `${JSON_TYPE};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1`;

/** Options of a client. */
export interface ClientOptions {
  readonly world: World;
  readonly access: Access;
  /** Field manager of server-side apply and of all other writes. */
  readonly fieldManager: string;
  /** User agent of all requests. @default 'vmwright-runtime' */
  readonly userAgent?: string;
  /** Timeout of a request that is not a watch, in milliseconds. @default 30_000 */
  readonly timeoutMs?: number;
  readonly observer?: RequestObserver;
}

/** A request without the parts that come from the call's options. */
type RequestBase = Omit<ApiRequest, 'timeoutMs' | 'signal' | 'assertLeader'>;

/**
 * Client of a Kubernetes API server.
 *
 * Errors: after an unsuccessful response, a call throws a subclass of `ApiError` (`NotFoundError`, `ConflictError`, …).
 * Without a response, it throws a `ConnectionError`.
 *
 * Retries: reads, applies, merge patches and conditional deletes are retried after transient failures. Creates and
 * unconditional deletes are retried only after a 429, which means that the server did not execute them.
 */
export class Client implements AsyncDisposable {
  readonly fieldManager: string;
  readonly #requests: Requests;
  readonly #options: ClientOptions;
  readonly #close: () => Promise<void>;
  readonly #scope: WriteScope | undefined;
  /** Called before each write. */
  readonly #assertLeader: (() => void) | undefined;

  constructor(options: ClientOptions, shared?: { readonly client: Client; readonly scope: WriteScope }) {
    const { world, access, userAgent = 'vmwright-runtime', observer } = options;
    this.fieldManager = options.fieldManager;
    this.#options = options;
    this.#scope = shared?.scope;
    this.#assertLeader = shared && (() => shared.scope.assertLeader());
    if (shared !== undefined) {
      this.#requests = shared.client.#requests;
      this.#close = async () => undefined; // the client that opened the connections closes them
      return;
    }
    const transport = world.connect(access.server);
    this.#requests = new Requests({ world, transport, credentials: access.credentials, userAgent, observer });
    this.#close = () => transport.close();
  }

  /**
   * Returns a client that shares the connections of this one. `scope` fences the writes of the new client and is
   * notified of them.
   */
  scoped(scope: WriteScope): Client {
    return new Client(this.#options, { client: this, scope });
  }

  get<T extends KubeObject>(kind: Kind<T>, ref: ObjectRef, options: CallOptions = {}): Promise<T> {
    return this.#object(kind, { method: 'GET', path: objectPath(kind, ref), idempotent: true }, options);
  }

  /** Returns one page, or all objects if `limit` is not set. */
  async list<T extends KubeObject>(kind: Kind<T>, options: ListOptions = {}): Promise<Page<T>> {
    const { namespace, labelSelector, fieldSelector, limit, resourceVersion, resourceVersionMatch } = options;
    const query = {
      labelSelector,
      fieldSelector,
      limit,
      continue: options.continue,
      resourceVersion,
      resourceVersionMatch,
    };
    const path = withQuery(collectionPath(kind, namespace), query);
    const accept = options.metadataOnly ? METADATA_LIST : undefined;
    const request = { method: 'GET', path, idempotent: true, accept, maxBytes: PAGE_BYTES } as const;
    return pageOf(kind, await this.#text(request, options));
  }

  /** Yields all pages of a list, all from the same snapshot. */
  async *pages<T extends KubeObject>(
    kind: Kind<T>,
    options: ListOptions = {},
  ): AsyncGenerator<Page<T>, void, undefined> {
    // The server rejects a resource version together with a continue token, because the token contains the version.
    const { resourceVersion, resourceVersionMatch, ...rest } = options;
    let page = await this.list(kind, { limit: 500, ...options });
    while (page.continue !== undefined) {
      // The next page is requested before the caller processes this one, so that the server and the caller work at the
      // same time.
      const next = this.list(kind, { limit: 500, ...rest, continue: page.continue });
      next.catch(() => undefined); // avoids an unhandled rejection if the caller stops before this page
      yield page;
      page = await next;
    }
    yield page;
  }

  /**
   * Yields changes until the server ends the stream. Throws if the connection breaks or the signal aborts.
   * @throws GoneError when the resource version is too old, at the start or during the watch
   */
  async *watch<T extends KubeObject>(
    kind: Kind<T>,
    options: WatchOptions = {},
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const { namespace, labelSelector, fieldSelector, resourceVersion, sendInitialEvents, timeoutSeconds } =
      options;
    const path = withQuery(collectionPath(kind, namespace), {
      watch: true,
      allowWatchBookmarks: true,
      labelSelector,
      fieldSelector,
      resourceVersion,
      timeoutSeconds,
      ...(sendInitialEvents && { sendInitialEvents, resourceVersionMatch: 'NotOlderThan' }),
    });
    // A watch is not retried here, because only the caller knows the resource version to resume from.
    const accept = options.metadataOnly ? METADATA : undefined;
    const request = { method: 'GET', path, idempotent: false, accept, ...this.#call(options) } as const;
    const what = `watch of ${resourceOf(kind)}`;
    try {
      for await (const line of await this.#requests.lines(request)) yield watchEvent(kind, what, line);
    } catch (error) {
      request.signal?.throwIfAborted();
      throw error instanceof ApiError || error instanceof ConnectionError
        ? error
        : new ConnectionError(`${what}: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Creates an object. @throws AlreadyExistsError if an object of this name exists */
  create<T extends KubeObject>(kind: Kind<T>, object: Draft<T>, options: WriteOptions = {}): Promise<T> {
    const path = this.#writePath(collectionPath(kind, object.metadata.namespace), options);
    return this.#write(
      kind,
      object,
      { method: 'POST', path, body: bodyOf(kind, object), contentType: JSON_TYPE, idempotent: false },
      options,
    );
  }

  /** Server-side apply: sets the given fields and takes ownership of them. Creates the object if it does not exist. */
  apply<T extends KubeObject>(kind: Kind<T>, object: Draft<T>, options: ApplyOptions = {}): Promise<T> {
    return this.#apply(kind, object, '', options);
  }

  /** Server-side apply of an object's status. */
  applyStatus<T extends KubeObject>(
    kind: Kind<T>,
    metadata: ApplyMetadata,
    status: object,
    options: ApplyOptions = {},
  ): Promise<T> {
    const object = { metadata, status };
    return this.#apply(kind, object, '/status', options);
  }

  /** JSON merge patch (RFC 7386): the given fields replace the existing ones; null removes a field. */
  mergePatch<T extends KubeObject>(
    kind: Kind<T>,
    ref: ObjectRef,
    patch: object,
    options: PatchOptions = {},
  ): Promise<T> {
    return this.#patch(kind, ref, patch, 'application/merge-patch+json', options);
  }

  /**
   * JSON patch (RFC 6902). Retried after transient failures only if its first operation is a `test`.
   * @throws InvalidError if a `test` fails
   */
  jsonPatch<T extends KubeObject>(
    kind: Kind<T>,
    ref: ObjectRef,
    patch: readonly JsonPatchOperation[],
    options: PatchOptions = {},
  ): Promise<T> {
    return this.#patch(kind, ref, patch, 'application/json-patch+json', options, patch[0]?.op === 'test');
  }

  /** Requests the deletion. The object remains while it has finalizers, or during foreground deletion. */
  async delete(kind: Kind, ref: ObjectRef, options: DeleteOptions = {}): Promise<void> {
    const { uid, resourceVersion, propagation } = options;
    const body = JSON.stringify({
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      ...((uid ?? resourceVersion) !== undefined && { preconditions: { uid, resourceVersion } }),
      ...(propagation && { propagationPolicy: propagation }),
      ...(options.dryRun && { dryRun: ['All'] }), // the server ignores a `dryRun` query parameter if there is a body
    });
    const path = objectPath(kind, ref);
    // Without a precondition, a retry could delete an object that was created again under the same name.
    const idempotent = (uid ?? resourceVersion) !== undefined;
    const request = { method: 'DELETE', path, body, contentType: JSON_TYPE, idempotent } as const;
    const response: unknown = JSON.parse(await this.#text(request, options));
    if (options.dryRun) return;
    // The server returns the object while finalizers hold it, or a `Status` once it is deleted.
    const object = isObjectOf(kind, response) ? response : undefined;
    this.#scope?.onWrite({
      kind,
      object,
      ref,
      uid: object?.metadata.uid ?? uidOf(response),
      // The event of this write must enqueue the object: a reconcile that deletes its own object must run again, to
      // finalize it.
      conditional: false,
    });
  }

  /** Reads the scale subresource. */
  async getScale(kind: Kind, ref: ObjectRef, options: CallOptions = {}): Promise<Scale> {
    const path = `${objectPath(kind, ref)}/scale`;
    return scaleOf(await this.#text({ method: 'GET', path, idempotent: true }, options));
  }

  /** Sets the replicas of the scale subresource. */
  async setScale(kind: Kind, ref: ObjectRef, replicas: number, options: WriteOptions = {}): Promise<Scale> {
    const path = this.#writePath(`${objectPath(kind, ref)}/scale`, options);
    const body = JSON.stringify({ spec: { replicas } });
    const request = {
      method: 'PATCH',
      path,
      body,
      contentType: 'application/merge-patch+json',
      idempotent: true,
    } as const;
    return scaleOf(await this.#text(request, options));
  }

  /**
   * Creates a review, which the API server answers without storing it (TokenReview, SubjectAccessReview).
   * @returns the `status` of the review
   */
  async review(
    kind: Kind,
    spec: object,
    options: CallOptions = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    const [path, body] = [collectionPath(kind, undefined), bodyOf(kind, { spec })];
    const request = { method: 'POST', path, body, contentType: JSON_TYPE, idempotent: true } as const;
    const response: unknown = JSON.parse(await this.#text(request, options));
    if (isRecord(response) && isRecord(response.status)) return response.status;
    throw new TypeError(`the server's response is not an object of ${resourceOf(kind)}`);
  }

  /** Sends a GET to a path that is not an object: `/version`, `/readyz`, discovery. */
  raw(path: string, options: CallOptions = {}): Promise<string> {
    return this.#text({ method: 'GET', path, idempotent: true }, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }

  #apply<T extends KubeObject>(
    kind: Kind<T>,
    object: object & { readonly metadata: ApplyMetadata },
    subresource: string,
    options: ApplyOptions,
  ): Promise<T> {
    const query = { fieldManager: this.fieldManager, force: options.force ?? true, dryRun: dryRun(options) };
    const path = withQuery(`${objectPath(kind, object.metadata)}${subresource}`, query);
    const contentType = 'application/apply-patch+yaml'; // the body is JSON, which is valid YAML
    const request = {
      method: 'PATCH',
      path,
      body: bodyOf(kind, object),
      contentType,
      idempotent: true,
    } as const;
    return this.#write(kind, object, request, options);
  }

  #patch<T extends KubeObject>(
    kind: Kind<T>,
    ref: ObjectRef,
    patch: object,
    contentType: string,
    options: PatchOptions,
    idempotent = true,
  ): Promise<T> {
    const subresource = options.subresource === undefined ? '' : `/${options.subresource}`;
    const path = this.#writePath(`${objectPath(kind, ref)}${subresource}`, options);
    const body = JSON.stringify(patch);
    return this.#write(kind, patch, { method: 'PATCH', path, body, contentType, idempotent }, options);
  }

  #writePath(path: string, options: WriteOptions): string {
    return withQuery(path, { fieldManager: this.fieldManager, dryRun: dryRun(options) });
  }

  #call({ signal = this.#scope?.signal, timeoutMs = this.#options.timeoutMs ?? 30_000 }: CallOptions) {
    return { signal, timeoutMs };
  }

  #text(request: RequestBase, options: CallOptions): Promise<string> {
    const assertLeader = request.method === 'GET' ? undefined : this.#assertLeader;
    return this.#requests.text({ ...request, ...this.#call(options), assertLeader });
  }

  /** @param draft the request body; its `metadata.resourceVersion`, if set, makes the write conditional */
  async #write<T extends KubeObject>(
    kind: Kind<T>,
    draft: object,
    request: RequestBase,
    options: WriteOptions,
  ): Promise<T> {
    const object = await this.#object(kind, request, options);
    if (!options.dryRun) {
      const { metadata } = object;
      const conditional = request.method === 'POST' || hasResourceVersion(draft);
      this.#scope?.onWrite({ kind, object, ref: metadata, uid: metadata.uid, conditional });
    }
    return object;
  }

  async #object<T extends KubeObject>(kind: Kind<T>, request: RequestBase, options: CallOptions): Promise<T> {
    const text = await this.#text(request, options);
    return objectOf(kind, JSON.parse(text));
  }
}

function hasResourceVersion(draft: object): boolean {
  const metadata: unknown = 'metadata' in draft ? draft.metadata : undefined;
  return isRecord(metadata) && typeof metadata.resourceVersion === 'string';
}

function dryRun(options: WriteOptions): string | undefined {
  return options.dryRun ? 'All' : undefined;
}

function bodyOf(kind: Kind, object: object): string {
  return JSON.stringify({ apiVersion: apiVersionOf(kind), kind: kind.kind, ...object });
}
