import type { ServerStream, StreamedAnswer } from '../world/server.ts';
import type { ServerEnvironment } from './environment.ts';
import { numberIn } from './lists.ts';
import { expired, Refusal, said, Unmodelled } from './refusal.ts';
import type { Selection } from './selection.ts';
import type { Change, Store } from './store.ts';
import type { Version } from './version.ts';

/** How often a quiet watch hears how far it is. */
const BOOKMARK_MS = 60_000;
/** When the server ends a watch that has not said for how long it wants to. */
const LONGEST_SECONDS = 1_800;

const INITIAL_EVENTS_END = { 'k8s.io/initial-events-end': 'true' };

interface Watcher {
  readonly selection: Selection;
  readonly stream: ServerStream;
  /** Changes up to here are told already, or were part of the list. */
  told: number;
}

/** Tells watchers of changes, in the order in which they were stored. */
export class Watches {
  readonly #store: Store;
  readonly #environment: ServerEnvironment;
  readonly #shown: boolean;
  readonly #watchers = new Map<string, Set<Watcher>>();

  constructor(store: Store, environment: ServerEnvironment, managedFieldsShown: boolean) {
    this.#store = store;
    this.#environment = environment;
    this.#shown = managedFieldsShown;
    store.listen((change) => {
      for (const watcher of this.#watchers.get(change.resource.id) ?? []) this.#tell(watcher, change);
    });
  }

  /** How many watch. */
  get size(): number {
    return this.#watchers.values().reduce((sum, { size }) => sum + size, 0);
  }

  /** Ends all, as a restart of the server does. */
  endAll(): void {
    for (const watchers of this.#watchers.values()) for (const { stream } of [...watchers]) stream.end();
  }

  watch(selection: Selection, query: URLSearchParams): StreamedAnswer {
    const version = query.get('resourceVersion') ?? '';
    const initial = query.get('sendInitialEvents') === 'true';
    if (initial && query.get('resourceVersionMatch') !== 'NotOlderThan')
      throw new Refusal(422, 'Invalid', 'ListOptions.meta.k8s.io "" is invalid', {});
    if (initial && version !== '') throw new Unmodelled('a streamed list that names a resource version');
    const seconds = Number(query.get('timeoutSeconds') ?? LONGEST_SECONDS);
    const bookmarks = query.get('allowWatchBookmarks') === 'true';
    return {
      status: 200,
      open: (stream) => this.#open({ selection, stream, told: 0 }, version, { initial, bookmarks, seconds }),
    };
  }

  #open(
    watcher: Watcher,
    version: string,
    { initial, bookmarks, seconds }: { initial: boolean; bookmarks: boolean; seconds: number },
  ): () => void {
    const { stream, selection } = watcher;
    const { resource } = selection;
    if (version === '' || version === '0') {
      watcher.told = this.#store.number;
      for (const [, each] of this.#store.list(resource))
        if (selection.matches(each.object)) stream.send(this.#event(selection, 'ADDED', each));
      if (initial && bookmarks) stream.send(this.#bookmark(watcher, true));
    } else {
      watcher.told = numberIn(version);
      if (watcher.told < this.#store.compacted) {
        this.#environment.count(said(410));
        const { status } = expired(`too old resource version: ${watcher.told} (${this.#store.compacted})`);
        stream.send(JSON.stringify({ type: 'ERROR', object: status }));
        stream.end();
        return () => undefined;
      }
      for (const change of this.#store.changesSince(resource, watcher.told)) this.#tell(watcher, change);
    }
    return this.#keep(watcher, bookmarks, seconds);
  }

  #keep(watcher: Watcher, bookmarks: boolean, seconds: number): () => void {
    const { resource } = watcher.selection;
    const watchers = this.#watchers.get(resource.id) ?? new Set();
    this.#watchers.set(resource.id, watchers.add(watcher));
    const environment = this.#environment;
    const end = environment.after(seconds * 1_000, () => watcher.stream.end());
    let next = environment.after(BOOKMARK_MS, () => undefined);
    next.cancelled = true;
    const remind = () => {
      next = environment.after(BOOKMARK_MS, () => {
        watcher.stream.send(this.#bookmark(watcher, false));
        remind();
      });
    };
    let closed = false;
    if (bookmarks) remind();
    return () => {
      if (closed) return;
      closed = true;
      watchers.delete(watcher);
      end.cancelled = true;
      next.cancelled = true;
    };
  }

  #tell(watcher: Watcher, { number, before, after }: Change): void {
    const { selection, stream } = watcher;
    if (number <= watcher.told) return;
    watcher.told = number;
    const was = before !== undefined && selection.matches(before.object);
    const is = after !== undefined && selection.matches(after.object);
    if (is) stream.send(this.#event(selection, was ? 'MODIFIED' : 'ADDED', after));
    // What leaves the selection is told as it last was in it, under the version at which it left.
    else if (was) stream.send(this.#event(selection, 'DELETED', before.at(number)));
  }

  #event({ metadataOnly }: Selection, type: string, version: Version): string {
    const text = metadataOnly ? version.metadataText(this.#shown) : version.text(this.#shown);
    return `{"type":"${type}","object":${text}}`;
  }

  #bookmark({ selection: { resource } }: Watcher, isEnd: boolean): string {
    const metadata = {
      resourceVersion: String(this.#store.number),
      ...(isEnd && { annotations: INITIAL_EVENTS_END }),
    };
    const object = { kind: resource.kind.kind, apiVersion: resource.apiVersion, metadata };
    return JSON.stringify({ type: 'BOOKMARK', object });
  }
}
