import type { Kind } from '../kind/kind.ts';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'patch' | 'update' | 'delete' | 'deletecollection';

/** Permission for objects of one kind. */
export interface Permission {
  readonly kind: Kind;
  readonly verbs: readonly Verb[];
  /** Subresource, such as `status` or `scale`. @default the main resource */
  readonly subresource?: string;
  /**
   * Restricts the rule to these object names. RBAC then never allows `create`, and allows `list` and `watch` only with
   * a field selector for one of the names. @default all objects
   */
  readonly names?: readonly string[];
}

/** Rule of a Role or ClusterRole. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** Rule of a ClusterRole for non-resource URLs. */
export interface PathRule {
  readonly nonResourceURLs: readonly string[];
  readonly verbs: readonly string[];
}

/** Merges permissions into one rule per resource and set of names, in a stable order. */
export function rulesFor(permissions: Iterable<Permission>): PolicyRule[] {
  const rules = new Map<string, { rule: PolicyRule; verbs: Set<string> }>();
  for (const { kind, verbs, subresource, names } of permissions) {
    const resource = subresource === undefined ? kind.plural : `${kind.plural}/${subresource}`;
    const resourceNames = names?.toSorted();
    const key = [kind.group, resource, ...(resourceNames ?? [])].join(' ');
    const known = rules.get(key) ?? {
      rule: {
        apiGroups: [kind.group],
        resources: [resource],
        ...(resourceNames && { resourceNames }),
        verbs: [],
      },
      verbs: new Set<string>(),
    };
    for (const verb of verbs) known.verbs.add(verb);
    rules.set(key, known);
  }
  return [...rules]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { rule, verbs }]) => ({ ...rule, verbs: [...verbs].toSorted() }));
}
