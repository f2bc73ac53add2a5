/**
 * Replaces values that differ between two servers by comparable aliases: UIDs and generated names by their order of
 * appearance, resource versions by their order within the object, and times by a constant.
 */
export class Names {
  readonly #prefix: string;
  #uids = new Map<string, string>();
  #versions = new Map<string, Map<string, string>>();
  #generated = new Map<string, string>();

  readonly #exact: boolean;

  /** @param exact whether resource versions and managed fields are compared */
  constructor(prefix: string, exact: boolean) {
    this.#prefix = prefix;
    this.#exact = exact;
  }

  /**
   * Returns a copy of the current aliases. A caller copies the aliases before an observation. If it discards the
   * observation, it continues with the copy, which lacks the aliases that the observation added.
   */
  copy(): Names {
    const copy = new Names(this.#prefix, this.#exact);
    copy.#uids = new Map(this.#uids);
    copy.#generated = new Map(this.#generated);
    copy.#versions = new Map(Array.from(this.#versions, ([uid, versions]) => [uid, new Map(versions)]));
    return copy;
  }

  /** Returns a copy of a value in which aliases replace server-specific values, with fields in a fixed order. */
  shared(value: unknown): unknown {
    const text = JSON.stringify(this.#walk(value)) ?? 'null';
    const renamed = text
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, (uid) => this.#uid(uid))
      .replaceAll(new RegExp(`${this.#prefix}-gen-[a-z0-9]{5}`, 'g'), (name) =>
        aliasIn(this.#generated, name, 'generated'),
      )
      .replaceAll(/(ResourceVersion in (?:the precondition|record)) \(\d+\)/g, '$1 (…)');
    return JSON.parse(renamed);
  }

  #walk(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#walk(item));
    if (typeof value !== 'object' || value === null) return value;
    const result: Record<string, unknown> = {};
    for (const [name, part] of Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (name === 'metadata') result[name] = this.#metadata(part);
      else if (name !== 'apiVersion' && name !== 'kind') result[name] = this.#walk(part);
    }
    return result;
  }

  #metadata(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    const metadata: Record<string, unknown> = { ...value };
    for (const name of ['creationTimestamp', 'deletionTimestamp'])
      if (typeof metadata[name] === 'string') metadata[name] = 'a time';
    if (!this.#exact) {
      delete metadata.resourceVersion;
      delete metadata.managedFields;
    }
    const { uid, resourceVersion, managedFields } = metadata;
    if (typeof resourceVersion === 'string')
      metadata.resourceVersion = this.#version(String(uid), resourceVersion);
    if (Array.isArray(managedFields)) metadata.managedFields = managedFields.map(withoutTime).sort();
    return this.#walk(metadata);
  }

  #uid(uid: string): string {
    return aliasIn(this.#uids, uid, 'uid');
  }

  #version(uid: string, version: string): string {
    const versions = this.#versions.get(uid) ?? new Map();
    this.#versions.set(uid, versions);
    return aliasIn(versions, version, 'version');
  }
}

function aliasIn(names: Map<string, string>, given: string, what: string): string {
  const alias = names.get(given) ?? `${what}-${names.size}`;
  names.set(given, alias);
  return alias;
}

/** Returns a managedFields entry without its time, as text with sorted fields. */
function withoutTime(entry: object): string {
  const ordered = (value: unknown): unknown =>
    typeof value !== 'object' || value === null
      ? value
      : Object.fromEntries(
          Object.entries(value)
            .filter(([name]) => name !== 'time')
            .sort(([a], [b]) => (a < b ? -1 : 1))
            .map(([name, part]) => [name, ordered(part)]),
        );
  return JSON.stringify(ordered(entry));
}
