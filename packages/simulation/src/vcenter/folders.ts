import type { Entity } from './entity.ts';
import { duplicateName } from './fault.ts';
import type { Cause } from './machine.ts';
import type { Registry } from './registry.ts';
import { reference, text, val } from './xml.ts';

export interface FolderChange {
  readonly id: string;
  readonly name: string;
  readonly what: 'made' | 'removed' | 'marked';
  readonly cause: Cause;
}

/** Folders, and the attributes that anything can be marked with. */
export class Folders {
  readonly #registry: Registry;
  /** What is marked: by object, the values by the attributes' keys. */
  readonly #marks = new Map<string, Map<number, string>>();
  readonly #attributes: string[] = [];
  readonly #listeners: ((change: FolderChange) => void)[] = [];

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** @throws VimFault */
  make(parent: Entity, name: string, cause: Cause): Entity {
    const taken = parent.child(name);
    if (taken !== undefined) throw duplicateName(name, taken.ref);
    const registry = this.#registry;
    return registry.together(() => {
      const ref = { type: 'Folder', value: registry.newId('group-v') };
      const folder: Entity = registry.add(ref, name, parent, { childEntity: () => childrenOf(folder) });
      registry.set(folder, 'name', val.string(name));
      registry.set(folder, 'parent', val.ref(parent.ref));
      this.#tell({ id: ref.value, name, what: 'made', cause });
      return folder;
    });
  }

  remove(folder: Entity, cause: Cause): void {
    this.#marks.delete(folder.ref.value);
    this.#registry.together(() => this.#registry.remove(folder));
    this.#tell({ id: folder.ref.value, name: folder.name, what: 'removed', cause });
  }

  /** The key of an attribute that is new. @returns undefined where there is one */
  define(name: string): number | undefined {
    if (this.#attributes.includes(name)) return undefined;
    return FIRST_KEY + this.#attributes.push(name) - 1;
  }

  /** @returns false for a key that is none's */
  mark(entity: Entity, key: number, value: string, cause: Cause): boolean {
    if (this.#attributes[key - FIRST_KEY] === undefined) return false;
    const marks = this.#marks.get(entity.ref.value) ?? new Map<number, string>();
    this.#marks.set(entity.ref.value, marks.set(key, value));
    const all = [...marks].map(
      ([each, said]) =>
        `<CustomFieldValue xsi:type="CustomFieldStringValue"><key>${each}</key><value>${text(said)}</value></CustomFieldValue>`,
    );
    this.#registry.together(() =>
      this.#registry.set(entity, 'customValue', val.list('CustomFieldValue', all.join(''))),
    );
    this.#tell({ id: entity.ref.value, name: entity.name, what: 'marked', cause });
    return true;
  }

  /** What an object is marked with. */
  markOf({ ref }: Entity, attribute: string): string {
    return this.#marks.get(ref.value)?.get(FIRST_KEY + this.#attributes.indexOf(attribute)) ?? '';
  }

  /** The property `field` of vCenter's CustomFieldsManager. */
  get attributes(): string {
    const all = this.#attributes.map(
      (name, index) => `<CustomFieldDef>${definition(index, name)}</CustomFieldDef>`,
    );
    return val.list('CustomFieldDef', all.join(''));
  }

  listen(listener: (change: FolderChange) => void): void {
    this.#listeners.push(listener);
  }

  #tell(change: FolderChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}

const FIRST_KEY = 101;

/** A CustomFieldDef without its tag. */
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
