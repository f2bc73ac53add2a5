import type { CallOptions, Calls, ChangeOptions } from '../calls/calls.ts';
import { NotFoundError } from '../errors.ts';
import { FaultError, nameOf } from '../faults.ts';
import { objectSpec, type Ref, retrieve } from '../properties/properties.ts';
import type { Login } from '../session/login.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';

/**
 * Custom attributes: values of one's own on any object, folders too. vCenter knows them by a key, which it gives to a
 * name once, for all. What an object has is its property `customValue`.
 */
export class Attributes {
  readonly #calls: Calls;
  readonly #keys = new Map<string, number>();

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** The key of a name, which is made known where it is not. */
  async key(name: string, options: ChangeOptions = {}): Promise<number> {
    const known = (await this.find(name, options)) ?? (await this.#add(name, options));
    this.#keys.set(name, known);
    return known;
  }

  /** The key of a name; undefined where nobody has made it known. */
  async find(name: string, options: CallOptions = {}): Promise<number | undefined> {
    const known = this.#keys.get(name) ?? (await this.#find(name, options));
    if (known !== undefined) this.#keys.set(name, known);
    return known;
  }

  async set(entity: Ref, key: number, value: string, options: ChangeOptions = {}): Promise<void> {
    const what = options.what ?? `setting a custom attribute of ${nameOf(entity)}`;
    try {
      await this.#calls.change('SetField', manager, { entity, key, value }, { ...options, what });
    } catch (error) {
      this.#keys.clear(); // somebody may have removed one
      throw error;
    }
  }

  async #add(name: string, options: ChangeOptions): Promise<number> {
    const what = options.what ?? `adding the custom attribute '${name}'`;
    try {
      const made = await this.#calls.change('AddCustomFieldDef', manager, { name }, { ...options, what });
      return made.key;
    } catch (error) {
      // Another one was faster.
      const theirs =
        error instanceof FaultError && error.code === 'DUPLICATE_NAME'
          ? await this.#find(name, options)
          : undefined;
      if (theirs === undefined) throw error;
      return theirs;
    }
  }

  #find(name: string, { signal }: CallOptions): Promise<number | undefined> {
    return this.#calls.reading(
      async (bound) => {
        const [read] = await retrieve(bound, objectSpec([manager(bound.login)], ['field']));
        const fields = read?.properties.field;
        return (Array.isArray(fields) ? fields : []).filter(isField).find((field) => field.name === name)
          ?.key;
      },
      { signal },
    );
  }
}

/** The value of a key among those that an object has. */
export function customValueOf(
  values: readonly Vim25['CustomFieldValue'][] | undefined,
  key: number,
): string | undefined {
  const found = values?.find((each) => each.key === key);
  return found !== undefined && 'value' in found && typeof found.value === 'string' ? found.value : undefined;
}

function manager({ content: { customFieldsManager } }: Login): Ref {
  if (customFieldsManager !== undefined) return customFieldsManager;
  throw new NotFoundError('this server has no custom attributes: it is no vCenter');
}

function isField(value: unknown): value is Vim25['CustomFieldDef'] {
  return typeof value === 'object' && value !== null && 'key' in value && 'name' in value;
}
