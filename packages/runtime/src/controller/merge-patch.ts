/**
 * Returns the JSON merge patch (RFC 7386) that turns `before` into `after`; undefined if they are equal. Arrays are
 * replaced as a whole. An undefined field equals a missing one.
 */
export function mergePatch(before: unknown, after: unknown): unknown {
  if (!isRecord(before) || !isRecord(after)) return same(before, after) ? undefined : after;
  const patch: [string, unknown][] = [];
  for (const [field, value] of Object.entries(after)) {
    if (value === undefined) continue;
    const difference = mergePatch(own(before, field), value);
    if (difference !== undefined) patch.push([field, difference]);
  }
  for (const [field, value] of Object.entries(before)) {
    if (value !== undefined && own(after, field) === undefined) patch.push([field, null]);
  }
  return patch.length === 0 ? undefined : Object.fromEntries(patch);
}

/** Returns a field, not an inherited property: labels and annotations may be named `constructor`. */
function own(record: Readonly<Record<string, unknown>>, field: string): unknown {
  return Object.hasOwn(record, field) ? record[field] : undefined;
}

function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, i) => same(item, b[i]));
  return isRecord(a) && isRecord(b) && mergePatch(a, b) === undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
