import type { Watch } from '../controller/sources.ts';
import { Event } from '../kind/builtin/event.ts';
import { Lease } from '../kind/builtin/lease.ts';
import { Namespace } from '../kind/builtin/namespace.ts';
import { SubjectAccessReview, TokenReview } from '../kind/builtin/reviews.ts';
import { Secret } from '../kind/builtin/secret.ts';
import type { DeclaredKind } from '../kind/define.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { trustTargetsOf } from '../webhook/certificates/trust.ts';
import type { Webhook } from '../webhook/endpoints.ts';
import type { WebhookOptions } from '../webhook/webhooks.ts';
import { type PathRule, type Permission, type PolicyRule, rulesFor } from './permission.ts';

/** Parts of a controller's options from which its permissions follow. */
export interface ControllerPermissions {
  readonly for: Kind;
  readonly owns?: readonly Kind[];
  readonly watches?: readonly Pick<Watch, 'kind'>[];
  readonly reads?: readonly Kind[];
  readonly finalizer?: { readonly name: string };
  readonly permissions?: readonly Permission[];
}

/** Parts of a job's options from which its permissions follow. */
export type JobPermissions = Pick<ControllerPermissions, 'reads' | 'permissions'>;

/** Parts of a program from which its permissions follow. */
export interface ProgramPermissions {
  /** Name of the program, its service account and its roles. */
  readonly name: string;
  /** Namespace in which the program runs. */
  readonly namespace: string;
  readonly controllers: readonly ControllerPermissions[];
  readonly jobs?: readonly JobPermissions[];
  /** Namespaces that the program watches; it gets no permissions in others. @default all */
  readonly namespaces?: readonly string[];
  /** Lease for leader election. Its namespace defaults to the program's. */
  readonly election?: { readonly name: string; readonly namespace?: string };
  /** Leases for sharding. Their namespace defaults to the program's. */
  readonly sharding?: { readonly name: string; readonly namespace?: string };
  readonly webhooks?: Pick<WebhookOptions, 'secret' | 'namespace' | 'configuration'> & {
    readonly webhooks: readonly Webhook[];
  };
  /**
   * Whether the program serves `/metrics` over HTTPS with token authentication (`status.secure`). Adds the permission to
   * create TokenReviews and SubjectAccessReviews, and a ClusterRole for clients that read the metrics. @default false
   */
  readonly secureStatus?: boolean;
  /** Additional permissions in all watched namespaces. */
  readonly permissions?: readonly Permission[];
  /** Additional permissions in the program's own namespace. */
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
 * Returns the manifests of a service account with exactly the permissions that the program declares: a ClusterRole for
 * the objects that it watches and writes, a Role for its own Leases and Secrets, and their bindings.
 */
export function rbacOf(program: ProgramPermissions): (KubeObject | RoleManifest | BindingManifest)[] {
  const { name, namespace, namespaces } = program;
  const everywhere = [
    ...program.controllers.flatMap(permissionsOf),
    ...(program.jobs ?? []).flatMap(({ reads = [], permissions = [] }) => [
      ...reads.map(watching),
      RECORD_EVENTS,
      ...permissions,
    ]),
    ...webhookPermissions(program),
    ...(program.secureStatus ? TOKEN_REVIEWS : []),
    // A cache asks whether a namespace that it may not list was deleted.
    ...(namespaces === undefined
      ? []
      : [{ kind: Namespace, verbs: ['get'], names: namespaces } satisfies Permission]),
    ...(program.permissions ?? []),
  ];
  const clusterScoped = everywhere.filter(({ kind }) => kind.scope === 'Cluster');
  const namespaced = everywhere.filter(({ kind }) => kind.scope === 'Namespaced');
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } };
  const bound = (
    permissions: readonly Permission[],
    role: string,
    boundIn: readonly string[] | undefined,
  ) => {
    const rules = rulesFor(permissions);
    if (rules.length === 0) return [];
    const bindings = boundIn?.map((each) => binding('RoleBinding', 'ClusterRole', role, program, each));
    return [
      roleManifest('ClusterRole', { name: role }, rules),
      ...(bindings ?? [binding('ClusterRoleBinding', 'ClusterRole', role, program)]),
    ];
  };
  return [
    account,
    ...(namespaces === undefined
      ? bound(everywhere, name, undefined)
      : [...bound(clusterScoped, `${name}-cluster`, undefined), ...bound(namespaced, name, namespaces)]),
    ...[...ownPermissionsOf(program)].flatMap(([each, permissions]) => [
      roleManifest('Role', { name: `${name}-own`, namespace: each }, rulesFor(permissions)),
      binding('RoleBinding', 'Role', `${name}-own`, program, each),
    ]),
    // Not bound here: the administrator binds it to the service account of Prometheus.
    ...(program.secureStatus
      ? [roleManifest('ClusterRole', { name: `${name}-metrics-reader` }, [METRICS_READER])]
      : []),
  ];
}

function watching(kind: Kind): Permission {
  return { kind, verbs: ['list', 'watch'] };
}

/** Returns the permissions that the runtime needs on behalf of a controller, and those that the controller declares. */
function permissionsOf(controller: ControllerPermissions): Permission[] {
  const { for: kind, owns = [], watches = [], reads = [], finalizer, permissions = [] } = controller;
  const watched = [kind, ...owns, ...watches.map((each) => each.kind), ...reads];
  return [
    ...watched.map(watching),
    ...(hasStatus(kind) ? [{ kind, verbs: ['patch'], subresource: 'status' } satisfies Permission] : []),
    ...(finalizer === undefined ? [] : [{ kind, verbs: ['patch'] } satisfies Permission]),
    // The admission plugin OwnerReferencesPermissionEnforcement requires it for `blockOwnerDeletion`.
    ...(owns.length === 0
      ? []
      : [{ kind, verbs: ['update'], subresource: 'finalizers' } satisfies Permission]),
    RECORD_EVENTS,
    ...permissions,
  ];
}

function webhookPermissions({ name, webhooks }: ProgramPermissions): Permission[] {
  if (webhooks === undefined) return [];
  const places = trustTargetsOf(webhooks.configuration ?? name, webhooks.webhooks);
  return places.map(
    (place): Permission => ({ kind: place.kind, names: [place.name], verbs: ['get', 'patch'] }),
  );
}

/** Returns the permissions for the program's own Leases, Secrets and events, by namespace. */
function ownPermissionsOf(program: ProgramPermissions): ReadonlyMap<string, readonly Permission[]> {
  const { name, namespace, election, sharding, webhooks } = program;
  const byNamespace = new Map<string, Permission[]>();
  const add = (target: string, ...permissions: readonly Permission[]) => {
    const known = byNamespace.get(target);
    if (known === undefined) byNamespace.set(target, [...permissions]);
    else known.push(...permissions);
  };
  if (election !== undefined)
    add(
      election.namespace ?? namespace,
      { kind: Lease, verbs: ['create'] }, // RBAC cannot restrict create by name
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
  // Events about cluster-scoped objects are stored in the namespace default.
  if (program.namespaces !== undefined && program.controllers.some((each) => each.for.scope === 'Cluster'))
    add('default', RECORD_EVENTS);
  for (const permission of program.ownPermissions ?? []) add(namespace, permission);
  return byNamespace;
}

const TOKEN_REVIEWS: readonly Permission[] = [
  { kind: TokenReview, verbs: ['create'] },
  { kind: SubjectAccessReview, verbs: ['create'] },
];

const METRICS_READER: PathRule = { nonResourceURLs: ['/metrics'], verbs: ['get'] };

const RECORD_EVENTS: Permission = { kind: Event, verbs: ['create', 'patch'] };

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
  roleKind: 'Role' | 'ClusterRole',
  role: string,
  { name, namespace }: ProgramPermissions,
  boundIn?: string,
): BindingManifest {
  return {
    apiVersion: `${RBAC}/v1`,
    kind,
    metadata: { name: role, ...(boundIn !== undefined && { namespace: boundIn }) },
    roleRef: { apiGroup: RBAC, kind: roleKind, name: role },
    subjects: [{ kind: 'ServiceAccount', name, namespace }],
  };
}
