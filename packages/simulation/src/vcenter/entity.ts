import type { Ref } from './xml.ts';

/** Something that vCenter has, with its properties as they are answered, and since when each is as it is. */
export class Entity {
  readonly ref: Ref;
  /** The change with which it came. */
  readonly bornAt: number;
  readonly parent: Entity | undefined;
  readonly children = new Set<Entity>();
  name: string;
  /** Properties that are made when they are asked for, and of whose changes nobody is told. */
  readonly #made: Readonly<Record<string, () => string>>;
  readonly #values = new Map<string, string>();
  readonly #changedAt = new Map<string, number>();
  lastAt: number;

  constructor(options: {
    readonly ref: Ref;
    readonly name: string;
    readonly bornAt: number;
    readonly parent?: Entity | undefined;
    readonly made?: Readonly<Record<string, () => string>>;
  }) {
    const { ref, name, bornAt, parent, made = {} } = options;
    this.ref = ref;
    this.name = name;
    this.bornAt = bornAt;
    this.lastAt = bornAt;
    this.parent = parent;
    this.#made = made;
    parent?.children.add(this);
  }

  value(path: string): string | undefined {
    return this.#values.get(path) ?? this.#made[path]?.();
  }

  changedAt(path: string): number {
    return this.#changedAt.get(path) ?? 0;
  }

  /** @param value undefined for a property that is unset. @returns whether it differs */
  set(path: string, value: string | undefined, at: number): boolean {
    if (this.#values.get(path) === value) return false;
    if (value === undefined) this.#values.delete(path);
    else this.#values.set(path, value);
    this.#changedAt.set(path, at);
    this.lastAt = at;
    return true;
  }

  child(name: string): Entity | undefined {
    for (const each of this.children) if (each.name === name) return each;
    return undefined;
  }

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

/** Whether one of this type is looked for by that. */
export function isOfType(type: string, wanted: string): boolean {
  if (type === wanted || wanted === 'ManagedEntity') return true;
  return wanted === 'ComputeResource' && type === 'ClusterComputeResource';
}
