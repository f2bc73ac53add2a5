import type { ManagedObject, Ref } from '../properties/properties.ts';

/** Index functions by index name. */
export type Indexes = Readonly<Record<string, (object: ManagedObject) => string | undefined>>;

/** Objects by reference, type and index key. */
export class Store {
  readonly #objects = new Map<string, ManagedObject>();
  readonly #byType = new Map<string, Map<string, ManagedObject>>();
  readonly #indexes: Indexes;
  readonly #indexed = new Map<string, Map<string, Map<string, ManagedObject>>>();

  constructor(indexes: Indexes) {
    this.#indexes = indexes;
    for (const name of Object.keys(indexes)) this.#indexed.set(name, new Map());
  }

  get size(): number {
    return this.#objects.size;
  }

  get(ref: Ref): ManagedObject | undefined {
    return this.#objects.get(keyOf(ref));
  }

  set(object: ManagedObject): void {
    const own = keyOf(object.ref);
    this.delete(object.ref);
    this.#objects.set(own, object);
    getOrCreate(this.#byType, object.ref.type).set(own, object);
    for (const [name, find] of Object.entries(this.#indexes)) {
      const key = find(object);
      if (key !== undefined) getOrCreate(getOrCreate(this.#indexed, name), key).set(own, object);
    }
  }

  delete(ref: Ref): void {
    const own = keyOf(ref);
    const object = this.#objects.get(own);
    if (object === undefined) return;
    this.#objects.delete(own);
    this.#byType.get(ref.type)?.delete(own);
    for (const [name, find] of Object.entries(this.#indexes)) {
      const key = find(object);
      const entries = key === undefined ? undefined : this.#indexed.get(name)?.get(key);
      entries?.delete(own);
      if (key !== undefined && entries?.size === 0) this.#indexed.get(name)?.delete(key);
    }
  }

  all(): Iterable<ManagedObject> {
    return this.#objects.values();
  }

  ofType(type: string): readonly ManagedObject[] {
    return [...(this.#byType.get(type)?.values() ?? [])];
  }

  by(index: string, key: string): readonly ManagedObject[] {
    return [...(this.#indexed.get(index)?.get(key)?.values() ?? [])];
  }
}

/**
 * Returns the key of a reference. The key contains the type, because an ESXi host can use the same value for references
 * of different types.
 */
export function keyOf({ type, value }: Ref): string {
  return `${type}:${value}`;
}

function getOrCreate<K, A, B>(map: Map<K, Map<A, B>>, key: K): Map<A, B> {
  const existing = map.get(key);
  if (existing !== undefined) return existing;
  const created = new Map<A, B>();
  map.set(key, created);
  return created;
}
