import { setTimeout as sleep } from 'node:timers/promises';
import type { Api, KubeObject } from './api.ts';

/**
 * All objects of a kind, kept current by a watch: enough for the stand-ins, which live as long as a test cluster. Calls
 * `onChange` with each object that appeared or changed.
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
    void this.#follow();
  }

  get(uid: string): KubeObject | undefined {
    return this.#objects.get(uid);
  }

  find(is: (object: KubeObject) => boolean): KubeObject | undefined {
    return this.#objects.values().find(is);
  }

  /** Waits for a change after which `is` holds; false when the mirror was closed instead. */
  async until(is: () => boolean): Promise<boolean> {
    while (!this.#stop.signal.aborted) {
      if (is()) return true;
      await this.#changed.promise;
    }
    return false;
  }

  [Symbol.dispose](): void {
    this.#stop.abort();
    this.#changed.resolve();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.#relist();
        for await (const { type, object } of this.#api.watch(this.#path, signal)) {
          if (type === 'DELETED') this.#objects.delete(object.metadata.uid);
          else this.#set(object);
          this.#tell();
        }
      } catch {
        await sleep(200); // the API server is being restarted by a test, or the mirror is closed
      }
    }
  }

  async #relist(): Promise<void> {
    const items = await this.#api.list(this.#path);
    const present = new Set(items.map(({ metadata }) => metadata.uid));
    for (const uid of this.#objects.keys()) if (!present.has(uid)) this.#objects.delete(uid);
    for (const item of items) this.#set(item);
    this.#tell();
  }

  #set(object: KubeObject): void {
    const known = this.#objects.get(object.metadata.uid);
    if (known?.metadata.resourceVersion === object.metadata.resourceVersion) return;
    this.#objects.set(object.metadata.uid, object);
    this.#onChange(object);
  }

  #tell(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
