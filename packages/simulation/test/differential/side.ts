import { isDeepStrictEqual } from 'node:util';
import {
  ApiError,
  type Client,
  ConnectionError,
  type KubeObject,
  type ListOptions,
  NotFoundError,
} from '@vmwright/runtime';
import { type KindName, kindOf } from './kinds.ts';
import { Names } from './names.ts';
import type { Operation, Ref, Seen } from './operations.ts';

/** Result of an operation in a form that is comparable between the servers. */
export type Result = { readonly ok: unknown } | { readonly error: unknown };

export interface Watching {
  readonly selector: string | undefined;
  readonly metadataOnly: boolean;
  /** Whether the order of events of different objects is compared. */
  readonly inOrder: boolean;
}

interface ObservedEvent {
  readonly type: string;
  readonly name: string;
  readonly object: unknown;
}

/** Runs the operations of a sequence on the real server or on the model. */
export class Side {
  readonly #clients: readonly [Client, Client];
  readonly #namespace: string;
  readonly #prefix: string;
  #names: Names;
  /** Observed UIDs and versions by object name, oldest first. */
  readonly #seen = new Map<string, { readonly uid: string; readonly version: string }[]>();

  /** @param prefix start of all names of the sequence; differs between sequences, because they share a namespace */
  constructor(clients: readonly [Client, Client], namespace: string, prefix: string, exact: boolean) {
    this.#clients = clients;
    this.#namespace = namespace;
    this.#prefix = prefix;
    this.#names = new Names(prefix, exact);
  }

  async perform(operation: Operation): Promise<Result> {
    try {
      return { ok: this.#names.shared(await this.#act(operation)) };
    } catch (error) {
      return { error: this.#normalizedError(error) };
    }
  }

  /** Polls until the objects equal `wanted` or the timeout expires, and returns the objects of the last poll. */
  async waitForObjects(
    kind: KindName,
    wanted: unknown,
    timeoutMs: number,
    pause: (ms: number) => Promise<void>,
  ): Promise<unknown> {
    for (let waited = 0; ; waited += 50) {
      const names = this.#names.copy();
      const found = await this.objects(kind);
      if (isDeepStrictEqual(found, wanted) || waited >= timeoutMs) return found;
      this.#names = names;
      await pause(50);
    }
  }

  /** Returns all objects of the sequence. */
  async objects(kind: KindName): Promise<unknown> {
    const { items } = await this.#clients[0].list(kindOf(kind), {
      namespace: this.#namespace,
      labelSelector: `sequence=${this.#prefix}`,
    });
    return this.#items(items);
  }

  /**
   * Replaces server-specific values by aliases, and then sorts the objects. The order in the list is not comparable,
   * because the generated names of the real server and of the model differ.
   */
  #items(items: readonly KubeObject[]): unknown {
    const names = items.map(({ metadata }) => metadata.name);
    const shared = items.map((item) => JSON.stringify(this.#names.shared(item)));
    return {
      inOrder: names.every((name, index) => index === 0 || (names[index - 1] ?? '') < name),
      items: shared.sort(),
    };
  }

  /** Removes finalizers, which would block the deletion of the namespace, and deletes cluster-scoped objects. */
  async cleanUp(kinds: readonly KindName[]): Promise<void> {
    const [client] = this.#clients;
    for (const kind of kinds) {
      const options = { namespace: this.#namespace, labelSelector: this.#selector(undefined) };
      const { items } = await client.list(kindOf(kind), options);
      for (const { metadata } of items) {
        if (metadata.finalizers !== undefined)
          await client
            .mergePatch(kindOf(kind), metadata, { metadata: { finalizers: null } })
            .catch(ignoreNotFound);
        if (kindOf(kind).scope === 'Cluster')
          await client.delete(kindOf(kind), metadata).catch(ignoreNotFound);
      }
    }
  }

  async version(kind: KindName): Promise<string> {
    const page = await this.#clients[0].list(kindOf(kind), { namespace: this.#namespace, limit: 1 });
    return page.resourceVersion;
  }

  /**
   * Creates a marker object. Returns the events of a watch from a version up to the marker, and the events of a
   * streamed list.
   */
  async events(
    kind: KindName,
    resourceVersion: string,
    { selector, metadataOnly, inOrder }: Watching,
  ): Promise<unknown> {
    const [client] = this.#clients;
    const name = `${this.#prefix}-end`;
    const labels = { sequence: this.#prefix, x: '1', y: '1' };
    await client.create(kindOf(kind), {
      metadata: { ...this.#scope(kind), name, labels },
      ...(kind === 'thing' || kind === 'plain' || kind === 'global' ? { spec: {} } : {}),
    });
    const watched: ObservedEvent[] = [];
    const options = {
      namespace: this.#namespace,
      labelSelector: this.#selector(selector),
      metadataOnly,
      timeoutSeconds: 60,
    };
    for await (const event of client.watch(kindOf(kind), { ...options, resourceVersion })) {
      if (event.type === 'BOOKMARK') continue;
      if (event.object.metadata.name === name) break;
      watched.push({
        type: event.type,
        name: event.object.metadata.name,
        object: this.#names.shared(event.object),
      });
    }
    const listed: ObservedEvent[] = [];
    for await (const event of client.watch(kindOf(kind), { ...options, sendInitialEvents: true })) {
      if (event.type === 'BOOKMARK' && event.initialEventsEnd) break;
      if (event.type !== 'BOOKMARK')
        listed.push({
          type: event.type,
          name: event.object.metadata.name,
          object: this.#names.shared(event.object),
        });
    }
    await client.delete(kindOf(kind), { ...this.#scope(kind), name });
    const plain = (events: readonly ObservedEvent[]) => events.map(({ type, object }) => ({ type, object }));
    const byObject = (events: readonly ObservedEvent[]) =>
      [...Map.groupBy(events, ({ name: each }) => each).values()]
        .map((each) => JSON.stringify(plain(each)))
        .sort();
    // The order of objects is not compared in a streamed list, which has no order. It is also not compared after a
    // garbage collection (`inOrder` is false), because the garbage collector deletes objects in any order.
    return { watched: inOrder ? plain(watched) : byObject(watched), listed: byObject(listed) };
  }

  async #act(operation: Operation): Promise<unknown> {
    const client = this.#clients['by' in operation && operation.by === 1 ? 1 : 0];
    switch (operation.do) {
      case 'create': {
        const { ref, generate, content, dryRun } = operation;
        const metadata = this.#metadata(ref, content);
        const named = generate ? { ...metadata, name: '', generateName: `${this.#prefix}-gen-` } : metadata;
        const created = await client.create(kindOf(ref.kind), { ...content, metadata: named }, { dryRun });
        return this.#remember(created, dryRun);
      }
      case 'get':
        return this.#remember(await client.get(kindOf(operation.ref.kind), this.#ref(operation.ref)));
      case 'list':
        return this.#list(client, operation);
      case 'apply': {
        const { ref, content, force, status, dryRun } = operation;
        const identity = { ...this.#version(ref, operation.version), ...this.#uid(ref, operation.uid) };
        if (status) {
          const metadata = { ...this.#ref(ref), ...identity };
          const wanted = 'status' in content && typeof content.status === 'object' ? content.status : {};
          return this.#remember(
            await client.applyStatus(kindOf(ref.kind), metadata, wanted ?? {}, { force, dryRun }),
            dryRun,
          );
        }
        const metadata = { ...this.#metadata(ref, content), ...identity };
        return this.#remember(
          await client.apply(kindOf(ref.kind), { ...content, metadata }, { force, dryRun }),
          dryRun,
        );
      }
      case 'merge': {
        const { ref, patch, subresource, dryRun } = operation;
        const identity = { ...this.#version(ref, operation.version), ...this.#uid(ref, operation.uid) };
        const given = 'metadata' in patch ? patch.metadata : {};
        const whole =
          Object.keys(identity).length === 0
            ? patch
            : { ...patch, metadata: { ...(given ?? {}), ...identity } };
        const options = { dryRun, ...(subresource && { subresource }) };
        return this.#remember(
          await client.mergePatch(kindOf(ref.kind), this.#ref(ref), whole, options),
          dryRun,
        );
      }
      case 'json': {
        const { ref, patch, dryRun } = operation;
        return this.#remember(
          await client.jsonPatch(kindOf(ref.kind), this.#ref(ref), patch, { dryRun }),
          dryRun,
        );
      }
      case 'delete': {
        const { ref, propagation, dryRun } = operation;
        const { resourceVersion } = this.#version(ref, operation.version);
        const { uid } = this.#uid(ref, operation.uid);
        return client.delete(kindOf(ref.kind), this.#ref(ref), {
          dryRun,
          uid,
          resourceVersion,
          ...(propagation && { propagation }),
        });
      }
      case 'getScale':
        return client.getScale(kindOf(operation.ref.kind), this.#ref(operation.ref));
      case 'setScale': {
        const { ref, replicas, dryRun } = operation;
        return client.setScale(kindOf(ref.kind), this.#ref(ref), replicas, { dryRun });
      }
      case 'own': {
        const { ref, owner, blocks, missingOwner } = operation;
        const { uid = NO_UID } = this.#uid(owner, { back: 0 });
        const name = missingOwner ? 'never-was' : this.#ref(owner).name;
        const reference = {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          name,
          uid: missingOwner ? NO_UID : uid,
          ...(blocks && { blockOwnerDeletion: true }),
        };
        const patch = { metadata: { ownerReferences: [reference] } };
        return this.#remember(await client.mergePatch(kindOf(ref.kind), this.#ref(ref), patch));
      }
    }
  }

  async #list(client: Client, operation: Extract<Operation, { do: 'list' }>): Promise<unknown> {
    const { kind, selector, field, limit, metadataOnly, changeBetweenPages } = operation;
    const options = {
      namespace: this.#namespace,
      labelSelector: this.#selector(selector),
      fieldSelector: field && `${field}${this.#prefix}-a`,
      metadataOnly,
      ...(limit !== undefined && { limit }),
      ...this.#atVersion(operation),
    };
    const pages = [];
    for await (const page of client.pages(kindOf(kind), options)) {
      pages.push(page);
      // Later pages must not show these changes.
      if (changeBetweenPages && pages.length === 1) await this.#touch(client, kind);
    }
    const versions = new Set(pages.map(({ resourceVersion }) => resourceVersion));
    // Page boundaries are not compared: they depend on other objects in the namespace.
    const items = pages.flatMap((page) => page.items);
    return {
      items: this.#items(items),
      sameVersion: versions.size === 1,
      withinLimit: limit === undefined || pages.every((page) => page.items.length <= limit),
    };
  }

  #atVersion({
    kind,
    at,
  }: Extract<Operation, { do: 'list' }>): Pick<ListOptions, 'resourceVersion' | 'resourceVersionMatch'> {
    const { resourceVersion } = this.#version({ kind, name: 'a' }, at && { back: at.back });
    return at === undefined || resourceVersion === undefined
      ? {}
      : { resourceVersion, resourceVersionMatch: at.match };
  }

  async #touch(client: Client, kind: KindName): Promise<void> {
    for (const name of ['a', 'c'])
      await client
        .mergePatch(kindOf(kind), this.#ref({ kind, name }), {
          metadata: { annotations: { touched: 'yes' } },
        })
        .catch(ignoreNotFound);
  }

  #selector(more: string | undefined): string {
    return `sequence=${this.#prefix}${more === undefined ? '' : `,${more}`}`;
  }

  #ref({ kind, name }: Ref) {
    return { ...this.#scope(kind), name: `${this.#prefix}-${name}` };
  }

  #scope(kind: KindName): { readonly namespace?: string } {
    return kindOf(kind).scope === 'Namespaced' ? { namespace: this.#namespace } : {};
  }

  #metadata(ref: Ref, content: object) {
    const given: { labels?: object } = 'metadata' in content && content.metadata ? content.metadata : {};
    return { ...given, ...this.#ref(ref), labels: { ...given.labels, sequence: this.#prefix } };
  }

  #remember(object: KubeObject, dryRun = false): KubeObject {
    const { name, uid, resourceVersion } = object.metadata;
    if (dryRun || uid === undefined || resourceVersion === undefined) return object;
    const seen = this.#seen.get(name) ?? [];
    this.#seen.set(name, seen);
    seen.push({ uid, version: resourceVersion });
    return object;
  }

  #version(ref: Ref, which: Seen): { resourceVersion?: string } {
    const seen = which && this.#seen.get(this.#ref(ref).name)?.at(-1 - which.back);
    return seen === undefined ? {} : { resourceVersion: seen.version };
  }

  #uid(ref: Ref, which: Seen): { uid?: string } {
    const seen = which && this.#seen.get(this.#ref(ref).name)?.at(-1 - which.back);
    return seen === undefined ? {} : { uid: seen.uid };
  }

  #normalizedError(error: unknown): unknown {
    if (error instanceof ConnectionError || !(error instanceof ApiError)) throw error;
    const { name, code, status, reason, message, causes } = error;
    const different = distinct(causes);
    // The server reports several validation errors in any order.
    const isList = status === 422 && different.length > 1;
    const text = isList ? message.slice(0, message.indexOf('is invalid')) : message;
    const about = this.#names.shared({ message: text, causes: different });
    // Messages of the server's patch library are not compared, because they are not part of the API.
    if (status === 422 && causes.length === 0) return { name, code, status, reason };
    return { name, code, status, reason, about };
  }
}

function ignoreNotFound(error: unknown): void {
  if (!(error instanceof NotFoundError)) throw error;
}

const NO_UID = '00000000-0000-4000-8000-00000000dead';

/** Removes duplicates, because the server reports some errors twice. */
function distinct(causes: readonly object[]): readonly object[] {
  const texts = new Map(causes.map((cause) => [JSON.stringify(cause), cause]));
  return [...texts.values()].sort(byField);
}

function byField(a: { field?: string; message?: string }, b: { field?: string; message?: string }): number {
  const key = (cause: typeof a) => `${cause.field} ${cause.message}`;
  return key(a) < key(b) ? -1 : 1;
}
