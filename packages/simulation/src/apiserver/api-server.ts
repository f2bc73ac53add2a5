import type { BufferedResponse, ModelRequest, ModelResponse, ModelServer } from '../world/server.ts';
import { BUILTIN } from './builtin.ts';
import { type DeleteOptions, Deletes, type Propagation } from './deletes.ts';
import type { ServerEnvironment } from './environment.ts';
import { ApiError, errorCount, notFound, UnmodelledError } from './errors.ts';
import { GarbageCollector } from './garbage-collector.ts';
import { isJson, type Json } from './json.ts';
import { Lists } from './lists.ts';
import type { StoredObject } from './object.ts';
import { jsonPatched, mergePatched } from './patch.ts';
import { type ApiRequest, readRequest } from './request.ts';
import {
  type AnyDeclaredKind,
  declaredResource,
  type Resource,
  type ResourceRules,
  resourceOf,
} from './resource.ts';
import { scaled, scaleOf } from './scale.ts';
import { selectionOf } from './selection.ts';
import { type Listener, Store } from './store.ts';
import type { Version } from './version.ts';
import { Watches } from './watches.ts';
import { keyOf, type Target, Writes } from './writes.ts';

export interface ApiServerOptions {
  readonly environment: ServerEnvironment;
  /** Whether responses include `metadata.managedFields`. The model tracks them in any case. @default false */
  readonly managedFields?: boolean;
}

/**
 * Model of the Kubernetes API server's HTTP API, as far as controllers use it.
 *
 * `test/differential` compares the model with a real API server: the same operations must get the same responses and
 * leave the same objects. A request that the model does not support gets 501 and ends the run through
 * `environment.unmodelled`, so that no test relies on behaviour that may differ from Kubernetes.
 *
 * Not modelled, answered with 501:
 * - PUT, strategic merge patches, deletecollection
 * - subresources other than status and scale
 * - versions other than the storage version of a kind
 * - rare kinds of invalid names and labels
 * - applies of undeclared fields or wrong types
 *
 * CEL rules are not evaluated. `serve` throws for a kind that has them, unless the caller passes a function with the
 * same checks.
 *
 * Silently not modelled:
 * - Namespace objects (every namespace exists), authentication, RBAC and webhooks
 * - size limits, quotas and `remainingItemCount`
 * - more than ten updating managers, validation ratcheting, collisions of generated names
 * - TTL and validation of Events
 * - the owner of the replicas field after a write to scale (the real server keeps one of two managers of the same name)
 *
 * Resource versions increase by one. Bookmarks are sent every minute. All history since the last compaction is kept.
 */
export class ApiServer implements ModelServer {
  readonly #environment: ServerEnvironment;
  readonly #showManagedFields: boolean;
  readonly #resources = new Map<string, Resource>();
  readonly #store = new Store();
  readonly #writes: Writes;
  readonly #deletes: Deletes;
  readonly #lists: Lists;
  readonly #watches: Watches;

  constructor({ environment, managedFields = false }: ApiServerOptions) {
    this.#environment = environment;
    this.#showManagedFields = managedFields;
    const store = this.#store;
    store.listen(({ resource, key, number, before, after }) => {
      const what = after === undefined ? 'deleted' : before === undefined ? 'created' : 'changed';
      environment.note(`${resource.kind.kind} ${key} ${what} @${number}`);
    });
    this.#writes = new Writes(store, environment);
    this.#deletes = new Deletes(store, environment);
    this.#lists = new Lists(store, managedFields);
    this.#watches = new Watches(store, environment, managedFields);
    new GarbageCollector(store, this.#writes, environment, () => this.#resources.values());
    for (const rules of BUILTIN) this.serveResource(rules);
  }

  /** Serves a kind as its CRD declares it. @param check the kind's CEL rules as a TypeScript function */
  serve(kind: AnyDeclaredKind, check?: ResourceRules['check']): void {
    this.serveResource(declaredResource(kind, check));
  }

  serveResource(rules: ResourceRules): void {
    const resource = resourceOf(rules);
    this.#resources.set(resource.id, resource);
  }

  /** Drops the history. Watches from older versions and lists with an older continue token then get 410. */
  compact(): void {
    this.#store.compact();
  }

  /**
   * Simulates the restore of a backup for one kind: removes the objects of this kind that are not in the backup, and
   * ends the watches of all kinds.
   * @param backup UIDs of the objects in the backup
   * @returns the keys of the removed objects
   */
  restore(
    kind: { readonly group: string; readonly plural: string },
    backup: ReadonlySet<string>,
  ): readonly string[] {
    const resource = this.#resources.get(`${kind.group}/${kind.plural}`);
    if (resource === undefined) return [];
    const lost = [...this.#store.list(resource)]
      .filter(([, { object }]) => !backup.has(object.metadata.uid ?? ''))
      .map(([key]) => key);
    this.#store.removeSilently(resource, lost);
    this.#watches.endAll();
    return lost;
  }

  /** Returns all stored objects of a kind. */
  *objects(kind: {
    readonly group: string;
    readonly plural: string;
  }): Generator<StoredObject, void, undefined> {
    const resource = this.#resources.get(`${kind.group}/${kind.plural}`);
    if (resource !== undefined) for (const [, { object }] of this.#store.list(resource)) yield object;
  }

  /** Registers a listener that is called synchronously for each change, in order. */
  listen(listener: Listener): void {
    this.#store.listen(listener);
  }

  /** The newest resource version. It grows with every write. */
  get resourceVersion(): number {
    return this.#store.number;
  }

  get watchers(): number {
    return this.#watches.size;
  }

  receive(arrived: ModelRequest): ModelResponse {
    try {
      return this.#respond(readRequest(arrived));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#environment.count(errorCount(error.code));
      if (error instanceof UnmodelledError)
        this.#environment.unmodelled(`${arrived.method} ${arrived.path}: ${error.message}`);
      return error.response;
    }
  }

  reject(status: 429 | 500, retryAfterSeconds = 1): BufferedResponse {
    if (status === 500)
      return new ApiError(500, 'InternalError', 'Internal error occurred: simulated').response;
    const message = 'the server has received too many requests and has asked us to try again later';
    return new ApiError(429, 'TooManyRequests', message, { retryAfterSeconds }).response;
  }

  #respond(request: ApiRequest): ModelResponse {
    const resource = this.#resourceOf(request);
    const { method, metadataOnly } = request;
    const { name, namespace, query, subresource } = request.parsedPath;
    if (name === undefined) {
      if (method === 'POST') return this.#created(resource, request);
      if (method !== 'GET') throw new UnmodelledError(`${method} of a whole kind`);
      const selection = selectionOf(resource, namespace, query, metadataOnly);
      const isWatch = query.get('watch') === 'true';
      return isWatch ? this.#watches.watch(selection, query) : this.#lists.list(selection, query);
    }
    if (subresource === 'scale') return this.#scale(resource, name, request);
    if (subresource === 'status' ? !resource.status : subresource !== '')
      throw new UnmodelledError(`the subresource ${subresource} of ${resource.id}`);
    switch (method) {
      case 'GET':
        return this.#found(this.#get(resource, namespace, name), metadataOnly);
      case 'PATCH':
        return this.#patched(resource, name, request);
      case 'DELETE':
        return this.#deleted(resource, name, request);
      default:
        throw new UnmodelledError(`${method} of an object`);
    }
  }

  #resourceOf({ parsedPath: { group, version, plural, namespace, name } }: ApiRequest): Resource {
    const resource = this.#resources.get(`${group}/${plural}`);
    if (resource === undefined || resource.kind.version !== version)
      throw new UnmodelledError(`${plural} of ${group}/${version}: register it with serve()`);
    const isNamespaced = resource.kind.scope === 'Namespaced';
    if (isNamespaced && name !== undefined && namespace === undefined)
      throw new UnmodelledError(`an object of ${plural} without a namespace`);
    return resource;
  }

  #get(resource: Resource, namespace: string | undefined, name: string): Version {
    const version = this.#store.get(resource, keyOf(namespace, name));
    if (version === undefined) throw notFound(resource.kind, name);
    return version;
  }

  #found(version: Version, metadataOnly: boolean): BufferedResponse {
    return {
      status: 200,
      body: metadataOnly
        ? version.metadataText(this.#showManagedFields)
        : version.text(this.#showManagedFields),
    };
  }

  #created(resource: Resource, { parsedPath: { namespace, query }, body }: ApiRequest): BufferedResponse {
    if (resource.kind.scope === 'Namespaced' && namespace === undefined)
      throw new UnmodelledError('a create without a namespace');
    const target = { resource, namespace, manager: managerIn(query), dryRun: isDryRun(query) };
    const { version } = this.#writes.create(target, parsed(body));
    return { status: 201, body: version.text(this.#showManagedFields) };
  }

  #patched(resource: Resource, name: string, request: ApiRequest): BufferedResponse {
    const { contentType, body } = request;
    const { namespace, query, subresource } = request.parsedPath;
    const target: Target = {
      resource,
      namespace,
      name,
      subresource: subresource === 'status' ? 'status' : '',
      manager: managerIn(query),
      dryRun: isDryRun(query),
    };
    const patch = parsed(body);
    const written =
      contentType === 'application/apply-patch+yaml'
        ? this.#writes.apply(target, patch, query.get('force') === 'true')
        : this.#writes.update(target, (current) => patchedBy(contentType, current, patch));
    return { status: written.created ? 201 : 200, body: written.version.text(this.#showManagedFields) };
  }

  #deleted(
    resource: Resource,
    name: string,
    { parsedPath: { namespace }, body }: ApiRequest,
  ): BufferedResponse {
    const outcome = this.#deletes.delete(resource, namespace, name, deleteOptions(parsed(body ?? '{}')));
    if ('held' in outcome) return { status: 200, body: outcome.held.text(this.#showManagedFields) };
    const { group, plural } = resource.kind;
    const details = { name, ...(group !== '' && { group }), kind: plural, uid: outcome.uid };
    const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
    return { status: 200, body: JSON.stringify(status) };
  }

  #scale(resource: Resource, name: string, request: ApiRequest): BufferedResponse {
    const { method, contentType, body } = request;
    const { namespace, query } = request.parsedPath;
    const paths = resource.scale;
    if (paths === undefined) throw new UnmodelledError(`the scale of ${resource.id}`);
    const respond = ({ object }: Version) => ({ status: 200, body: JSON.stringify(scaleOf(object, paths)) });
    const current = this.#get(resource, namespace, name);
    if (method === 'GET') return respond(current);
    if (method !== 'PATCH') throw new UnmodelledError(`${method} of a scale`);
    const changed = patchedBy(contentType, scaleOf(current.object, paths), parsed(body));
    const manager = managerIn(query);
    const target: Target = { resource, namespace, name, subresource: '', manager, dryRun: isDryRun(query) };
    return respond(this.#writes.update(target, (object) => scaled(object, changed, paths)).version);
  }
}

function patchedBy(contentType: string, current: Json, patch: unknown): unknown {
  if (contentType === 'application/merge-patch+json') return mergePatched(current, patch);
  if (contentType === 'application/json-patch+json') return jsonPatched(current, patch);
  throw new UnmodelledError(`patches of type ${contentType}`);
}

function managerIn(query: URLSearchParams): string {
  return query.get('fieldManager') ?? 'unknown';
}

function isDryRun(query: URLSearchParams): boolean {
  return query.get('dryRun') === 'All';
}

function parsed(body: string | undefined): unknown {
  return JSON.parse(body ?? 'null');
}

function deleteOptions(body: unknown): DeleteOptions {
  const { preconditions, propagationPolicy, dryRun } = isJson(body) ? body : {};
  const { uid, resourceVersion } = isJson(preconditions) ? preconditions : {};
  return {
    uid: typeof uid === 'string' ? uid : undefined,
    resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : undefined,
    propagation: isPropagation(propagationPolicy) ? propagationPolicy : undefined,
    dryRun: Array.isArray(dryRun) && dryRun.includes('All'),
  };
}

function isPropagation(value: unknown): value is Propagation {
  return value === 'Background' || value === 'Foreground' || value === 'Orphan';
}
