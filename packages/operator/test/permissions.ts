import { type Kind, type ProgramPermissions, rbacOf } from '@vmwright/runtime';
import type { AuditedRequest, ControlPlane } from '@vmwright/testbed';
import { expect } from 'vitest';
import { programPermissions } from '../src/declarations.ts';
import { SYSTEM } from './installed.ts';

/** A permission that a role grants. */
interface Grant extends Pick<AuditedRequest, 'verb' | 'group' | 'resource' | 'name'> {
  /** Namespace of a Role; undefined for a ClusterRole. */
  readonly namespace: string | undefined;
}

/**
 * Permissions that no request of the operator uses, because other components check them:
 * - `finalizers`: the admission plugin OwnerReferencesPermissionEnforcement, for `blockOwnerDeletion`
 * - `datavolumes/source`: CDI, for clones from another namespace
 */
const CHECKED_ELSEWHERE = /\/finalizers$|^datavolumes\/source$/;

/** Permissions of the operator without controllers. */
export const OPERATOR_PERMISSIONS: ProgramPermissions = {
  ...programPermissions(SYSTEM),
  controllers: [],
  jobs: [],
};

/** Returns the permissions of the controller of a kind. */
export function permissionsFor(kind: Kind): ProgramPermissions {
  const controllers = programPermissions(SYSTEM).controllers.filter((each) => each.for === kind);
  return { name: 'vmwright', namespace: SYSTEM, controllers };
}

/**
 * Checks that the operator was allowed to do all that it has requested, and that it has used every permission of a controller.
 * @param unusedHere permissions that the tests of the file do not use, as `verb resource name`; other unused ones are an error
 */
export async function expectExactPermissions(
  { audited }: Pick<ControlPlane, 'audited'>,
  permissions: ProgramPermissions,
  unusedHere: readonly string[] = [],
): Promise<void> {
  const requests = await audited();
  expect(requests.length).toBeGreaterThan(0);
  const forbidden = requests.filter(({ allowed, resource }) => !allowed && resource !== '');
  expect(new Set(forbidden.map(textOf))).toEqual(new Set());
  const unused = grantsOf(permissions)
    .filter(({ resource }) => !CHECKED_ELSEWHERE.test(resource))
    .filter((grant) => !requests.some((request) => isUse(request, grant)));
  expect(new Set(unused.map(textOf))).toEqual(new Set(unusedHere));
}

function grantsOf(program: ProgramPermissions): readonly Grant[] {
  return rbacOf(program).flatMap((role) =>
    'rules' in role
      ? role.rules.flatMap((rule) =>
          'nonResourceURLs' in rule
            ? []
            : rule.verbs.map((verb) => ({
                verb,
                group: rule.apiGroups.join(),
                resource: rule.resources.join(),
                name: rule.resourceNames?.join(),
                namespace: role.metadata.namespace,
              })),
        )
      : [],
  );
}

/** A cache watches with `sendInitialEvents`, and lists only from an API server without this feature, so a watch uses both. */
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
