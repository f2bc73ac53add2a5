import { isJson, type Json, same } from '../json.ts';
import { timeOf } from '../object.ts';
import { compare, fieldsOf } from './compare.ts';
import { FieldSet } from './field-set.ts';
import { merged, removed } from './merge.ts';
import { fieldShape, type MapShape, type Shape } from './shape.ts';

/** A field manager. The same name with different operations counts as two managers. */
export interface Manager {
  readonly name: string;
  readonly operation: 'Apply' | 'Update';
  readonly subresource: string;
}

interface Owned {
  readonly manager: Manager;
  readonly time: string | undefined;
  readonly fields: FieldSet;
}

/** Field owners of an object, by manager id. */
export type Owners = ReadonlyMap<string, Owned>;

export const NO_OWNERS: Owners = new Map();

/** Properties of a kind that determine field ownership. */
export interface OwnershipRules {
  readonly apiVersion: string;
  readonly shape: MapShape;
}

export interface Change {
  readonly manager: Manager;
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  /**
   * Top-level field that the endpoint of the write cannot change: `spec` for the status subresource, and `status` for
   * the main resource. The writer cannot own this field.
   */
  readonly ignored: string | undefined;
}

/** An applied field that another manager owns with a different value. */
export interface OwnerConflict {
  readonly manager: Manager;
  readonly path: string;
}

/** Fields that the API server sets itself. They have no owner. */
const SERVER_FIELDS = new FieldSet();
for (const path of [['f:apiVersion'], ['f:kind'], ['f:metadata']]) SERVER_FIELDS.add(path);
for (const name of [
  'name',
  'namespace',
  'creationTimestamp',
  'selfLink',
  'uid',
  'clusterName',
  'generation',
  'managedFields',
  'resourceVersion',
])
  SERVER_FIELDS.add(['f:metadata', `f:${name}`]);

/** Returns the owners after an update: the updater owns the fields it changed, and removed fields have no owner. */
export function afterUpdate(
  rules: OwnershipRules,
  owners: Owners,
  before: Json,
  after: Json,
  { manager, timeMs, ignored }: Change,
): Owners {
  const found = comparison(rules.shape, before, after, ignored);
  const changed = found.modified.union(found.added);
  const result = new Map<string, Owned>();
  for (const [id, owned] of owners) {
    const left = owned.fields.difference(changed).difference(found.removed);
    if (!left.isEmpty) result.set(id, { ...owned, fields: left });
  }
  const own = changed.difference(SERVER_FIELDS);
  if (own.isEmpty) return result;
  const id = idOf(rules, manager);
  result.set(id, { manager, time: timeOf(timeMs), fields: result.get(id)?.fields.union(own) ?? own });
  return result;
}

export type Applied =
  | { readonly ok: true; readonly object: Json; readonly owners: Owners }
  | { readonly ok: false; readonly conflicts: readonly OwnerConflict[] };

/**
 * Returns the object and its owners after an apply. The applier owns the applied fields. If the applier applied a field
 * before and now omits it, the field is removed, unless another manager owns it.
 */
export function afterApply(
  rules: OwnershipRules,
  owners: Owners,
  live: Json,
  config: Json,
  { manager, timeMs, ignored }: Change,
  force: boolean,
): Applied {
  const { shape } = rules;
  const id = idOf(rules, manager);
  const last = owners.get(id);
  const all = fieldsOf(shape, config);
  const wanted = ignored === undefined ? all : all.withoutField(ignored);
  const claimed = new Map(owners).set(id, { manager, time: last?.time, fields: wanted });
  const together = objectIn(merged(shape, live, config));
  const object = last === undefined ? together : pruned(shape, together, claimed, last.fields);
  const found = comparison(shape, live, object, ignored);
  const changed = found.modified.union(found.added);
  const conflicts: OwnerConflict[] = [];
  const result = new Map<string, Owned>();
  for (const [each, owned] of [...claimed].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (each === id) {
      result.set(each, owned);
      continue;
    }
    const contested = owned.fields.intersection(changed);
    for (const path of contested.paths()) conflicts.push({ manager: owned.manager, path });
    const left = owned.fields.difference(contested).difference(found.removed);
    if (!left.isEmpty) result.set(each, { ...owned, fields: left });
  }
  if (!force && conflicts.length > 0) return { ok: false, conflicts };
  const own = wanted.difference(SERVER_FIELDS);
  result.delete(id);
  const unchanged = same(live, object);
  if (!own.isEmpty) result.set(id, { manager, time: unchanged ? last?.time : timeOf(timeMs), fields: own });
  return { ok: true, object: unchanged ? live : object, owners: result };
}

/** Removes the fields that the applier no longer applies and that no other manager owns. */
function pruned(shape: MapShape, together: Json, owners: Owners, last: FieldSet): Json {
  const named = (set: FieldSet) => withNamedFields(shape, set);
  const without = removed(shape, together, named(last));
  let managed = new FieldSet();
  for (const { fields } of owners.values()) managed = managed.union(fields);
  const allFields = named(fieldsOf(shape, together));
  const kept = named(fieldsOf(shape, without ?? {})).union(named(managed));
  const addedBack = removed(shape, together, allFields.difference(kept));
  const left = named(fieldsOf(shape, addedBack ?? {}));
  // Removes only fields that the applier owned. Fields without an owner stay, even if the fields around them are
  // removed.
  return objectIn(removed(shape, together, allFields.difference(left).intersection(named(last))));
}

/** Returns the set plus all fields that the schema declares and that contain a field of the set. */
function withNamedFields(shape: Shape, set: FieldSet): FieldSet {
  const result = new FieldSet();
  for (const step of set.members) result.members.add(step);
  for (const [step, inner] of set.children) {
    const name = step.startsWith('f:') ? step.slice(2) : undefined;
    const isNamed = name !== undefined && shape.is === 'map' && Object.hasOwn(shape.fields, name);
    if (isNamed) result.members.add(step);
    result.children.set(step, withNamedFields(shapeAt(shape, step), inner));
  }
  return result;
}

function shapeAt(shape: Shape, step: string): Shape {
  if (shape.is === 'map' && step.startsWith('f:')) return fieldShape(shape, step.slice(2));
  if (shape.is === 'list' && step.startsWith('k:')) return shape.items;
  return { is: 'deduced' };
}

function comparison(shape: MapShape, before: Json, after: Json, ignored: string | undefined) {
  const { added, modified, removed: removedFields } = compare(shape, before, after);
  if (ignored === undefined) return { added, modified, removed: removedFields };
  return {
    added: added.withoutField(ignored),
    modified: modified.withoutField(ignored),
    removed: removedFields.withoutField(ignored),
  };
}

export function sameOwners(a: Owners, b: Owners): boolean {
  if (a === b) return true;
  if (a.size !== b.size) return false;
  for (const [id, { fields }] of a) {
    const other = b.get(id);
    if (other === undefined || !fields.equals(other.fields)) return false;
  }
  return true;
}

/** Returns the owners in the form of `metadata.managedFields`. */
export function managedFields({ apiVersion }: OwnershipRules, owners: Owners): Json[] {
  return [...owners.values()].map(({ manager, time, fields }) => ({
    manager: manager.name,
    operation: manager.operation,
    apiVersion,
    ...(time !== undefined && { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: fields.toJson(),
    ...(manager.subresource !== '' && { subresource: manager.subresource }),
  }));
}

/** Returns the id of a manager; ids sort as the API server sorts managers in messages. */
function idOf({ apiVersion }: Pick<OwnershipRules, 'apiVersion'>, manager: Manager): string {
  const { name, operation, subresource } = manager;
  return JSON.stringify({ manager: name, operation, apiVersion, ...(subresource !== '' && { subresource }) });
}

function objectIn(value: unknown): Json {
  return isJson(value) ? value : {};
}
