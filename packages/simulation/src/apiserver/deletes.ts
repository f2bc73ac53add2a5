import type { ServerEnvironment } from './environment.ts';
import * as errors from './errors.ts';
import { type StoredMeta, type StoredObject, timeOf } from './object.ts';
import type { Resource } from './resource.ts';
import type { Store } from './store.ts';
import { Version } from './version.ts';
import { keyOf } from './writes.ts';

export type Propagation = 'Background' | 'Foreground' | 'Orphan';

export interface DeleteOptions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly propagation?: Propagation | undefined;
  readonly dryRun: boolean;
}

/** Result of a delete: the object (`held`) if finalizers keep it, or its UID (`uid`) if it is gone. */
export type Deleted = { readonly held: Version } | { readonly uid: string };

/** Finalizers that the garbage collector handles before an object is removed. */
export const ORPHAN = 'orphan';
export const FOREGROUND = 'foregroundDeletion';

export class Deletes {
  readonly #store: Store;
  readonly #environment: ServerEnvironment;

  constructor(store: Store, environment: ServerEnvironment) {
    this.#store = store;
    this.#environment = environment;
  }

  delete(resource: Resource, namespace: string | undefined, name: string, options: DeleteOptions): Deleted {
    const key = keyOf(namespace, name);
    const current = this.#store.get(resource, key);
    if (current === undefined) throw errors.notFound(resource.kind, name);
    const { metadata } = current.object;
    checkPreconditions(resource, metadata, options);
    const finalizers = finalizersFor(metadata.finalizers ?? [], options.propagation);
    if (finalizers.length === 0) {
      if (!options.dryRun) this.#store.delete(resource, key);
      return { uid: metadata.uid ?? '' };
    }
    const after = this.#withDeletionTimestamp(current.object, finalizers);
    if (after === current.object) return { held: current };
    const owners = () => current.owners;
    if (options.dryRun) return { held: new Version(resource, after, current.number, owners) };
    return { held: this.#store.put(resource, key, after, owners) };
  }

  /** Returns the object with a deletion timestamp and the given finalizers, or the same object if nothing changes. */
  #withDeletionTimestamp(object: StoredObject, finalizers: readonly string[]): StoredObject {
    const { metadata } = object;
    const isDeleting = metadata.deletionTimestamp !== undefined;
    if (isDeleting && finalizers === metadata.finalizers) return object;
    return {
      ...object,
      metadata: {
        ...metadata,
        finalizers,
        ...(!isDeleting && {
          deletionTimestamp: timeOf(this.#environment.now()),
          deletionGracePeriodSeconds: 0,
          ...(metadata.generation !== undefined && { generation: metadata.generation + 1 }),
        }),
      },
    };
  }
}

function checkPreconditions({ kind }: Resource, metadata: StoredMeta, options: DeleteOptions): void {
  const { uid, resourceVersion } = options;
  if (uid !== undefined && uid !== metadata.uid)
    throw errors.preconditionFailed(
      kind,
      metadata.name,
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    );
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
    throw errors.preconditionFailed(
      kind,
      metadata.name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    );
}

/**
 * Returns the finalizers, including the one that the propagation policy requires: `orphan` or `foregroundDeletion`.
 * Without a policy, the object keeps the one of these two finalizers that it already has. Returns the same list if
 * nothing changes.
 */
function finalizersFor(current: readonly string[], propagation: Propagation | undefined): readonly string[] {
  const requested = propagation === 'Orphan' ? ORPHAN : propagation === 'Foreground' ? FOREGROUND : undefined;
  const wanted =
    propagation === undefined ? current.find((each) => each === ORPHAN || each === FOREGROUND) : requested;
  const others = current.filter((each) => each !== ORPHAN && each !== FOREGROUND);
  const finalizers = wanted === undefined ? others : [...others, wanted];
  const isSame = finalizers.length === current.length && current.every((each) => finalizers.includes(each));
  return isSame ? current : finalizers;
}
