import type { StoredObject } from './object.ts';
import { managedFields, NO_OWNERS, type Owners } from './ownership/managers.ts';
import type { Resource } from './resource.ts';

/**
 * One version of an object. Field owners are computed on first use, because most objects are never applied and need no
 * owners. The JSON text is cached for all readers.
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
    owners: Owners | (() => Owners) = NO_OWNERS,
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

  /** Returns the object as JSON. @param showManagedFields must be the same in all calls, because the text is cached */
  text(showManagedFields: boolean): string {
    this.#text ??= JSON.stringify(showManagedFields ? this.#withManagedFields() : this.object);
    return this.#text;
  }

  /** Returns the metadata as a `PartialObjectMetadata` in JSON. */
  metadataText(showManagedFields: boolean): string {
    const { metadata } = showManagedFields ? this.#withManagedFields() : this.object;
    this.#metadataText ??= JSON.stringify({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata,
    });
    return this.#metadataText;
  }

  /**
   * Returns the same state under a later resource version, for a DELETED event. A watch gets this event if the object
   * was deleted or no longer matches the selectors.
   */
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
