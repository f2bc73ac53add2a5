/**
 * Set of fields owned by a manager in server-side apply. Path steps are named as in `fieldsV1`: `f:spec` for a field,
 * `k:{"name":"root"}` for an item of a list map, `v:"x"` for an item of a set. A set that contains a field does
 * not necessarily contain the fields within it.
 */
export class FieldSet {
  readonly members = new Set<string>();
  readonly children = new Map<string, FieldSet>();

  get isEmpty(): boolean {
    return this.members.size === 0 && this.children.size === 0;
  }

  add(path: readonly string[]): void {
    let set: FieldSet = this;
    for (const [index, step] of path.entries()) {
      if (index === path.length - 1) set.members.add(step);
      else set = set.child(step);
    }
  }

  /** Returns the set of fields within a step; creates it if missing. */
  child(step: string): FieldSet {
    const existing = this.children.get(step);
    if (existing !== undefined) return existing;
    const child = new FieldSet();
    this.children.set(step, child);
    return child;
  }

  union(other: FieldSet): FieldSet {
    const result = new FieldSet();
    for (const step of this.members) result.members.add(step);
    for (const step of other.members) result.members.add(step);
    for (const [step, set] of this.children) {
      const theirs = other.children.get(step);
      result.children.set(step, theirs === undefined ? set : set.union(theirs));
    }
    for (const [step, set] of other.children) if (!this.children.has(step)) result.children.set(step, set);
    return result;
  }

  /** Returns this set without the fields of the other set. Fields nested in a removed field are kept. */
  difference(other: FieldSet): FieldSet {
    const result = new FieldSet();
    for (const step of this.members) if (!other.members.has(step)) result.members.add(step);
    for (const [step, set] of this.children) {
      const theirs = other.children.get(step);
      const rest = theirs === undefined ? set : set.difference(theirs);
      if (!rest.isEmpty) result.children.set(step, rest);
    }
    return result;
  }

  intersection(other: FieldSet): FieldSet {
    const result = new FieldSet();
    for (const step of this.members) if (other.members.has(step)) result.members.add(step);
    for (const [step, set] of this.children) {
      const theirs = other.children.get(step);
      const both = theirs && set.intersection(theirs);
      if (both !== undefined && !both.isEmpty) result.children.set(step, both);
    }
    return result;
  }

  /** Returns this set without a top-level field and everything within it. */
  withoutField(name: string): FieldSet {
    const step = `f:${name}`;
    if (!this.members.has(step) && !this.children.has(step)) return this;
    const result = new FieldSet();
    for (const each of this.members) if (each !== step) result.members.add(each);
    for (const [each, set] of this.children) if (each !== step) result.children.set(each, set);
    return result;
  }

  equals(other: FieldSet): boolean {
    return (
      this.members.size === other.members.size &&
      this.children.size === other.children.size &&
      this.members.isSubsetOf(other.members) &&
      this.children.entries().every(([step, set]) => {
        const theirs = other.children.get(step);
        return theirs !== undefined && set.equals(theirs);
      })
    );
  }

  /** Returns the set in the form of `managedFields[].fieldsV1`. */
  toJson(): Record<string, unknown> {
    const json: Record<string, unknown> = {};
    for (const step of this.members) json[step] = {};
    for (const [step, set] of this.children)
      json[step] = this.members.has(step) ? { '.': {}, ...set.toJson() } : set.toJson();
    return json;
  }

  /** Yields each field as errors name it (`.spec.disks[name="root"].size`), outer fields first. */
  *paths(prefix = ''): Generator<string> {
    for (const step of [...this.members].sort(byStep)) yield prefix + stepText(step);
    const inner = [...this.children].sort(([a], [b]) => byStep(a, b));
    for (const [step, set] of inner) yield* set.paths(prefix + stepText(step));
  }
}

/** Orders fields before keys and keys before values, which is the alphabetical order of their prefixes. */
function byStep(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function stepText(step: string): string {
  const rest = step.slice(2);
  if (step.startsWith('f:')) return `.${rest}`;
  if (step.startsWith('v:')) return `[=${rest}]`;
  const keys: Readonly<Record<string, unknown>> = JSON.parse(rest);
  const pairs = Object.entries(keys).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return `[${pairs.join(',')}]`;
}
