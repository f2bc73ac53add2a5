import type { DeclaredKind, PolicyRule, RoleManifest } from '@vmwright/runtime';
import { NAME } from './declarations.ts';
import { VirtualMachine } from './virtualmachine/resource.ts';

const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'delete', 'patch', 'update'];

/** Roles for users. `aggregate` is the built-in role of Kubernetes into which the role is aggregated. */
const ROLES = [
  { role: 'admin', aggregate: 'admin', verbs: [...READ, ...WRITE, 'deletecollection'], writes: true },
  { role: 'editor', aggregate: 'edit', verbs: [...READ, ...WRITE], writes: true },
  { role: 'viewer', aggregate: 'view', verbs: READ, writes: false },
] as const;

/**
 * Returns an admin, an editor and a viewer role of a kind. They are aggregated into the built-in roles `admin`, `edit`
 * and `view`, with one exception: the viewer role of VirtualMachine is not aggregated. The spec of a VirtualMachine can
 * contain passwords, which users with `view` must not read.
 */
export function userRoles(kind: DeclaredKind): readonly RoleManifest[] {
  const { group, plural, declaration } = kind;
  const rule = (resource: string, verbs: readonly string[]): PolicyRule => ({
    apiGroups: [group],
    resources: [resource],
    verbs: verbs.toSorted(),
  });
  const isScalable = declaration.versions.some(({ scale }) => scale !== undefined);
  return ROLES.map(({ role, aggregate, verbs, writes }) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: {
      name: `${NAME}-${kind.kind.toLowerCase()}-${role}`,
      ...((kind.kind !== VirtualMachine.kind || aggregate !== 'view') && {
        labels: { [`rbac.authorization.k8s.io/aggregate-to-${aggregate}`]: 'true' },
      }),
    },
    rules: [
      rule(plural, verbs),
      rule(`${plural}/status`, ['get']),
      ...(isScalable ? [rule(`${plural}/scale`, writes ? ['get', 'patch', 'update'] : ['get'])] : []),
    ],
  }));
}
