import { type Kind, type ProgramPermissions, rbacOf } from '@vmwright/runtime';
import { type AuditedRequest, type ControlPlane, field } from '@vmwright/testbed';
import { expect } from 'vitest';
import { programPermissions } from '../src/declarations.ts';
import { SYSTEM } from './installed.ts';

/** A permission that a role grants. */
interface Grant extends Pick<AuditedRequest, 'verb' | 'group' | 'resource' | 'name'> {
  /** Namespace of a Role; undefined for a ClusterRole. */
  readonly namespace: string | undefined;
}

/**
 * Permissions that the operator needs, but uses in no request. Other components check that the operator has them:
 * - `finalizers`: the admission plugin OwnerReferencesPermissionEnforcement, for `blockOwnerDeletion`
 * - `datavolumes/source`: CDI, for clones from another namespace
 */
const CHECKED_ELSEWHERE = /\/finalizers$|^datavolumes\/source$/;

/** Permissions that the operator needs in addition to those of its controllers. */
export const OPERATOR_PERMISSIONS: ProgramPermissions = {
  ...programPermissions(SYSTEM),
  controllers: [],
  jobs: [],
};

/** Returns the permissions of the controllers of a kind. */
export function permissionsFor(kind: Kind): ProgramPermissions {
  const controllers = programPermissions(SYSTEM).controllers.filter((each) => each.for === kind);
  return { name: 'vmwright', namespace: SYSTEM, controllers };
}

/**
 * Checks that every request of the operator for a resource was permitted, and that the operator used every permission.
 * @param unusedHere permissions that the calling test file does not use, as `verb resource name`
 */
export async function expectExactPermissions(
  { audited }: Pick<ControlPlane, 'audited'>,
  permissions: ProgramPermissions,
  unusedHere: readonly string[] = [],
): Promise<void> {
  expectExactUse(await audited(), rbacOf(permissions), unusedHere);
}

/**
 * Checks that all requests for resources were allowed, and that together they use every permission of the roles.
 * @param manifests Roles and ClusterRoles; other objects are ignored
 */
export function expectExactUse(
  requests: readonly AuditedRequest[],
  manifests: readonly RoleManifest[],
  unusedHere: readonly string[] = [],
): void {
  expect(requests.length).toBeGreaterThan(0);
  expectAllowed(requests);
  const unused = manifests
    .flatMap(grantsOf)
    .filter(({ resource }) => !CHECKED_ELSEWHERE.test(resource))
    .filter((grant) => !requests.some((request) => isUse(request, grant)));
  expect(new Set(unused.map(textOf))).toEqual(new Set(unusedHere));
}

/** Checks that the API server has denied no request for a resource. */
export function expectAllowed(requests: readonly AuditedRequest[]): void {
  const forbidden = requests.filter(({ allowed, resource }) => !allowed && resource !== '');
  expect(new Set(forbidden.map(textOf))).toEqual(new Set());
}

interface RoleManifest {
  readonly metadata: { readonly namespace?: string | undefined };
  readonly rules?: unknown;
}

function grantsOf({ metadata: { namespace }, rules }: RoleManifest): readonly Grant[] {
  return listOf(rules).flatMap((rule) =>
    textsOf(rule, 'verbs').flatMap((verb) =>
      textsOf(rule, 'apiGroups').flatMap((group) =>
        textsOf(rule, 'resources').flatMap((resource) =>
          namesIn(rule).map((name) => ({ verb, group, resource, name, namespace })),
        ),
      ),
    ),
  );
}

/** Returns the names to which a rule is limited; one undefined name if it is not limited. */
function namesIn(rule: unknown): readonly (string | undefined)[] {
  const names = textsOf(rule, 'resourceNames');
  return names.length === 0 ? [undefined] : names;
}

function textsOf(rule: unknown, name: string): readonly string[] {
  return listOf(field(rule, name)).map(String);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/**
 * Whether a request uses a permission. A watch also counts as a use of `list`, because a cache lists only if the API
 * server does not support `sendInitialEvents`.
 */
function isUse(request: AuditedRequest, { verb, group, resource, name, namespace }: Grant): boolean {
  return (
    (request.verb === verb || (request.verb === 'watch' && verb === 'list')) &&
    request.group === group &&
    request.resource === resource &&
    (name === undefined || request.name === name) &&
    (namespace === undefined || request.namespace === namespace)
  );
}

function textOf({ verb, resource, name }: Pick<Grant, 'verb' | 'resource' | 'name'>): string {
  return [verb, resource, ...(name === undefined ? [] : [name])].join(' ');
}
