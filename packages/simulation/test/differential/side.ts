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

/** What an operation has come to, in a form that is the same on both servers. */
export type Answer = { readonly ok: unknown } | { readonly refused: unknown };

export interface Watching {
  readonly selector: string | undefined;
  readonly metadataOnly: boolean;
  /** Whether the order of different objects' events counts. */
  readonly inOrder: boolean;
}

interface Told {
  readonly type: string;
  readonly name: string;
  readonly object: unknown;
}

/** One of the two servers, as a sequence sees it. */
export class Side {
  readonly #clients: readonly [Client, Client];
  readonly #namespace: string;
  readonly #prefix: string;
  #names: Names;
  /** All objects that were seen, by name: their uids and versions. */
  readonly #seen = new Map<string, { readonly uid: string; readonly version: string }[]>();

  /** @param prefix the sequence's own, since all share a namespace */
  constructor(clients: readonly [Client, Client], namespace: string, prefix: string, exact: boolean) {
    this.#clients = clients;
    this.#namespace = namespace;
    this.#prefix = prefix;
    this.#names = new Names(prefix, exact);
  }

  async perform(operation: Operation): Promise<Answer> {
    try {
      return { ok: this.#names.shared(await this.#act(operation)) };
    } catch (error) {
      return { refused: this.#refusal(error) };
    }
  }

  /** Whether the objects are these, or have become so within so many milliseconds. What was seen meanwhile does not count. */
  async become(
    kind: KindName,
    wanted: unknown,
    patienceMs: number,
    pause: (ms: number) => Promise<void>,
  ): Promise<unknown> {
    for (let waited = 0; ; waited += 50) {
      const names = this.#names.copy();
      const found = await this.objects(kind);
      if (isDeepStrictEqual(found, wanted) || waited >= patienceMs) return found;
      this.#names = names;
      await pause(50);
    }
  }

  /** All objects of the sequence. */
  async objects(kind: KindName): Promise<unknown> {
    const { items } = await this.#clients[0].list(kindOf(kind), {
      namespace: this.#namespace,
      labelSelector: `sequence=${this.#prefix}`,
    });
    return this.#items(items);
  }

  /** In the order of their shared names: that of generated ones is different on each server. */
  #items(items: readonly KubeObject[]): unknown {
    const names = items.map(({ metadata }) => metadata.name);
    const shared = items.map((item) => JSON.stringify(this.#names.shared(item)));
    return {
      inOrder: names.every((name, index) => index === 0 || (names[index - 1] ?? '') < name),
      items: shared.sort(),
    };
  }

  /** Lets go of what finalizers would keep from being deleted with its namespace, and deletes what is in none. */
  async letGo(kinds: readonly KindName[]): Promise<void> {
    const [client] = this.#clients;
    for (const kind of kinds) {
      const options = { namespace: this.#namespace, labelSelector: this.#selector(undefined) };
      const { items } = await client.list(kindOf(kind), options);
      for (const { metadata } of items) {
        if (metadata.finalizers !== undefined)
          await client
            .mergePatch(kindOf(kind), metadata, { metadata: { finalizers: null } })
            .catch(unlessGone);
        if (kindOf(kind).scope === 'Cluster') await client.delete(kindOf(kind), metadata).catch(unlessGone);
      }
    }
  }

  async version(kind: KindName): Promise<string> {
    const page = await this.#clients[0].list(kindOf(kind), { namespace: this.#namespace, limit: 1 });
    return page.resourceVersion;
  }

  /** What a watch from this version tells, until an object made for the purpose shows up. */
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
    const told: Told[] = [];
    const options = {
      namespace: this.#namespace,
      labelSelector: this.#selector(selector),
      metadataOnly,
      timeoutSeconds: 60,
    };
    for await (const event of client.watch(kindOf(kind), { ...options, resourceVersion })) {
      if (event.type === 'BOOKMARK') continue;
      if (event.object.metadata.name === name) break;
      told.push({
        type: event.type,
        name: event.object.metadata.name,
        object: this.#names.shared(event.object),
      });
    }
    const listed: Told[] = [];
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
    const plain = (events: readonly Told[]) => events.map(({ type, object }) => ({ type, object }));
    const byObject = (events: readonly Told[]) =>
      [...Map.groupBy(events, ({ name: each }) => each).values()]
        .map((each) => JSON.stringify(plain(each)))
        .sort();
    // Steps of the garbage collector on different objects have no order, nor do objects of a list that is streamed.
    return { told: inOrder ? plain(told) : byObject(told), listed: byObject(listed) };
  }

  async #act(operation: Operation): Promise<unknown> {
    const client = this.#clients['by' in operation && operation.by === 1 ? 1 : 0];
    switch (operation.do) {
      case 'create': {
        const { ref, generate, content, dryRun } = operation;
        const metadata = this.#metadata(ref, content);
        const named = generate ? { ...metadata, name: '', generateName: `${this.#prefix}-gen-` } : metadata;
        const created = await client.create(kindOf(ref.kind), { ...content, metadata: named }, { dryRun });
        return this.#saw(created, dryRun);
      }
      case 'get':
        return this.#saw(await client.get(kindOf(operation.ref.kind), this.#ref(operation.ref)));
      case 'list':
        return this.#list(client, operation);
      case 'apply': {
        const { ref, content, force, status, dryRun } = operation;
        const identity = { ...this.#version(ref, operation.version), ...this.#uid(ref, operation.uid) };
        if (status) {
          const metadata = { ...this.#ref(ref), ...identity };
          const wanted = 'status' in content && typeof content.status === 'object' ? content.status : {};
          return this.#saw(
            await client.applyStatus(kindOf(ref.kind), metadata, wanted ?? {}, { force, dryRun }),
            dryRun,
          );
        }
        const metadata = { ...this.#metadata(ref, content), ...identity };
        return this.#saw(
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
        return this.#saw(await client.mergePatch(kindOf(ref.kind), this.#ref(ref), whole, options), dryRun);
      }
      case 'json': {
        const { ref, patch, dryRun } = operation;
        return this.#saw(await client.jsonPatch(kindOf(ref.kind), this.#ref(ref), patch, { dryRun }), dryRun);
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
        const { ref, owner, blocks, gone } = operation;
        const { uid = NO_UID } = this.#uid(owner, { back: 0 });
        const name = gone ? 'never-was' : this.#ref(owner).name;
        const reference = {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          name,
          uid: gone ? NO_UID : uid,
          ...(blocks && { blockOwnerDeletion: true }),
        };
        const patch = { metadata: { ownerReferences: [reference] } };
        return this.#saw(await client.mergePatch(kindOf(ref.kind), this.#ref(ref), patch));
      }
    }
  }

  async #list(client: Client, operation: Extract<Operation, { do: 'list' }>): Promise<unknown> {
    const { kind, selector, field, limit, metadataOnly, meanwhile } = operation;
    const options = {
      namespace: this.#namespace,
      labelSelector: this.#selector(selector),
      fieldSelector: field && `${field}${this.#prefix}-a`,
      metadataOnly,
      ...(limit !== undefined && { limit }),
      ...this.#moment(operation),
    };
    const pages = [];
    for await (const page of client.pages(kindOf(kind), options)) {
      pages.push(page);
      // What changes meanwhile does not show on the pages to come.
      if (meanwhile && pages.length === 1) await this.#touch(client, kind);
    }
    const moments = new Set(pages.map(({ resourceVersion }) => resourceVersion));
    // How many fit on a page depends on the other objects in the namespace.
    const items = pages.flatMap((page) => page.items);
    return {
      items: this.#items(items),
      oneMoment: moments.size === 1,
      within: limit === undefined || pages.every((page) => page.items.length <= limit),
    };
  }

  #moment({
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
        .catch(unlessGone);
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

  #saw(object: KubeObject, dryRun = false): KubeObject {
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

  #refusal(error: unknown): unknown {
    if (error instanceof ConnectionError || !(error instanceof ApiError)) throw error;
    const { name, code, status, reason, message, causes } = error;
    const different = distinct(causes);
    // Of several things that are wrong with an object, the server tells in any order.
    const isList = status === 422 && different.length > 1;
    const said = isList ? message.slice(0, message.indexOf('is invalid')) : message;
    const about = this.#names.shared({ message: said, causes: different });
    // The words of the library that the server patches with are nobody's promise.
    if (status === 422 && causes.length === 0) return { name, code, status, reason };
    return { name, code, status, reason, about };
  }
}

function unlessGone(error: unknown): void {
  if (!(error instanceof NotFoundError)) throw error;
}

const NO_UID = '00000000-0000-4000-8000-00000000dead';

/** The server checks some things twice, and says so as often. */
function distinct(causes: readonly object[]): readonly object[] {
  const texts = new Map(causes.map((cause) => [JSON.stringify(cause), cause]));
  return [...texts.values()].sort(byField);
}

function byField(a: { field?: string; message?: string }, b: { field?: string; message?: string }): number {
  const key = (cause: typeof a) => `${cause.field} ${cause.message}`;
  return key(a) < key(b) ? -1 : 1;
}
