import { setTimeout as sleep } from 'node:timers/promises';
import type { Api, KubeObject } from './api.ts';

/**
 * Simple informer with a cache of all objects of a kind. Calls `onChange` for each added or changed object. The
 * stand-ins for CDI, the CSI driver and the snapshot controller use it.
 */
export class Mirror implements Disposable {
  readonly #api: Api;
  readonly #path: string;
  readonly #onChange: (object: KubeObject) => void;
  readonly #objects = new Map<string, KubeObject>();
  readonly #stop = new AbortController();
  #changed = Promise.withResolvers<void>();

  constructor(api: Api, path: string, onChange: (object: KubeObject) => void = () => undefined) {
    this.#api = api;
    this.#path = path;
    this.#onChange = onChange;
    void this.#run();
  }

  get(uid: string): KubeObject | undefined {
    return this.#objects.get(uid);
  }

  find(predicate: (object: KubeObject) => boolean): KubeObject | undefined {
    return this.#objects.values().find(predicate);
  }

  get disposed(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Returns a promise that resolves when any object changes, or when the mirror is disposed. */
  nextChange(): Promise<void> {
    return this.#changed.promise;
  }

  /** Waits until `predicate` holds, checking it on each change. Returns false if the mirror is disposed first. */
  async until(predicate: () => boolean): Promise<boolean> {
    while (!this.#stop.signal.aborted) {
      if (predicate()) return true;
      await this.#changed.promise;
    }
    return false;
  }

  [Symbol.dispose](): void {
    this.#stop.abort();
    this.#changed.resolve();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.#relist();
        for await (const { type, object } of this.#api.watch(this.#path, signal)) {
          if (type === 'DELETED') this.#objects.delete(object.metadata.uid);
          else this.#set(object);
          this.#notify();
        }
      } catch {
        await sleep(200); // a test restarted the API server, or the mirror was disposed of
      }
    }
  }

  async #relist(): Promise<void> {
    const items = await this.#api.list(this.#path);
    const present = new Set(items.map(({ metadata }) => metadata.uid));
    for (const uid of this.#objects.keys()) if (!present.has(uid)) this.#objects.delete(uid);
    for (const item of items) this.#set(item);
    this.#notify();
  }

  #set(object: KubeObject): void {
    const known = this.#objects.get(object.metadata.uid);
    if (known?.metadata.resourceVersion === object.metadata.resourceVersion) return;
    this.#objects.set(object.metadata.uid, object);
    this.#onChange(object);
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
