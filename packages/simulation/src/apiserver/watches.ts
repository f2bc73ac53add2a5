import type { ServerStream, StreamedResponse } from '../world/server.ts';
import type { ServerEnvironment } from './environment.ts';
import { ApiError, errorCount, expired, UnmodelledError } from './errors.ts';
import { numberIn } from './lists.ts';
import type { Selection } from './selection.ts';
import type { Change, Store } from './store.ts';
import type { Version } from './version.ts';

/** Interval of bookmark events. */
const BOOKMARK_MS = 60_000;
/** Duration of a watch without `timeoutSeconds`. */
const DEFAULT_TIMEOUT_SECONDS = 1_800;

const INITIAL_EVENTS_END = { 'k8s.io/initial-events-end': 'true' };

interface Watcher {
  readonly selection: Selection;
  readonly stream: ServerStream;
  /** Resource version up to which changes were sent, as events or as part of the initial list. */
  sentUpTo: number;
}

/** Sends changes to watchers in the order in which they were stored. */
export class Watches {
  readonly #store: Store;
  readonly #environment: ServerEnvironment;
  readonly #showManagedFields: boolean;
  readonly #watchers = new Map<string, Set<Watcher>>();

  constructor(store: Store, environment: ServerEnvironment, showManagedFields: boolean) {
    this.#store = store;
    this.#environment = environment;
    this.#showManagedFields = showManagedFields;
    store.listen((change) => {
      for (const watcher of this.#watchers.get(change.resource.id) ?? []) this.#notify(watcher, change);
    });
  }

  /** Number of open watches. */
  get size(): number {
    return this.#watchers.values().reduce((sum, { size }) => sum + size, 0);
  }

  /** Ends all watches, as a restart of the server does. */
  endAll(): void {
    for (const watchers of this.#watchers.values()) for (const { stream } of [...watchers]) stream.end();
  }

  watch(selection: Selection, query: URLSearchParams): StreamedResponse {
    const version = query.get('resourceVersion') ?? '';
    const initial = query.get('sendInitialEvents') === 'true';
    if (initial && query.get('resourceVersionMatch') !== 'NotOlderThan')
      throw new ApiError(422, 'Invalid', 'ListOptions.meta.k8s.io "" is invalid', {});
    if (initial && version !== '') throw new UnmodelledError('a streamed list that names a resource version');
    const seconds = Number(query.get('timeoutSeconds') ?? DEFAULT_TIMEOUT_SECONDS);
    const bookmarks = query.get('allowWatchBookmarks') === 'true';
    return {
      status: 200,
      open: (stream) =>
        this.#open({ selection, stream, sentUpTo: 0 }, version, { initial, bookmarks, seconds }),
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
      watcher.sentUpTo = this.#store.number;
      for (const [, each] of this.#store.list(resource))
        if (selection.matches(each.object)) stream.send(this.#event(selection, 'ADDED', each));
      if (initial && bookmarks) stream.send(this.#bookmark(watcher, true));
    } else {
      watcher.sentUpTo = numberIn(version);
      if (watcher.sentUpTo < this.#store.compacted) {
        this.#environment.count(errorCount(410));
        const { status } = expired(
          `too old resource version: ${watcher.sentUpTo} (${this.#store.compacted})`,
        );
        stream.send(JSON.stringify({ type: 'ERROR', object: status }));
        stream.end();
        return () => undefined;
      }
      for (const change of this.#store.changesSince(resource, watcher.sentUpTo))
        this.#notify(watcher, change);
    }
    return this.#register(watcher, bookmarks, seconds);
  }

  #register(watcher: Watcher, bookmarks: boolean, seconds: number): () => void {
    const { resource } = watcher.selection;
    const watchers = this.#watchers.get(resource.id) ?? new Set();
    this.#watchers.set(resource.id, watchers.add(watcher));
    const environment = this.#environment;
    const end = environment.after(seconds * 1_000, () => watcher.stream.end());
    let next = environment.after(BOOKMARK_MS, () => undefined);
    next.cancelled = true;
    const scheduleBookmark = () => {
      next = environment.after(BOOKMARK_MS, () => {
        watcher.stream.send(this.#bookmark(watcher, false));
        scheduleBookmark();
      });
    };
    let closed = false;
    if (bookmarks) scheduleBookmark();
    return () => {
      if (closed) return;
      closed = true;
      watchers.delete(watcher);
      end.cancelled = true;
      next.cancelled = true;
    };
  }

  #notify(watcher: Watcher, { number, before, after }: Change): void {
    const { selection, stream } = watcher;
    if (number <= watcher.sentUpTo) return;
    watcher.sentUpTo = number;
    const was = before !== undefined && selection.matches(before.object);
    const is = after !== undefined && selection.matches(after.object);
    if (is) stream.send(this.#event(selection, was ? 'MODIFIED' : 'ADDED', after));
    // When an object leaves the selection, the event contains the last selected state, with the version at which it
    // left.
    else if (was) stream.send(this.#event(selection, 'DELETED', before.at(number)));
  }

  #event({ metadataOnly }: Selection, type: string, version: Version): string {
    const text = metadataOnly
      ? version.metadataText(this.#showManagedFields)
      : version.text(this.#showManagedFields);
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
