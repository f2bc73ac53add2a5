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

/** Options of a controller that determine its permissions. */
export interface ControllerPermissions {
  readonly for: Kind;
  readonly owns?: readonly Kind[];
  readonly watches?: readonly Pick<Watch, 'kind'>[];
  readonly reads?: readonly Kind[];
  readonly finalizer?: { readonly name: string };
  readonly permissions?: readonly Permission[];
  /** Additional permissions in the program's own namespace. */
  readonly ownPermissions?: readonly Permission[];
  /**
   * Part of the program that these permissions belong to. Separate roles grant them, with names that start with
   * `<program>-<role>`. An installation can omit these roles. @default the roles of the program grant the permissions
   */
  readonly role?: string;
}

/** Options of a job that determine its permissions. */
export type JobPermissions = Pick<ControllerPermissions, 'reads' | 'permissions' | 'role'>;

/** Parts of a program that determine its permissions. */
export interface ProgramPermissions {
  /** Name of the program, its service account and its roles. */
  readonly name: string;
  /** Namespace in which the program runs. */
  readonly namespace: string;
  readonly controllers: readonly ControllerPermissions[];
  readonly jobs?: readonly JobPermissions[];
  /**
   * Namespaces that the program watches; the permissions for objects that its controllers and jobs use are limited to
   * these namespaces. @default all
   */
  readonly namespaces?: readonly string[];
  /** Lease for leader election. Its namespace defaults to the program's. */
  readonly election?: { readonly name: string; readonly namespace?: string };
  /** Leases for sharding. Their namespace defaults to the program's. */
  readonly sharding?: { readonly name: string; readonly namespace?: string };
  readonly webhooks?: Pick<WebhookOptions, 'secret' | 'namespace' | 'configuration'> & {
    readonly webhooks: readonly Webhook[];
  };
  /**
   * Whether the program serves `/metrics` over HTTPS with token authentication (`status.secure`). If true, `rbacOf`
   * adds the permission to create TokenReviews and SubjectAccessReviews, and a ClusterRole for clients that read the
   * metrics. @default false
   */
  readonly secureStatus?: boolean;
  /** Additional permissions in all watched namespaces. */
  readonly permissions?: readonly Permission[];
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
 * Returns the manifests of a service account with exactly the permissions that the program declares. There is one set
 * of roles for the program itself, and one for each `role` of its controllers and jobs. A set consists of:
 * - ClusterRoles for the objects that are watched and written,
 * - a Role in each namespace with objects of the program itself, such as its Leases,
 * - the bindings of these roles.
 */
export function rbacOf(program: ProgramPermissions): (KubeObject | RoleManifest | BindingManifest)[] {
  const { name, namespace } = program;
  const controllers = Map.groupBy(program.controllers, ({ role }) => role);
  const jobs = Map.groupBy(program.jobs ?? [], ({ role }) => role);
  const roles = new Set([undefined, ...controllers.keys(), ...jobs.keys()]);
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
    ...[...roles].flatMap((role) => {
      const part = { controllers: controllers.get(role) ?? [], jobs: jobs.get(role) ?? [] };
      const [watched, own] = [watchedPermissionsOf(part), ownPermissionsOf(part, program)];
      return role === undefined
        ? rolesOf(
            program,
            name,
            [...watched, ...programPermissionsOf(program)],
            [...programOwnPermissionsOf(program), ...own],
          )
        : rolesOf(program, `${name}-${role}`, watched, own);
    }),
    // This role is not bound here: the administrator binds it to the service account of Prometheus.
    ...(program.secureStatus
      ? [roleManifest('ClusterRole', { name: `${name}-metrics-reader` }, [METRICS_READER])]
      : []),
  ];
}

/** Controllers and jobs that share one set of roles. */
interface ProgramPart {
  readonly controllers: readonly ControllerPermissions[];
  readonly jobs: readonly JobPermissions[];
}

/** A permission in one namespace. */
type OwnPermission = readonly [namespace: string, Permission];

/**
 * Returns the roles with these permissions, and the bindings of the roles.
 * @param watched permissions in all watched namespaces
 */
function rolesOf(
  program: ProgramPermissions,
  name: string,
  watched: readonly Permission[],
  own: readonly OwnPermission[],
): (RoleManifest | BindingManifest)[] {
  const { namespaces } = program;
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
  const scoped = (scope: Kind['scope']) => watched.filter(({ kind }) => kind.scope === scope);
  return [
    ...(namespaces === undefined
      ? bound(watched, name, undefined)
      : [
          ...bound(scoped('Cluster'), `${name}-cluster`, undefined),
          ...bound(scoped('Namespaced'), name, namespaces),
        ]),
    ...[...Map.groupBy(own, ([namespace]) => namespace)].flatMap(([each, permissions]) => [
      roleManifest(
        'Role',
        { name: `${name}-own`, namespace: each },
        rulesFor(permissions.map(([, permission]) => permission)),
      ),
      binding('RoleBinding', 'Role', `${name}-own`, program, each),
    ]),
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
    // The admission plugin OwnerReferencesPermissionEnforcement requires this permission for `blockOwnerDeletion`.
    ...(owns.length === 0
      ? []
      : [{ kind, verbs: ['update'], subresource: 'finalizers' } satisfies Permission]),
    RECORD_EVENTS,
    ...permissions,
  ];
}

function watchedPermissionsOf({ controllers, jobs }: ProgramPart): readonly Permission[] {
  return [
    ...controllers.flatMap(permissionsOf),
    ...jobs.flatMap(({ reads = [], permissions = [] }) => [
      ...reads.map(watching),
      RECORD_EVENTS,
      ...permissions,
    ]),
  ];
}

/** Returns the permissions that a program needs in all watched namespaces, regardless of its controllers. */
function programPermissionsOf(program: ProgramPermissions): readonly Permission[] {
  const { namespaces: names, secureStatus, permissions = [] } = program;
  return [
    ...webhookPermissions(program),
    ...(secureStatus ? TOKEN_REVIEWS : []),
    // If listing objects in a namespace is forbidden, the cache reads the Namespace to see whether it was deleted.
    ...(names === undefined ? [] : [{ kind: Namespace, verbs: ['get'], names } satisfies Permission]),
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

/** Returns the permissions for the program's own Leases and Secrets. */
function programOwnPermissionsOf(program: ProgramPermissions): readonly OwnPermission[] {
  const { name, namespace, election, sharding, webhooks } = program;
  const all: OwnPermission[] = [];
  const add = (target = namespace, ...permissions: readonly Permission[]) => {
    for (const permission of permissions) all.push([target, permission]);
  };
  if (election !== undefined)
    add(
      election.namespace,
      { kind: Lease, verbs: ['create'] }, // RBAC cannot restrict create by name
      { kind: Lease, verbs: ['get', 'patch'], names: [election.name] },
    );
  if (sharding !== undefined)
    add(sharding.namespace, { kind: Lease, verbs: ['get', 'list', 'create', 'patch', 'delete'] });
  if (webhooks !== undefined)
    add(
      webhooks.namespace,
      { kind: Secret, verbs: ['create'] },
      { kind: Secret, verbs: ['get', 'patch'], names: [webhooks.secret ?? `${name}-webhook-certificate`] },
    );
  return all;
}

/** Returns the permissions that controllers need in the program's own namespace and for events in `default`. */
function ownPermissionsOf(
  { controllers }: ProgramPart,
  { namespace, namespaces }: ProgramPermissions,
): readonly OwnPermission[] {
  return [
    // Events about cluster-scoped objects are stored in the namespace `default`.
    ...(namespaces !== undefined && controllers.some((each) => each.for.scope === 'Cluster')
      ? [['default', RECORD_EVENTS] satisfies OwnPermission]
      : []),
    ...controllers.flatMap(({ ownPermissions = [] }) =>
      ownPermissions.map((permission): OwnPermission => [namespace, permission]),
    ),
  ];
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
