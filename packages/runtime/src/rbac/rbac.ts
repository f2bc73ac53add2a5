import type { Watch } from '../controller/sources.ts';
import { Event } from '../kind/builtin/event.ts';
import { Lease } from '../kind/builtin/lease.ts';
import { SubjectAccessReview, TokenReview } from '../kind/builtin/reviews.ts';
import { Secret } from '../kind/builtin/secret.ts';
import type { DeclaredKind } from '../kind/define.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { placesOf } from '../webhook/certificates/trust.ts';
import type { Webhook } from '../webhook/endpoints.ts';
import type { WebhookOptions } from '../webhook/webhooks.ts';
import { type PathRule, type Permission, type PolicyRule, rulesFor } from './permission.ts';

/** As much of a controller as tells what it may do; its options are one. */
export interface ControllerPermissions {
  readonly for: Kind;
  readonly owns?: readonly Kind[];
  readonly watches?: readonly Pick<Watch, 'kind'>[];
  readonly reads?: readonly Kind[];
  readonly finalizer?: { readonly name: string };
  readonly permissions?: readonly Permission[];
}

/** The same of a job. */
export type JobPermissions = Pick<ControllerPermissions, 'reads' | 'permissions'>;

/** A program, by what its manager is given. */
export interface ProgramPermissions {
  /** Of the program, its service account and its roles. */
  readonly name: string;
  /** In which it runs. */
  readonly namespace: string;
  readonly controllers: readonly ControllerPermissions[];
  readonly jobs?: readonly JobPermissions[];
  /** Those it looks at; in others it may do nothing. @default all */
  readonly namespaces?: readonly string[];
  /** Of the Lease, or of the Leases of the shards; in the program's namespace unless they say another. */
  readonly election?: { readonly name: string; readonly namespace?: string };
  readonly sharding?: { readonly name: string; readonly namespace?: string };
  readonly webhooks?: Pick<WebhookOptions, 'secret' | 'namespace' | 'configuration'> & {
    readonly webhooks: readonly Webhook[];
  };
  /**
   * Whether it serves `/metrics` over HTTPS to clients with a token (`status.secure`): it may then ask the API server about
   * tokens, and there is a ClusterRole for those who read the metrics. @default false
   */
  readonly secureStatus?: boolean;
  /** What it does besides, in any namespace. */
  readonly permissions?: readonly Permission[];
  /** What it does besides, in its own namespace. */
  readonly ownPermissions?: readonly Permission[];
}

export interface RoleManifest extends KubeObject {
  readonly rules: readonly (PolicyRule | PathRule)[];
}

export interface BindingManifest extends KubeObject {
  readonly roleRef: { readonly apiGroup: string; readonly kind: string; readonly name: string };
  readonly subjects: readonly { readonly kind: string; readonly name: string; readonly namespace: string }[];
}

const RBAC = 'rbac.authorization.k8s.io';

/**
 * A service account and the roles with which the program can do what it declares, and nothing else: a ClusterRole for
 * what it watches and writes, and a Role for what it keeps in its own namespace.
 */
export function rbacOf(program: ProgramPermissions): (KubeObject | RoleManifest | BindingManifest)[] {
  const { name, namespace, namespaces } = program;
  const everywhere = [
    ...program.controllers.flatMap(permissionsOf),
    ...(program.jobs ?? []).flatMap(({ reads = [], permissions = [] }) => [
      ...reads.map(following),
      TELLING,
      ...permissions,
    ]),
    ...webhookPermissions(program),
    ...(program.secureStatus ? TOKEN_REVIEWS : []),
    ...(program.permissions ?? []),
  ];
  const ofCluster = everywhere.filter(({ kind }) => kind.scope === 'Cluster');
  const inNamespaces = everywhere.filter(({ kind }) => kind.scope === 'Namespaced');
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } };
  const bound = (needs: readonly Permission[], role: string, where: readonly string[] | undefined) => {
    const rules = rulesFor(needs);
    if (rules.length === 0) return [];
    const bindings = where?.map((each) => binding('RoleBinding', 'ClusterRole', role, program, each));
    return [
      roleManifest('ClusterRole', { name: role }, rules),
      ...(bindings ?? [binding('ClusterRoleBinding', 'ClusterRole', role, program)]),
    ];
  };
  return [
    account,
    ...(namespaces === undefined
      ? bound(everywhere, name, undefined)
      : [...bound(ofCluster, `${name}-cluster`, undefined), ...bound(inNamespaces, name, namespaces)]),
    ...[...ownPermissionsOf(program)].flatMap(([where, needs]) => [
      roleManifest('Role', { name: `${name}-own`, namespace: where }, rulesFor(needs)),
      binding('RoleBinding', 'Role', `${name}-own`, program, where),
    ]),
    // Bound to nobody: for whoever runs Prometheus.
    ...(program.secureStatus
      ? [roleManifest('ClusterRole', { name: `${name}-metrics-reader` }, [METRICS_READER])]
      : []),
  ];
}

function following(kind: Kind): Permission {
  return { kind, verbs: ['list', 'watch'] };
}

/** By what the runtime does for a controller, and what the controller says that it does itself. */
function permissionsOf(controller: ControllerPermissions): Permission[] {
  const { for: kind, owns = [], watches = [], reads = [], finalizer, permissions = [] } = controller;
  const followed = [kind, ...owns, ...watches.map((watched) => watched.kind), ...reads];
  return [
    ...followed.map(following),
    ...(hasStatus(kind) ? [{ kind, verbs: ['patch'], subresource: 'status' } satisfies Permission] : []),
    ...(finalizer === undefined ? [] : [{ kind, verbs: ['patch'] } satisfies Permission]),
    // Where the cluster asks for it: who makes an object the owner of another could thereby keep it from being deleted.
    ...(owns.length === 0
      ? []
      : [{ kind, verbs: ['update'], subresource: 'finalizers' } satisfies Permission]),
    TELLING,
    ...permissions,
  ];
}

function webhookPermissions({ name, webhooks }: ProgramPermissions): Permission[] {
  if (webhooks === undefined) return [];
  const places = placesOf(webhooks.configuration ?? name, webhooks.webhooks);
  return places.map(
    (place): Permission => ({ kind: place.kind, names: [place.name], verbs: ['get', 'patch'] }),
  );
}

/** What it keeps for itself, by namespace. */
function ownPermissionsOf(program: ProgramPermissions): ReadonlyMap<string, readonly Permission[]> {
  const { name, namespace, election, sharding, webhooks } = program;
  const byNamespace = new Map<string, Permission[]>();
  const add = (where: string, ...needs: readonly Permission[]) => {
    const known = byNamespace.get(where);
    if (known === undefined) byNamespace.set(where, [...needs]);
    else known.push(...needs);
  };
  if (election !== undefined)
    add(
      election.namespace ?? namespace,
      { kind: Lease, verbs: ['create'] }, // which has no name yet
      { kind: Lease, verbs: ['get', 'patch'], names: [election.name] },
    );
  if (sharding !== undefined)
    add(sharding.namespace ?? namespace, {
      kind: Lease,
      verbs: ['get', 'list', 'create', 'patch', 'delete'],
    });
  if (webhooks !== undefined)
    add(
      webhooks.namespace ?? namespace,
      { kind: Secret, verbs: ['create'] },
      { kind: Secret, verbs: ['get', 'patch'], names: [webhooks.secret ?? `${name}-webhook-certificate`] },
    );
  // Where events about cluster-wide objects are kept.
  if (program.namespaces !== undefined && program.controllers.some((each) => each.for.scope === 'Cluster'))
    add('default', TELLING);
  for (const need of program.ownPermissions ?? []) add(namespace, need);
  return byNamespace;
}

const TOKEN_REVIEWS: readonly Permission[] = [
  { kind: TokenReview, verbs: ['create'] },
  { kind: SubjectAccessReview, verbs: ['create'] },
];

const METRICS_READER: PathRule = { nonResourceURLs: ['/metrics'], verbs: ['get'] };

const TELLING: Permission = { kind: Event, verbs: ['create', 'patch'] };

function hasStatus(kind: Kind): boolean {
  return isDeclared(kind) && kind.declaration.versions.some(({ status }) => status !== undefined);
}

function isDeclared(kind: Kind): kind is DeclaredKind {
  return 'declaration' in kind;
}

function roleManifest(
  kind: 'Role' | 'ClusterRole',
  metadata: KubeObject['metadata'],
  rules: readonly (PolicyRule | PathRule)[],
): RoleManifest {
  return { apiVersion: `${RBAC}/v1`, kind, metadata, rules };
}

function binding(
  kind: 'RoleBinding' | 'ClusterRoleBinding',
  of: 'Role' | 'ClusterRole',
  role: string,
  { name, namespace }: ProgramPermissions,
  where?: string,
): BindingManifest {
  return {
    apiVersion: `${RBAC}/v1`,
    kind,
    metadata: { name: role, ...(where !== undefined && { namespace: where }) },
    roleRef: { apiGroup: RBAC, kind: of, name: role },
    subjects: [{ kind: 'ServiceAccount', name, namespace }],
  };
}
