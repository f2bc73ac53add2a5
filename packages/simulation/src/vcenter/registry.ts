import { Entity } from './entity.ts';
import type { Ref } from './xml.ts';

/** What was there, for those who are to be told that it is not any more. */
interface Grave {
  readonly entity: Entity;
  readonly diedAt: number;
}

type Made = Readonly<Record<string, () => string>>;

/** All objects of a vCenter by reference. Each change has a number, by which collectors know what they have told. */
export class Registry {
  readonly graves: Grave[] = [];
  readonly #entities = new Map<string, Entity>();
  readonly #listeners: (() => void)[] = [];
  #serial = 0;
  #ids = 0;
  #silent = 0;
  #changed = false;

  /** The number of the last change. */
  get serial(): number {
    return this.#serial;
  }

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

  add(ref: Ref, name: string, parent?: Entity, made?: Made): Entity {
    const entity = new Entity({ ref, name, bornAt: this.next(), parent, ...(made && { made }) });
    this.#entities.set(ref.value, entity);
    return entity;
  }

  set(entity: Entity, path: string, value: string | undefined): void {
    if (entity.set(path, value, this.#serial + 1)) this.next();
  }

  remove(entity: Entity): void {
    entity.parent?.children.delete(entity);
    this.#entities.delete(entity.ref.value);
    this.graves.push({ entity, diedAt: this.next() });
  }

  /** Told after each change, or once after several that belong together. */
  listen(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Changes that are told of as one. */
  together<T>(work: () => T): T {
    this.#silent += 1;
    try {
      return work();
    } finally {
      this.#silent -= 1;
      if (this.#silent === 0 && this.#changed) {
        this.#changed = false;
        for (const tell of this.#listeners) tell();
      }
    }
  }
}
