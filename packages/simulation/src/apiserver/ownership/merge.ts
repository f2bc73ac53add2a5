import { isEmpty, isJson, type Json } from '../json.ts';
import { itemsByStep } from './compare.ts';
import type { FieldSet } from './field-set.ts';
import { fieldShape, known, type ListShape, type MapShape, type Shape, stepOfItem } from './shape.ts';

/** Merges an applied value into the live one. */
export function merged(shape: Shape, live: unknown, applied: unknown): unknown {
  if (applied === undefined) return live;
  if (live === undefined) return applied;
  const is = known(shape, live, applied);
  if (is.is === 'map' && !is.atomic && isJson(applied) && isJson(live)) return mergedMaps(is, live, applied);
  if (is.is === 'list' && is.keyedBy !== 'nothing' && Array.isArray(applied) && Array.isArray(live))
    return live.length === 0 && applied.length === 0 ? applied : mergedLists(is, live, applied);
  return applied;
}

function mergedMaps(is: MapShape, live: Json, applied: Json): unknown {
  if (isEmpty(live) && isEmpty(applied)) return applied;
  const result: Record<string, unknown> = {};
  for (const name in live) result[name] = merged(fieldShape(is, name), live[name], applied[name]);
  for (const name in applied) if (!Object.hasOwn(live, name)) result[name] = applied[name];
  return result;
}

/**
 * Merges the items of two lists. Applied items keep their applied order. An item that is only in the live list stays
 * before the next item that is in both lists.
 */
function mergedLists(is: ListShape, live: readonly unknown[], applied: readonly unknown[]): unknown {
  const ours = itemsByStep(is, applied);
  const theirs = itemsByStep(is, live);
  const left = [...ours.keys()];
  const shared = left.filter((step) => theirs.has(step));
  const result: unknown[] = [];
  const done = new Set<string>();
  const take = (step: string) => {
    done.add(step);
    result.push(merged(is.items, theirs.get(step), ours.get(step)));
    if (shared[0] === step) shared.shift();
  };
  const there = live.map((item) => stepOfItem(is, item));
  let at = 0;
  while (at < there.length || left.length > 0) {
    const step = there[at];
    const [next] = left;
    if (step !== undefined && next !== undefined) {
      if (step === next) {
        take(step);
        left.shift();
        at += 1;
        continue;
      }
      if (ours.has(step) && shared[0] !== undefined && shared[0] !== step) {
        at += 1; // both lists have the item, but another shared item comes before it in the applied order
        continue;
      }
    }
    if (step !== undefined) {
      if (!ours.has(step)) {
        result.push(live[at]);
        at += 1;
        continue;
      }
      if (done.has(step)) at += 1;
    }
    if (next !== undefined) {
      take(next);
      left.shift();
    }
  }
  return result;
}

/** Removes fields from a value. A map or list that becomes empty turns into null. */
export function removed(shape: Shape, value: unknown, fields: FieldSet): unknown {
  const is = known(shape, undefined, value);
  if (is.is === 'list' && Array.isArray(value)) {
    if (value.length === 0 || is.keyedBy === 'nothing') return null;
    const rest = value.flatMap((item) => {
      const step = stepOfItem(is, item);
      if (fields.members.has(step)) return [];
      const inner = fields.children.get(step);
      return [inner === undefined ? item : removed(is.items, item, inner)];
    });
    return rest.length > 0 ? rest : null;
  }
  if (is.is !== 'map' || !isJson(value)) return value;
  if (isEmpty(value) || is.atomic) return null;
  const rest: Record<string, unknown> = {};
  for (const name in value) {
    const step = `f:${name}`;
    if (fields.members.has(step)) continue;
    const inner = fields.children.get(step);
    rest[name] = inner === undefined ? value[name] : removed(fieldShape(is, name), value[name], inner);
  }
  return isEmpty(rest) ? null : rest;
}
