import type { StoredObject } from './object.ts';
import { managedFields, NOBODY, type Owners } from './ownership/managers.ts';
import type { Resource } from './resource.ts';

/**
 * One state of an object. Its owners are worked out when somebody asks for the first time: most objects are never
 * applied, and then nobody does. Its text is made once, however many read it.
 */
export class Version {
  readonly object: StoredObject;
  /** The resource version. */
  readonly number: number;
  readonly #resource: Resource;
  #owners: Owners | (() => Owners);
  #text: string | undefined;
  #metadataText: string | undefined;

  constructor(
    resource: Resource,
    object: StoredObject,
    number: number,
    owners: Owners | (() => Owners) = NOBODY,
  ) {
    this.#resource = resource;
    this.object = object;
    this.number = number;
    this.#owners = owners;
  }

  get owners(): Owners {
    if (typeof this.#owners === 'function') this.#owners = this.#owners();
    return this.#owners;
  }

  /** As it is served. @param shown with its managed fields */
  text(shown: boolean): string {
    this.#text ??= JSON.stringify(shown ? this.#withManagedFields() : this.object);
    return this.#text;
  }

  /** Its metadata alone, as `PartialObjectMetadata`. */
  metadataText(shown: boolean): string {
    const { metadata } = shown ? this.#withManagedFields() : this.object;
    this.#metadataText ??= JSON.stringify({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata,
    });
    return this.#metadataText;
  }

  /** The same state under a later number: of what is deleted, and of what leaves a selection. */
  at(number: number): Version {
    const metadata = { ...this.object.metadata, resourceVersion: String(number) };
    return new Version(this.#resource, { ...this.object, metadata }, number, () => this.owners);
  }

  #withManagedFields(): StoredObject {
    const entries = managedFields(this.#resource.ownership, this.owners);
    if (entries.length === 0) return this.object;
    return { ...this.object, metadata: { ...this.object.metadata, managedFields: entries } };
  }
}
