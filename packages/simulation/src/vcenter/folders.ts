import type { Entity } from './entity.ts';
import { duplicateName } from './fault.ts';
import type { Cause } from './machine.ts';
import type { Registry } from './registry.ts';
import { reference, text, val } from './xml.ts';

export interface FolderChange {
  readonly id: string;
  readonly name: string;
  readonly what: 'made' | 'renamed' | 'removed' | 'marked';
  readonly cause: Cause;
}

/** Creates and removes folders, and holds the custom attributes of all objects. */
export class Folders {
  readonly #registry: Registry;
  /** Custom attribute values of each object, by object id and attribute key. */
  readonly #values = new Map<string, Map<number, string>>();
  readonly #attributes: string[] = [];
  readonly #listeners: ((change: FolderChange) => void)[] = [];

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** Creates a folder. @throws VimFault if the name is taken */
  create(parent: Entity, name: string, cause: Cause): Entity {
    const taken = parent.child(name);
    if (taken !== undefined) throw duplicateName(name, taken.ref);
    const registry = this.#registry;
    return registry.batch(() => {
      const ref = { type: 'Folder', value: registry.newId('group-v') };
      const folder: Entity = registry.add(ref, name, parent, { childEntity: () => childrenOf(folder) });
      registry.set(folder, 'name', val.string(name));
      registry.set(folder, 'parent', val.ref(parent.ref));
      this.#notify({ id: ref.value, name, what: 'made', cause });
      return folder;
    });
  }

  rename(folder: Entity, name: string, cause: Cause): void {
    folder.name = name;
    this.#registry.batch(() => this.#registry.set(folder, 'name', val.string(name)));
    this.#notify({ id: folder.ref.value, name, what: 'renamed', cause });
  }

  remove(folder: Entity, cause: Cause): void {
    this.#values.delete(folder.ref.value);
    this.#registry.batch(() => this.#registry.remove(folder));
    this.#notify({ id: folder.ref.value, name: folder.name, what: 'removed', cause });
  }

  /** Defines a custom attribute. @returns its key, or undefined if the name is taken */
  defineAttribute(name: string): number | undefined {
    if (this.#attributes.includes(name)) return undefined;
    return FIRST_KEY + this.#attributes.push(name) - 1;
  }

  /** Sets a custom attribute of an object. @returns false if no attribute has this key */
  setAttribute(entity: Entity, key: number, value: string, cause: Cause): boolean {
    if (this.#attributes[key - FIRST_KEY] === undefined) return false;
    const values = this.#values.get(entity.ref.value) ?? new Map<number, string>();
    this.#values.set(entity.ref.value, values.set(key, value));
    const all = [...values].map(
      ([each, current]) =>
        `<CustomFieldValue xsi:type="CustomFieldStringValue"><key>${each}</key><value>${text(current)}</value></CustomFieldValue>`,
    );
    this.#registry.batch(() =>
      this.#registry.set(entity, 'customValue', val.list('CustomFieldValue', all.join(''))),
    );
    this.#notify({ id: entity.ref.value, name: entity.name, what: 'marked', cause });
    return true;
  }

  /** Returns the value of a custom attribute of an object; empty if it is not set. */
  attributeOf({ ref }: Entity, attribute: string): string {
    return this.#values.get(ref.value)?.get(FIRST_KEY + this.#attributes.indexOf(attribute)) ?? '';
  }

  /** The property `field` of the CustomFieldsManager, as XML. */
  get attributes(): string {
    const all = this.#attributes.map(
      (name, index) => `<CustomFieldDef>${definition(index, name)}</CustomFieldDef>`,
    );
    return val.list('CustomFieldDef', all.join(''));
  }

  listen(listener: (change: FolderChange) => void): void {
    this.#listeners.push(listener);
  }

  #notify(change: FolderChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}

const FIRST_KEY = 101;

/** Returns the content of a CustomFieldDef. */
function definition(index: number, name: string): string {
  return `<key>${FIRST_KEY + index}</key><name>${text(name)}</name><type>string</type>`;
}

export function definitionOf(key: number, name: string): string {
  return definition(key - FIRST_KEY, name);
}

function childrenOf({ children }: Entity): string {
  const refs = [...children].map(({ ref }) => reference('ManagedObjectReference', ref));
  return val.list('ManagedObjectReference', refs.join(''));
}
