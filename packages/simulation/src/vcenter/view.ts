import { type Entity, isOfType } from './entity.ts';
import type { Registry } from './registry.ts';
import type { Ref } from './xml.ts';

/** A set of objects that a filter can select. */
export interface View {
  readonly ref: Ref;
  members(): Iterable<Entity>;
  /**
   * Serial number of the change with which an object entered the view; 0 if the object entered the view when it was
   * added to the registry.
   */
  enteredAt(id: string): number;
  /**
   * Yields the objects that left the view after the change `since` and up to the change `until`. They may still exist.
   */
  removedBetween(since: number, until: number): Iterable<Ref>;
}

/** All descendants of an object that have one of the given types. */
export class ContainerView implements View {
  readonly ref: Ref;
  readonly #registry: Registry;
  readonly #container: Entity;
  readonly #types: readonly string[];

  constructor(ref: Ref, registry: Registry, container: Entity, types: readonly string[]) {
    this.ref = ref;
    this.#registry = registry;
    this.#container = container;
    this.#types = types;
  }

  *members(): Generator<Entity, void, undefined> {
    if (this.#registry.get(this.#container.ref) === undefined) return;
    for (const each of this.#container.below()) if (this.#selects(each)) yield each;
  }

  enteredAt(): number {
    return 0;
  }

  *removedBetween(since: number, until: number): Generator<Ref, void, undefined> {
    const { removed } = this.#registry;
    for (let at = removed.length - 1; at >= 0; at--) {
      const removal = removed[at];
      if (removal === undefined || removal.removedAt <= since) return;
      const { entity, removedAt } = removal;
      if (removedAt > until || !this.#selects(entity) || !this.#contains(entity)) continue;
      const moved = this.#registry.get(entity.ref);
      const isBack = moved !== undefined && moved.addedAt <= until && this.#contains(moved);
      if (!isBack) yield entity.ref;
    }
  }

  #contains(entity: Entity): boolean {
    return entity.isBelow(this.#container.ref.value);
  }

  #selects({ ref }: Entity): boolean {
    return this.#types.length === 0 || this.#types.some((type) => isOfType(ref.type, type));
  }
}

/** Objects that are added and removed explicitly. */
export class ListView implements View {
  readonly ref: Ref;
  readonly #registry: Registry;
  readonly #members = new Map<string, { readonly entity: Entity; readonly since: number }>();
  readonly #removed: { readonly ref: Ref; readonly at: number }[] = [];

  constructor(ref: Ref, registry: Registry) {
    this.ref = ref;
    this.#registry = registry;
  }

  add(entity: Entity): void {
    this.#members.set(entity.ref.value, { entity, since: this.#registry.next() });
  }

  remove(ref: Ref): void {
    if (this.#members.delete(ref.value)) this.#removed.push({ ref, at: this.#registry.next() });
  }

  *members(): Generator<Entity, void, undefined> {
    for (const { entity } of this.#members.values()) yield entity;
  }

  enteredAt(id: string): number {
    return this.#members.get(id)?.since ?? 0;
  }

  *removedBetween(since: number, until: number): Generator<Ref, void, undefined> {
    for (const { ref, at } of this.#removed)
      if (at > since && at <= until && !this.#members.has(ref.value)) yield ref;
  }
}

/** A single object. */
export class SingleView implements View {
  readonly ref: Ref;
  readonly #registry: Registry;

  constructor(ref: Ref, registry: Registry) {
    this.ref = ref;
    this.#registry = registry;
  }

  *members(): Generator<Entity, void, undefined> {
    const entity = this.#registry.get(this.ref);
    if (entity !== undefined) yield entity;
  }

  enteredAt(): number {
    return 0;
  }

  *removedBetween(since: number, until: number): Generator<Ref, void, undefined> {
    for (const { entity, removedAt } of this.#registry.removed)
      if (entity.ref.value === this.ref.value && removedAt > since && removedAt <= until) yield this.ref;
  }
}
