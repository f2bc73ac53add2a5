import { isEmpty, isJson, type Json, same } from '../json.ts';
import { FieldSet } from './field-set.ts';
import { fieldShape, type KnownShape, known, type Shape, stepOfItem } from './shape.ts';

/** Fields that differ between two states of an object. */
export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

export function compare(shape: Shape, before: unknown, after: unknown): Comparison {
  const found = { added: new FieldSet(), modified: new FieldSet(), removed: new FieldSet() };
  walk(shape, before, after, [], found);
  return found;
}

function walk(shape: Shape, before: unknown, after: unknown, path: string[], found: Comparison): void {
  if (before === after && before !== undefined) return;
  if (
    shape.is === 'deduced' &&
    hasType(before) &&
    hasType(after) &&
    known(shape, undefined, before).is !== known(shape, undefined, after).is
  ) {
    // If the type changed, the field counts as modified, and the fields within it as removed or added.
    found.modified.add(path);
    if (isJson(before)) inside(shape, before, {}, path, found);
    if (isJson(after)) inside(shape, {}, after, path, found);
    return;
  }
  const is = known(shape, before, after);
  if (isLeaf(is, before, after)) {
    if (before === undefined) found.added.add(path);
    else if (after === undefined) found.removed.add(path);
    else if (!same(before, after)) found.modified.add(path);
    return;
  }
  if (is.is === 'list') {
    const old = itemsByStep(is, before);
    const current = itemsByStep(is, after);
    for (const step of new Set([...old.keys(), ...current.keys()]))
      walk(is.items, old.get(step), current.get(step), [...path, step], found);
  } else {
    inside(is, isJson(before) ? before : {}, isJson(after) ? after : {}, path, found);
  }
  // An added or removed map or list counts as a field itself, in addition to its contents.
  if (path.length === 0) return;
  if (before === undefined) found.added.add(path);
  else if (after === undefined) found.removed.add(path);
}

function inside(shape: Shape, before: Json, after: Json, path: readonly string[], found: Comparison): void {
  const is = known(shape, before, after);
  if (is.is !== 'map') return;
  for (const name in before)
    walk(fieldShape(is, name), before[name], after[name], [...path, `f:${name}`], found);
  for (const name in after)
    if (!Object.hasOwn(before, name))
      walk(fieldShape(is, name), undefined, after[name], [...path, `f:${name}`], found);
}

/** Whether the value determines a type. Null does not, because it is compatible with every type. */
function hasType(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/**
 * Whether the value is compared and owned as a whole. This is also the case for a map or list that is empty before and
 * after the change, because nothing within it can differ.
 */
function isLeaf(is: KnownShape, before: unknown, after: unknown): boolean {
  switch (is.is) {
    case 'scalar':
      return true;
    case 'list':
      return is.keyedBy === 'nothing' || (isBare(before) && isBare(after));
    case 'map':
      return is.atomic || (isBare(before) && isBare(after));
  }
}

function isBare(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return !isJson(value) || isEmpty(value);
}

export function itemsByStep(is: Extract<KnownShape, { is: 'list' }>, list: unknown): Map<string, unknown> {
  const items = new Map<string, unknown>();
  for (const item of Array.isArray(list) ? list : []) items.set(stepOfItem(is, item), item);
  return items;
}

/** Returns all fields of an applied configuration, which the applier then owns. */
export function fieldsOf(shape: Shape, value: unknown): FieldSet {
  const set = new FieldSet();
  collect(shape, value, [], set);
  return set;
}

function collect(shape: Shape, value: unknown, path: string[], set: FieldSet): void {
  const is = known(shape, undefined, value);
  if (
    is.is === 'scalar' ||
    (is.is === 'map' && is.atomic) ||
    (is.is === 'list' && is.keyedBy === 'nothing')
  ) {
    set.add(path);
  } else if (is.is === 'list') {
    for (const [step, item] of itemsByStep(is, value)) {
      const at = [...path, step];
      collect(is.items, item, at, set);
      set.add(at);
    }
  } else if (isJson(value)) {
    for (const name in value) {
      const part = value[name];
      const at = [...path, `f:${name}`];
      collect(fieldShape(is, name), part, at, set);
      // `collect` has added the paths within the field. The applier also owns the path of the field itself in two
      // cases: the schema does not declare the field (it is a map key), or the field is null or an empty object.
      if (part === null || (isJson(part) && isEmpty(part)) || !Object.hasOwn(is.fields, name)) set.add(at);
    }
  }
}
