import type { CacheEvent } from '@vmwright/runtime';
import { type Reported, reportedIn } from './reported.ts';
import { byAge, type Request, requestOf } from './request.ts';
import type { GPUInfo } from './resource.ts';

/** Requests of all GPUInfos, oldest first. Follows the cache of GPUInfos. */
export class Requests {
  /** Requests by key of the GPUInfo, with their JSON to detect changes. */
  readonly #requests = new Map<string, { readonly request: Request; readonly text: string }>();
  readonly #reported = new Map<string, Reported>();
  #sorted: readonly Request[] | undefined;
  #version = 0;

  /** Increases with every change of a request. Changes of a status do not count. */
  get version(): number {
    return this.#version;
  }

  get all(): readonly Request[] {
    this.#sorted ??= [...this.#requests.values()].map(({ request }) => request).toSorted(byAge);
    return this.#sorted;
  }

  /** Reservations that the statuses show, by UID of the GPUInfo. */
  get reported(): ReadonlyMap<string, Reported> {
    return this.#reported;
  }

  /** Updates the requests after a change of a GPUInfo. */
  update({ type, key, object }: Pick<CacheEvent<GPUInfo>, 'type' | 'key' | 'object'>): void {
    this.#updateReported(key, object, type === 'removed');
    if (type === 'removed') {
      if (!this.#requests.delete(key)) return;
    } else {
      const request = requestOf(object);
      const text = JSON.stringify(request);
      if (this.#requests.get(key)?.text === text) return;
      this.#requests.set(key, { request, text });
    }
    this.#sorted = undefined;
    this.#version++;
  }

  #updateReported(key: string, info: GPUInfo, isGone: boolean): void {
    const { uid = '' } = info.metadata;
    const before = this.#requests.get(key)?.request.uid;
    if (before !== undefined && before !== uid) this.#reported.delete(before); // the object was created again under the same name
    const reported = isGone ? undefined : reportedIn(info);
    if (reported === undefined) this.#reported.delete(uid);
    else this.#reported.set(uid, reported);
  }
}
