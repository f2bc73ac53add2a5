/**
 * What is by nature different on two servers, under names that are the same: uids in the order in which they came up,
 * resource versions by how many of the object came up before, generated names, and times.
 */
export class Names {
  readonly #prefix: string;
  #uids = new Map<string, string>();
  #versions = new Map<string, Map<string, string>>();
  #generated = new Map<string, string>();

  readonly #exact: boolean;

  /** @param exact whether versions and owners count */
  constructor(prefix: string, exact: boolean) {
    this.#prefix = prefix;
    this.#exact = exact;
  }

  /** The same names, to look at something that may turn out not to count. */
  copy(): Names {
    const copy = new Names(this.#prefix, this.#exact);
    copy.#uids = new Map(this.#uids);
    copy.#generated = new Map(this.#generated);
    copy.#versions = new Map(Array.from(this.#versions, ([uid, versions]) => [uid, new Map(versions)]));
    return copy;
  }

  /** A copy under shared names, with what does not count in one order. */
  shared(value: unknown): unknown {
    const text = JSON.stringify(this.#walk(value)) ?? 'null';
    const renamed = text
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, (uid) => this.#uid(uid))
      .replaceAll(new RegExp(`${this.#prefix}-gen-[a-z0-9]{5}`, 'g'), (name) =>
        nameIn(this.#generated, name, 'generated'),
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
    return nameIn(this.#uids, uid, 'uid');
  }

  #version(uid: string, version: string): string {
    const versions = this.#versions.get(uid) ?? new Map();
    this.#versions.set(uid, versions);
    return nameIn(versions, version, 'version');
  }
}

function nameIn(names: Map<string, string>, given: string, what: string): string {
  const known = names.get(given) ?? `${what}-${names.size}`;
  names.set(given, known);
  return known;
}

/** As text with its fields in order, to be sorted and compared. */
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
