import type { ServerEnvironment } from './environment.ts';
import { type StoredMeta, type StoredObject, timeOf } from './object.ts';
import * as refusal from './refusal.ts';
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

/** The object, where something still holds it; its uid, where it is gone. */
export type Deleted = { readonly held: Version } | { readonly uid: string };

/** Finalizers by which the garbage collector is asked to do something first. */
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
    if (current === undefined) throw refusal.notFound(resource.kind, name);
    const { metadata } = current.object;
    checkPreconditions(resource, metadata, options);
    const finalizers = finalizersFor(metadata.finalizers ?? [], options.propagation);
    if (finalizers.length === 0) {
      if (!options.dryRun) this.#store.delete(resource, key);
      return { uid: metadata.uid ?? '' };
    }
    const after = this.#marked(current.object, finalizers);
    if (after === current.object) return { held: current };
    const owners = () => current.owners;
    if (options.dryRun) return { held: new Version(resource, after, current.number, owners) };
    return { held: this.#store.put(resource, key, after, owners) };
  }

  /** The same object where it is marked like this already. */
  #marked(object: StoredObject, finalizers: readonly string[]): StoredObject {
    const { metadata } = object;
    const isMarked = metadata.deletionTimestamp !== undefined;
    if (isMarked && finalizers === metadata.finalizers) return object;
    return {
      ...object,
      metadata: {
        ...metadata,
        finalizers,
        ...(!isMarked && {
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
    throw refusal.preconditionFailed(
      kind,
      metadata.name,
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    );
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
    throw refusal.preconditionFailed(
      kind,
      metadata.name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    );
}

/** Those there are, with the one that the propagation asks for; the same list where nothing changes. */
function finalizersFor(there: readonly string[], propagation: Propagation | undefined): readonly string[] {
  const asked = propagation === 'Orphan' ? ORPHAN : propagation === 'Foreground' ? FOREGROUND : undefined;
  const wanted =
    propagation === undefined ? there.find((each) => each === ORPHAN || each === FOREGROUND) : asked;
  const others = there.filter((each) => each !== ORPHAN && each !== FOREGROUND);
  const finalizers = wanted === undefined ? others : [...others, wanted];
  const isSame = finalizers.length === there.length && there.every((each) => finalizers.includes(each));
  return isSame ? there : finalizers;
}
