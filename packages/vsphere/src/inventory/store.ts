import type { KnownObject, Ref } from '../properties/properties.ts';

export type Indexes = Readonly<Record<string, (object: KnownObject) => string | undefined>>;

/** Objects by reference, and by what indexes make of them. */
export class Store {
  readonly #objects = new Map<string, KnownObject>();
  readonly #byType = new Map<string, Map<string, KnownObject>>();
  readonly #indexes: Indexes;
  readonly #found = new Map<string, Map<string, Map<string, KnownObject>>>();

  constructor(indexes: Indexes) {
    this.#indexes = indexes;
    for (const name of Object.keys(indexes)) this.#found.set(name, new Map());
  }

  get size(): number {
    return this.#objects.size;
  }

  get(ref: Ref): KnownObject | undefined {
    return this.#objects.get(keyOf(ref));
  }

  set(object: KnownObject): void {
    const own = keyOf(object.ref);
    this.delete(object.ref);
    this.#objects.set(own, object);
    within(this.#byType, object.ref.type).set(own, object);
    for (const [name, find] of Object.entries(this.#indexes)) {
      const key = find(object);
      if (key !== undefined) within(within(this.#found, name), key).set(own, object);
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
      const entries = key === undefined ? undefined : this.#found.get(name)?.get(key);
      entries?.delete(own);
      if (key !== undefined && entries?.size === 0) this.#found.get(name)?.delete(key);
    }
  }

  all(): Iterable<KnownObject> {
    return this.#objects.values();
  }

  ofType(type: string): readonly KnownObject[] {
    return [...(this.#byType.get(type)?.values() ?? [])];
  }

  by(index: string, key: string): readonly KnownObject[] {
    return [...(this.#found.get(index)?.get(key)?.values() ?? [])];
  }
}

/** Of one type values are unique; of all, on an ESXi host, they are not. */
export function keyOf({ type, value }: Ref): string {
  return `${type}:${value}`;
}

function within<K, A, B>(map: Map<K, Map<A, B>>, key: K): Map<A, B> {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = new Map<A, B>();
  map.set(key, made);
  return made;
}
