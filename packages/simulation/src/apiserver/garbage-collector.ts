import type { OwnerReference } from '@vmwright/runtime';
import { type DeleteOptions, Deletes, FOREGROUND, ORPHAN } from './deletes.ts';
import type { ServerEnvironment } from './environment.ts';
import { ApiError } from './errors.ts';
import { isBeingDeleted, type StoredObject } from './object.ts';
import type { Resource } from './resource.ts';
import type { Change, Store } from './store.ts';
import { keyOf, type Writes } from './writes.ts';

const MANAGER = 'kube-controller-manager';

interface Located {
  readonly resource: Resource;
  readonly object: StoredObject;
}

/** State of an owner. */
type Owner = 'exists' | 'gone' | 'waits for its dependents';

/**
 * Model of kube-controller-manager's garbage collector. It deletes objects that lost all their owners. With the
 * foreground policy, it deletes the dependents before their owner is deleted. With the orphan policy, it removes the
 * owner references of the dependents before their owner is deleted.
 *
 * It processes one object per step, some time after the object changed or the deletion of one of its owners began. It
 * decides by the state at the time of processing.
 *
 * Not modelled: the delay of its watches, owner cycles, owners in other namespaces, and owners of kinds that the model
 * does not serve (their dependents are ignored).
 */
export class GarbageCollector {
  readonly #store: Store;
  readonly #writes: Writes;
  readonly #deletes: Deletes;
  readonly #environment: ServerEnvironment;
  readonly #resources: () => Iterable<Resource>;
  /** Enqueued objects by UID. The value is true if the deletion of an owner enqueued the object. */
  readonly #due = new Map<string, boolean>();

  constructor(
    store: Store,
    writes: Writes,
    environment: ServerEnvironment,
    resources: () => Iterable<Resource>,
  ) {
    this.#store = store;
    this.#writes = writes;
    this.#deletes = new Deletes(store, environment);
    this.#environment = environment;
    this.#resources = resources;
    store.listen((change) => this.#onChange(change));
  }

  #onChange({ resource, before, after }: Change): void {
    const object = after?.object ?? before?.object;
    if (object === undefined) return;
    const { uid = '', ownerReferences, finalizers = [] } = object.metadata;
    // An owner in foreground deletion may be waiting for this dependent.
    if (after === undefined)
      for (const reference of ownerReferences ?? []) {
        const owner = this.#find(reference, object.metadata.namespace);
        if (owner !== undefined && isBeingDeleted(owner.object)) this.#enqueue(owner.resource, owner.object);
      }
    const deletionStarted =
      after === undefined ||
      (isBeingDeleted(object) && before?.object.metadata.deletionTimestamp === undefined);
    if (deletionStarted)
      for (const dependent of this.#dependentsOf(uid))
        this.#enqueue(dependent.resource, dependent.object, true);
    if (after !== undefined && (ownerReferences !== undefined || isWaiting(finalizers)))
      this.#enqueue(resource, object);
  }

  #enqueue(
    resource: Resource,
    { metadata: { uid = '', namespace, name } }: StoredObject,
    byOwner = false,
  ): void {
    const known = this.#due.get(uid);
    this.#due.set(uid, byOwner || (known ?? false));
    if (known !== undefined) return;
    this.#environment.after(this.#environment.controllerDelay(), () => {
      const forOwner = this.#due.get(uid) ?? false;
      this.#due.delete(uid);
      const current = this.#store.get(resource, keyOf(namespace, name));
      if (current?.object.metadata.uid === uid) this.#process({ resource, object: current.object }, forOwner);
    });
  }

  #process(located: Located, forOwner: boolean): void {
    const { finalizers = [], ownerReferences = [] } = located.object.metadata;
    if (!isBeingDeleted(located.object)) {
      if (ownerReferences.length > 0) this.#collect(located, ownerReferences, forOwner);
    } else if (finalizers.includes(ORPHAN)) {
      this.#orphanDependents(located);
    } else if (finalizers.includes(FOREGROUND)) {
      this.#awaitDependents(located);
    }
  }

  /** Deletes the object if no owner keeps it, otherwise removes its references to absent owners. */
  #collect(located: Located, references: readonly OwnerReference[], forOwner: boolean): void {
    const { uid, namespace } = located.object.metadata;
    const owners = references.map((reference) => this.#stateOf(reference, namespace));
    if (owners.includes(undefined)) return; // an owner's kind is not served, so its state is unknown
    // A dependent may be added to an owner that is already in foreground deletion. `forOwner` is then false. The
    // collector does not wait for such a dependent, which stays until the owner is gone.
    const isHeld = owners.includes('exists') || (!forOwner && owners.includes('waits for its dependents'));
    if (isHeld) {
      const remaining = references.filter(
        (_, index) => owners[index] !== 'gone' && (!forOwner || owners[index] === 'exists'),
      );
      if (remaining.length < references.length) this.#patch(located, { ownerReferences: remaining });
      return;
    }
    const isWaitedFor = owners.includes('waits for its dependents');
    const hasDependents = uid !== undefined && this.#dependentsOf(uid).length > 0;
    const { finalizers = [] } = located.object.metadata;
    const propagation =
      isWaitedFor && hasDependents
        ? 'Foreground'
        : finalizers.includes(ORPHAN)
          ? 'Orphan'
          : finalizers.includes(FOREGROUND)
            ? 'Foreground'
            : 'Background';
    this.#delete(located, { uid, propagation, dryRun: false });
  }

  #orphanDependents(owner: Located): void {
    const { uid = '', finalizers = [] } = owner.object.metadata;
    for (const dependent of this.#dependentsOf(uid)) {
      const { ownerReferences = [] } = dependent.object.metadata;
      this.#patch(dependent, { ownerReferences: ownerReferences.filter((each) => each.uid !== uid) });
    }
    this.#patch(owner, { finalizers: finalizers.filter((each) => each !== ORPHAN) });
  }

  #awaitDependents(owner: Located): void {
    const { uid = '', finalizers = [] } = owner.object.metadata;
    const blocking = this.#dependentsOf(uid).filter(({ object }) =>
      object.metadata.ownerReferences?.some((each) => each.uid === uid && each.blockOwnerDeletion === true),
    );
    if (blocking.length === 0)
      this.#patch(owner, { finalizers: finalizers.filter((each) => each !== FOREGROUND) });
    else
      for (const { resource, object } of blocking)
        if (!isBeingDeleted(object)) this.#enqueue(resource, object, true);
  }

  #stateOf(reference: OwnerReference, namespace: string | undefined): Owner | undefined {
    const resource = this.#resourceOf(reference);
    if (resource === undefined) return undefined;
    const owner = this.#find(reference, namespace);
    if (owner === undefined) return 'gone';
    const { finalizers = [] } = owner.object.metadata;
    return isBeingDeleted(owner.object) && finalizers.includes(FOREGROUND)
      ? 'waits for its dependents'
      : 'exists';
  }

  #resourceOf({ apiVersion, kind }: OwnerReference): Resource | undefined {
    for (const resource of this.#resources())
      if (resource.kind.kind === kind && resource.apiVersion === apiVersion) return resource;
    return undefined;
  }

  #find(reference: OwnerReference, namespace: string | undefined): Located | undefined {
    const resource = this.#resourceOf(reference);
    if (resource === undefined) return undefined;
    const scope = resource.kind.scope === 'Namespaced' ? namespace : undefined;
    const object = this.#store.get(resource, keyOf(scope, reference.name))?.object;
    return object?.metadata.uid === reference.uid ? { resource, object } : undefined;
  }

  #dependentsOf(uid: string): Located[] {
    const found: Located[] = [];
    for (const resource of this.#resources())
      for (const [, { object }] of this.#store.list(resource))
        if (object.metadata.ownerReferences?.some((each) => each.uid === uid))
          found.push({ resource, object });
    return found;
  }

  #patch({ resource, object }: Located, change: object): void {
    const { namespace, name, uid } = object.metadata;
    const target = { resource, namespace, name, subresource: '', manager: MANAGER, dryRun: false } as const;
    this.#attempt(() =>
      this.#writes.update(target, (current) => ({
        ...current,
        metadata: { ...object.metadata, uid, ...change },
      })),
    );
  }

  #delete({ resource, object }: Located, options: DeleteOptions): void {
    const { namespace, name } = object.metadata;
    this.#attempt(() => this.#deletes.delete(resource, namespace, name, options));
  }

  /** Ignores 404 and 409: the change that caused the conflict enqueues the object again. */
  #attempt(act: () => unknown): void {
    try {
      act();
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code !== 404 && error.code !== 409)) throw error;
    }
  }
}

function isWaiting(finalizers: readonly string[]): boolean {
  return finalizers.includes(ORPHAN) || finalizers.includes(FOREGROUND);
}
