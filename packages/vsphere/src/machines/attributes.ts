import { NotFoundError } from '../errors.ts';
import { FaultError, nameOf } from '../faults.ts';
import { objectSpec, type Ref, retrieve } from '../properties/properties.ts';
import type { Login } from '../session/login.ts';
import type { CallOptions, ChangeOptions, SessionClient } from '../session/session-client.ts';
import type { Vim25 } from '../vim25/vim25.generated.ts';

/**
 * Custom attributes: named values on any object, including folders. vCenter assigns each attribute name a key, which is
 * the same for all objects. The property `customValue` has the values of an object.
 */
export class Attributes {
  readonly #calls: SessionClient;
  readonly #keys = new Map<string, number>();

  constructor(calls: SessionClient) {
    this.#calls = calls;
  }

  /** Returns the key of an attribute; defines the attribute when it does not exist. */
  async ensureKey(name: string, options: ChangeOptions = {}): Promise<number> {
    const known = (await this.findKey(name, options)) ?? (await this.#add(name, options));
    this.#keys.set(name, known);
    return known;
  }

  /** Returns the key of an attribute, or undefined when it is not defined. */
  async findKey(name: string, options: CallOptions = {}): Promise<number | undefined> {
    const known = this.#keys.get(name) ?? (await this.#readKey(name, options));
    if (known !== undefined) this.#keys.set(name, known);
    return known;
  }

  async set(entity: Ref, key: number, value: string, options: ChangeOptions = {}): Promise<void> {
    const description = options.description ?? `setting a custom attribute of ${nameOf(entity)}`;
    try {
      await this.#calls.change('SetField', manager, { entity, key, value }, { ...options, description });
    } catch (error) {
      this.#keys.clear(); // the next call reads the key again: the attribute may have been deleted
      throw error;
    }
  }

  async #add(name: string, options: ChangeOptions): Promise<number> {
    const description = options.description ?? `defining custom attribute '${name}'`;
    try {
      const definition = await this.#calls.change(
        'AddCustomFieldDef',
        manager,
        { name },
        { ...options, description },
      );
      return definition.key;
    } catch (error) {
      // `DUPLICATE_NAME`: another client has defined the attribute since `findKey`, so the attribute has a key now.
      const key =
        error instanceof FaultError && error.code === 'DUPLICATE_NAME'
          ? await this.#readKey(name, options)
          : undefined;
      if (key === undefined) throw error;
      return key;
    }
  }

  #readKey(name: string, { signal }: CallOptions): Promise<number | undefined> {
    return this.#calls.retryRead(
      async (bound) => {
        const [read] = await retrieve(bound, objectSpec([manager(bound.login)], ['field']));
        const fields = read?.properties.field;
        return (Array.isArray(fields) ? fields : []).filter(isFieldDef).find((field) => field.name === name)
          ?.key;
      },
      { signal },
    );
  }
}

/** Returns the value of an attribute from the property `customValue`. */
export function customValueOf(
  values: readonly Vim25['CustomFieldValue'][] | undefined,
  key: number,
): string | undefined {
  const found = values?.find((each) => each.key === key);
  return found !== undefined && 'value' in found && typeof found.value === 'string' ? found.value : undefined;
}

function manager({ content: { customFieldsManager } }: Login): Ref {
  if (customFieldsManager !== undefined) return customFieldsManager;
  throw new NotFoundError('the server has no custom attributes, so it is not a vCenter');
}

function isFieldDef(value: unknown): value is Vim25['CustomFieldDef'] {
  return typeof value === 'object' && value !== null && 'key' in value && 'name' in value;
}
