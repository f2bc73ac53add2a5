import type { Kind } from '../kind/kind.ts';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'patch' | 'update' | 'delete' | 'deletecollection';

/** Something that a program does to objects of a kind. */
export interface Permission {
  readonly kind: Kind;
  readonly verbs: readonly Verb[];
  /** `status`, `scale`, … @default the objects themselves */
  readonly subresource?: string;
  /** Only objects of these names; not for `create` and `list`, which have none. @default all */
  readonly names?: readonly string[];
}

/** As a Role has it. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** As a ClusterRole has it for paths of a server that are no objects. */
export interface PathRule {
  readonly nonResourceURLs: readonly string[];
  readonly verbs: readonly string[];
}

/** One rule for each resource (and names of it), with all that anybody needs of it; always in the same order. */
export function rulesFor(needs: Iterable<Permission>): PolicyRule[] {
  const rules = new Map<string, { rule: PolicyRule; verbs: Set<string> }>();
  for (const { kind, verbs, subresource, names } of needs) {
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
