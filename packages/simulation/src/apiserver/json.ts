export type Json = Readonly<Record<string, unknown>>;

export function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isEmpty(value: Json): boolean {
  for (const _ in value) return false;
  return true;
}

/** Deep equality, ignoring the order of fields. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!same(a[i], b[i])) return false;
    return true;
  }
  if (!isJson(a) || !isJson(b)) return false;
  let fields = 0;
  for (const name in a) {
    fields += 1;
    if (!Object.hasOwn(b, name) || !same(a[name], b[name])) return false;
  }
  for (const _ in b) fields -= 1;
  return fields === 0;
}

/** Returns the value at a path of fields, or undefined. */
export function fieldAt(value: unknown, path: readonly string[]): unknown {
  let at = value;
  for (const name of path) at = isJson(at) ? at[name] : undefined;
  return at;
}

/** Returns a copy with the field at the path set. Creates missing objects along the path. */
export function withFieldAt(value: Json, path: readonly string[], set: unknown): Json {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  const inner = value[name];
  return { ...value, [name]: rest.length === 0 ? set : withFieldAt(isJson(inner) ? inner : {}, rest, set) };
}

export function without(value: Json, ...names: readonly string[]): Json {
  const rest: Record<string, unknown> = {};
  for (const name in value) if (!names.includes(name)) rest[name] = value[name];
  return rest;
}
