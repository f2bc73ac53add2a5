import { schema } from '@vmwright/runtime';
import type { ServerEnvironment } from './environment.ts';
import * as errors from './errors.ts';
import { fits } from './fits.ts';
import { isEmpty, isJson, type Json, same, without } from './json.ts';
import { metadataChangeProblems, metadataProblems } from './metadata-rules.ts';
import { nullProblems } from './nulls.ts';
import { type Draft, type DraftMeta, draftOf, isBeingDeleted, type StoredObject, timeOf } from './object.ts';
import {
  afterApply,
  afterUpdate,
  type Change,
  type Manager,
  NO_OWNERS,
  type Owners,
  sameOwners,
} from './ownership/managers.ts';
import { undeclared } from './ownership/shape.ts';
import type { Resource } from './resource.ts';
import type { Store } from './store.ts';
import { Version } from './version.ts';

/** Target and field manager of a write. */
export interface Target {
  readonly resource: Resource;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly subresource: '' | 'status';
  readonly manager: string;
  readonly dryRun: boolean;
}

export interface Written {
  readonly created: boolean;
  readonly version: Version;
}

/** Characters of generated name suffixes; without vowels, as in Kubernetes, so that they form no words. */
const SUFFIX = 'bcdfghjklmnpqrstvwxz2456789';

/** Write path of the API server. The order of the steps decides which error a client gets. */
export class Writes {
  readonly #store: Store;
  readonly #environment: ServerEnvironment;
  #generated = 0;

  constructor(store: Store, environment: ServerEnvironment) {
    this.#store = store;
    this.#environment = environment;
  }

  create(target: Omit<Target, 'name' | 'subresource'>, body: unknown): Written {
    const { resource, namespace, manager } = target;
    const sent = draftOf(body);
    const metadata = this.#placed(sent.metadata, namespace);
    const { generateName = '', name = generateName === '' ? '' : this.#generate(generateName) } = metadata;
    if (metadata.resourceVersion !== undefined)
      throw new errors.ApiError(500, '', 'resourceVersion should not be set on objects to be created');
    const draft = { ...sent, metadata: { ...metadata, ...(name !== '' && { name }) } };
    const change = this.#change(resource, { name: manager, operation: 'Update', subresource: '' });
    const full = this.#filled(
      resource,
      this.#writable({ ...target, name, subresource: '' }, undefined, draft),
    );
    const owners = () =>
      afterUpdate(resource.ownership, NO_OWNERS, resource.empty ?? {}, full.object, change);
    return this.#add({ ...target, name, subresource: '' }, full, owners);
  }

  /** Replaces an object with the result of `patched`. */
  update(target: Target, patched: (current: Json) => unknown): Written {
    const { resource } = target;
    const current = this.#current(target);
    const draft = draftOf(patched(current.object));
    const manager: Manager = { name: target.manager, operation: 'Update', subresource: target.subresource };
    const change = this.#change(resource, manager);
    this.#checkIdentity(target, draft);
    const full = this.#filled(resource, this.#writable(target, current.object, draft), target.subresource);
    // A write to `status` drops changes of other fields, but still records the writer as their owner.
    const changesOtherFields =
      target.subresource === 'status' && !same(besidesStatus(draft), besidesStatus(current.object));
    const written = changesOtherFields ? this.#filled(resource, draft) : full;
    const owners = () =>
      afterUpdate(resource.ownership, current.owners, current.object, written.object, change);
    return this.#replace(target, current, full, owners, changesOtherFields);
  }

  apply(target: Target, body: unknown, force: boolean): Written {
    const { resource, namespace, name, subresource } = target;
    const sent = draftOf(body);
    const metadata = this.#placed(sent.metadata, namespace);
    const config: Draft = { ...sent, metadata };
    checkApplicable(resource, config);
    if (isJson(body)) checkNoEmptyMetadata(resource, body.metadata);
    const current = this.#store.get(resource, keyOf(namespace, name));
    if (current === undefined && subresource !== '') throw errors.notFound(resource.kind, name);
    const change = this.#change(resource, { name: target.manager, operation: 'Apply', subresource });
    const live = current?.object ?? resource.empty ?? {};
    const owners = current?.owners ?? NO_OWNERS;
    const applied = afterApply(resource.ownership, owners, live, config, change, force);
    if (!applied.ok) throw errors.applyConflict(applied.conflicts, resource.apiVersion);
    const draft = draftOf(applied.object);
    const nulls = resource.custom ? nullProblems(resource.schema, applied.object, subresource) : [];
    if (current === undefined) {
      if (metadata.uid !== undefined)
        throw errors.conflict(
          resource.kind,
          name,
          `uid mismatch: the provided object specified uid ${metadata.uid}, and no existing object was found`,
        );
      return this.#add(
        target,
        this.#filled(resource, this.#writable(target, undefined, draft)),
        () => applied.owners,
      );
    }
    this.#checkIdentity(target, draft);
    const full = this.#filled(resource, this.#writable(target, current.object, draft), target.subresource);
    const others = full.problems.filter(({ field }) => !nulls.some((each) => each.field === field));
    const problems = [...nulls, ...others];
    return this.#replace(
      target,
      current,
      { ...full, problems },
      () => applied.owners,
      !sameOwners(owners, applied.owners),
    );
  }

  #add(target: Target, full: Filled, owners: () => Owners): Written {
    const { resource, namespace, name } = target;
    const { kind } = resource;
    const { object } = full;
    const problems = [...metadataProblems(object.metadata), ...this.#problems(resource, full, undefined)];
    if (problems.length > 0) throw errors.invalid(kind, name, problems);
    const key = keyOf(namespace, name);
    const known = this.#store.get(resource, key);
    if (known !== undefined) throw errors.alreadyExists(kind, name, isBeingDeleted(known.object));
    const { deletionTimestamp: _, deletionGracePeriodSeconds: __, ...given } = object.metadata;
    const metadata = {
      ...given,
      name,
      uid: this.#environment.uuid(),
      creationTimestamp: timeOf(this.#environment.now()),
      ...(resource.custom && { generation: 1 }),
    };
    const { apiVersion } = resource;
    const stored: StoredObject = { ...object, apiVersion, kind: kind.kind, metadata };
    const created = true;
    if (target.dryRun) return { created, version: new Version(resource, stored, 0, owners) };
    return { created, version: this.#store.put(resource, key, stored, owners) };
  }

  #replace(
    target: Target,
    current: Version,
    full: Filled,
    owners: () => Owners,
    newOwners: boolean,
  ): Written {
    const { resource, name } = target;
    const before = current.object;
    const { metadata: given } = full.object;
    if (given.resourceVersion !== undefined && given.resourceVersion !== before.metadata.resourceVersion)
      throw errors.conflict(resource.kind, name, errors.OBJECT_MODIFIED);
    const contentChanged =
      resource.custom && target.subresource === '' && !same(contentOf(before), contentOf(full.object));
    const { generation = 0 } = before.metadata;
    const metadata = {
      ...given,
      name,
      uid: given.uid ?? before.metadata.uid ?? '',
      resourceVersion: before.metadata.resourceVersion ?? '',
      creationTimestamp: before.metadata.creationTimestamp ?? '',
      ...deletionFieldsOf(before.metadata),
      ...(resource.custom && { generation: contentChanged ? generation + 1 : generation }),
    };
    const after: StoredObject = { ...full.object, metadata };
    const problems = [
      // Unchanged metadata needs no validation, because it was validated before.
      ...(sameParts(before.metadata, metadata) ? [] : metadataProblems(metadata)),
      ...metadataChangeProblems(before.metadata, metadata),
      ...this.#problems(resource, full, before),
    ];
    if (problems.length > 0) throw errors.invalid(resource.kind, name, problems);
    const created = false;
    if (isBeingDeleted(before) && (metadata.finalizers ?? []).length === 0) {
      if (!target.dryRun) this.#store.delete(resource, keyOf(target.namespace, name));
      // The client that removes the last finalizer gets the object that it wrote, with the old resource version.
      return { created, version: new Version(resource, after, current.number, owners) };
    }
    if (!newOwners && same(before, after)) return { created, version: current };
    if (target.dryRun) return { created, version: new Version(resource, after, current.number, owners) };
    return { created, version: this.#store.put(resource, keyOf(target.namespace, name), after, owners) };
  }

  /** Returns the draft limited to the fields that this endpoint can write; other fields keep their current values. */
  #writable({ resource, subresource }: Target, current: StoredObject | undefined, draft: Draft): Draft {
    if (subresource === 'status' && current !== undefined) return statusOnly(current, draft);
    if (!resource.status) return draft;
    if (draft.status !== undefined && draft.status !== current?.status)
      checkDroppedStatus(resource, draft.status);
    return withStatusOf(current, draft);
  }

  /** Drops unknown fields and sets defaults. */
  #filled(resource: Resource, draft: Draft, subresource: Target['subresource'] = ''): Filled {
    const { apiVersion, kind, metadata, ...content } = draft;
    const admitted = fits(resource.schema, content)
      ? ({ ok: true, value: content } as const)
      : schema.admit(resource.schema, content);
    // An invalid object stays as the client sent it. It is rejected later, after the check for conflicts.
    const filled = admitted.ok ? jsonIn(admitted.value) : content;
    const object: Draft = { ...filled, apiVersion: resource.apiVersion, kind: resource.kind.kind, metadata };
    return {
      object: admitted.ok && resource.canonical ? resource.canonical(object) : object,
      problems: admitted.ok
        ? []
        : subresource === 'status'
          ? admitted.problems.map(relativeToStatus)
          : admitted.problems,
    };
  }

  #problems(
    { check }: Resource,
    { object, problems }: Filled,
    before: Json | undefined,
  ): readonly errors.FieldError[] {
    return check === undefined ? problems : [...problems, ...check(object, before)];
  }

  #current({ resource, namespace, name }: Target): Version {
    const current = this.#store.get(resource, keyOf(namespace, name));
    if (current === undefined) throw errors.notFound(resource.kind, name);
    return current;
  }

  #checkIdentity({ name, namespace }: Target, { metadata }: Draft): void {
    if (metadata.name !== undefined && metadata.name !== name)
      throw errors.badRequest(
        `the name of the object (${metadata.name}) does not match the name on the URL (${name})`,
      );
    this.#placed(metadata, namespace);
  }

  #placed(metadata: DraftMeta, namespace: string | undefined): DraftMeta {
    if (metadata.namespace !== undefined && metadata.namespace !== namespace)
      throw errors.badRequest(
        'the namespace of the provided object does not match the namespace sent on the request',
      );
    return namespace === undefined ? metadata : { ...metadata, namespace };
  }

  #change(resource: Resource, manager: Manager): Change {
    const ignored = manager.subresource === 'status' ? 'spec' : resource.status ? 'status' : undefined;
    return { manager, timeMs: this.#environment.now(), ignored };
  }

  #generate(prefix: string): string {
    this.#generated += 1;
    let suffix = '';
    for (let rest = this.#generated * 7_919, i = 0; i < 5; i++, rest = Math.floor(rest / SUFFIX.length))
      suffix += SUFFIX[rest % SUFFIX.length];
    return prefix.slice(0, 58) + suffix;
  }
}

interface Filled {
  readonly object: Draft;
  /** Schema violations. */
  readonly problems: readonly errors.FieldError[];
}

export function keyOf(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/**
 * Throws UnmodelledError for an apply of undeclared fields or wrong types, because the model does not produce the
 * errors that the real server returns for them.
 */
function checkApplicable(
  resource: Resource,
  { apiVersion: _, kind: __, metadata: ___, ...content }: Draft,
): void {
  if (fits(resource.schema, content)) return;
  const unknown = undeclared(resource.ownership.shape, content);
  if (unknown !== undefined)
    throw new errors.UnmodelledError(`an apply of ${unknown}, which is not declared`);
  const wrong = schema
    .validate(resource.schema, content)
    .find(({ reason }) => reason === 'FieldValueTypeInvalid');
  if (wrong !== undefined)
    throw new errors.UnmodelledError(`an apply of a wrong type: ${wrong.field}: ${wrong.message}`);
}

/**
 * Throws UnmodelledError for an apply of empty metadata fields. The model does not imitate how the real server handles
 * them:
 * - An empty map has an owner.
 * - An empty list of a custom kind is stored but not returned. The next write drops that list and counts as a change.
 */
function checkNoEmptyMetadata({ custom }: Resource, metadata: unknown): void {
  for (const [name, part] of Object.entries(isJson(metadata) ? metadata : {})) {
    const isBare = Array.isArray(part) ? custom && part.length === 0 : isJson(part) && isEmpty(part);
    if (isBare) throw new errors.UnmodelledError(`an apply of an empty metadata.${name}`);
  }
}

/**
 * Throws UnmodelledError if a write to the main resource contains an invalid status. The real server ignores such a
 * status, but also drops metadata.managedFields. The model does not drop them.
 */
function checkDroppedStatus({ schema: { properties } }: Resource, status: unknown): void {
  const [wrong] =
    properties?.status === undefined ? [] : schema.validate(properties.status, status, 'status');
  if (wrong !== undefined)
    throw new errors.UnmodelledError(
      `an invalid status in a write to the main resource: ${wrong.field}: ${wrong.message}`,
    );
}

/** Returns the draft with the current status. */
function withStatusOf(current: StoredObject | undefined, draft: Draft): Draft {
  if (current?.status !== undefined) return { ...draft, status: current.status };
  if (draft.status === undefined) return draft;
  const { status: _, ...rest } = draft;
  return rest;
}

/** Returns the current object with the draft's status, and with the draft's resourceVersion for the conflict check. */
function statusOnly(current: StoredObject, { metadata: { resourceVersion }, status }: Draft): Draft {
  const metadata = { ...current.metadata, ...(resourceVersion !== undefined && { resourceVersion }) };
  const { status: _, ...rest } = current;
  return { ...rest, metadata, ...(status !== undefined && { status }) };
}

/**
 * Shortens the field name in the message. When the API server validates only the status, it names fields relative to
 * the status.
 */
function relativeToStatus({ field, reason, message }: errors.FieldError): errors.FieldError {
  const inner = field.replace(/^status\.?/, '');
  return { field, reason, message: message.replace(`${field} in body`, `${inner} in body`) };
}

/**
 * Returns all fields except status and spec. A status write drops changes of these fields, but still records the writer
 * as their owner.
 */
function besidesStatus(object: Json): Json {
  return without(object, 'status', 'spec');
}

/** Returns the object without its metadata. A change of this part increments the generation. */
function contentOf(object: Json): Json {
  return without(object, 'metadata');
}

/** Returns the deletion fields, which no update can remove. */
function deletionFieldsOf({ deletionTimestamp, deletionGracePeriodSeconds }: DraftMeta): Json {
  return {
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(deletionGracePeriodSeconds !== undefined && { deletionGracePeriodSeconds }),
  };
}

/** Compares by identity. This suffices, because patches keep the identity of values that they do not change. */
function sameParts(before: DraftMeta, after: DraftMeta): boolean {
  return (
    before.name === after.name &&
    before.labels === after.labels &&
    before.annotations === after.annotations &&
    before.finalizers === after.finalizers &&
    before.ownerReferences === after.ownerReferences
  );
}

function jsonIn(value: unknown): Json {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
