import { Entity } from './entity.ts';
import type { Ref } from './xml.ts';

/** A removed object. It is kept so that views can report that it left. */
interface RemovedEntity {
  readonly entity: Entity;
  readonly removedAt: number;
}

type ComputedProperties = Readonly<Record<string, () => string>>;

/**
 * All managed objects by reference. Each change has a serial number, by which collectors track which changes they have
 * sent.
 */
export class Registry {
  readonly removed: RemovedEntity[] = [];
  readonly #entities = new Map<string, Entity>();
  readonly #listeners: (() => void)[] = [];
  #serial = 0;
  #ids = 0;
  /** Nesting depth of `batch`. */
  #depth = 0;
  #changed = false;

  /** Serial number of the last change. */
  get serial(): number {
    return this.#serial;
  }

  /** Starts a change and returns its serial number. */
  next(): number {
    this.#serial += 1;
    this.#changed = true;
    return this.#serial;
  }

  newId(prefix: string): string {
    this.#ids += 1;
    return `${prefix}-${this.#ids}`;
  }

  get({ value }: Ref): Entity | undefined {
    return this.#entities.get(value);
  }

  add(ref: Ref, name: string, parent?: Entity, computed?: ComputedProperties): Entity {
    const entity = new Entity({ ref, name, addedAt: this.next(), parent, ...(computed && { computed }) });
    this.#entities.set(ref.value, entity);
    return entity;
  }

  set(entity: Entity, path: string, value: string | undefined): void {
    if (entity.set(path, value, this.#serial + 1)) this.next();
  }

  remove(entity: Entity): void {
    entity.parent?.children.delete(entity);
    this.#entities.delete(entity.ref.value);
    this.removed.push({ entity, removedAt: this.next() });
  }

  /** Registers a listener that is called once after each batch of changes. */
  listen(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Runs several changes as one batch, and notifies the listeners once at its end. */
  batch<T>(work: () => T): T {
    this.#depth += 1;
    try {
      return work();
    } finally {
      this.#depth -= 1;
      if (this.#depth === 0 && this.#changed) {
        this.#changed = false;
        for (const listener of this.#listeners) listener();
      }
    }
  }
}
