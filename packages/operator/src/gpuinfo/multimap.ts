/** Sets of values by key, without empty sets. */
export class Multimap<K, V> {
  readonly #sets = new Map<K, Set<V>>();

  get(key: K): ReadonlySet<V> {
    return this.#sets.get(key) ?? new Set();
  }

  add(key: K, value: V): void {
    const known = this.#sets.get(key);
    if (known === undefined) this.#sets.set(key, new Set([value]));
    else known.add(value);
  }

  delete(key: K, value: V): void {
    const known = this.#sets.get(key);
    known?.delete(value);
    if (known?.size === 0) this.#sets.delete(key);
  }
}
