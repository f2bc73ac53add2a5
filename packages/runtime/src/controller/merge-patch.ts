/**
 * The JSON merge patch (RFC 7386) that makes `after` of `before`; undefined where they are the same. Lists count as one
 * value. A field that is undefined is one that is not there.
 */
export function mergePatch(before: unknown, after: unknown): unknown {
  if (!isRecord(before) || !isRecord(after)) return same(before, after) ? undefined : after;
  const patch: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(after)) {
    if (value === undefined) continue;
    const difference = mergePatch(before[field], value);
    if (difference !== undefined) patch[field] = difference;
  }
  for (const [field, value] of Object.entries(before)) {
    if (value !== undefined && after[field] === undefined) patch[field] = null;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
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
