import type { Ref } from './xml.ts';

/** A managed object with its properties as XML, and the serial number of each property's last change. */
export class Entity {
  readonly ref: Ref;
  /** Serial of the change that added the object. */
  readonly addedAt: number;
  readonly parent: Entity | undefined;
  readonly children = new Set<Entity>();
  name: string;
  /** Properties computed on each read. Their changes are not reported to collectors. */
  readonly #computed: Readonly<Record<string, () => string>>;
  readonly #values = new Map<string, string>();
  readonly #changedAt = new Map<string, number>();
  /** Serial of the last change. */
  lastChangeAt: number;

  constructor(options: {
    readonly ref: Ref;
    readonly name: string;
    readonly addedAt: number;
    readonly parent?: Entity | undefined;
    readonly computed?: Readonly<Record<string, () => string>>;
  }) {
    const { ref, name, addedAt, parent, computed = {} } = options;
    this.ref = ref;
    this.name = name;
    this.addedAt = addedAt;
    this.lastChangeAt = addedAt;
    this.parent = parent;
    this.#computed = computed;
    parent?.children.add(this);
  }

  value(path: string): string | undefined {
    return this.#values.get(path) ?? this.#computed[path]?.();
  }

  changedAt(path: string): number {
    return this.#changedAt.get(path) ?? 0;
  }

  /** Sets a property, or unsets it if `value` is undefined. @returns whether it changed */
  set(path: string, value: string | undefined, at: number): boolean {
    if (this.#values.get(path) === value) return false;
    if (value === undefined) this.#values.delete(path);
    else this.#values.set(path, value);
    this.#changedAt.set(path, at);
    this.lastChangeAt = at;
    return true;
  }

  child(name: string): Entity | undefined {
    for (const each of this.children) if (each.name === name) return each;
    return undefined;
  }

  /** Yields all descendants. */
  *below(): Generator<Entity, void, undefined> {
    for (const each of this.children) {
      yield each;
      yield* each.below();
    }
  }

  isBelow(ancestor: string): boolean {
    for (let at = this.parent; at !== undefined; at = at.parent) if (at.ref.value === ancestor) return true;
    return false;
  }
}

/** Whether `type` is `wanted` or a subtype of it. */
export function isOfType(type: string, wanted: string): boolean {
  if (type === wanted || wanted === 'ManagedEntity') return true;
  return wanted === 'ComputeResource' && type === 'ClusterComputeResource';
}
