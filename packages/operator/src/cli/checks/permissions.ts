import { type Client, rbacOf, SelfSubjectAccessReview, SubjectAccessReview } from '@vmwright/runtime';
import { programPermissions } from '../../declarations.ts';
import type { Settings } from '../../settings/settings.ts';
import { type CheckResult, failed, passed } from './result.ts';

/** A permission that the shipped roles grant. */
interface Access {
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly name?: string;
  readonly verb: string;
  /** @default all namespaces */
  readonly namespace?: string;
}

/** Number of concurrent SubjectAccessReviews. */
const CONCURRENCY = 8;

/**
 * Asks the API server whether an account has every permission that the operator needs.
 * @param controllers from `checkedControllers`
 * @param account service account in the operator's namespace; undefined: the user of this program
 */
export async function checkPermissions(
  client: Client,
  settings: Settings,
  controllers: ReadonlySet<string>,
  account: string | undefined,
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  const { namespace, namespaces } = settings;
  const all = accessesOf(namespace, namespaces, controllers);
  const user = account === undefined ? undefined : `system:serviceaccount:${namespace}:${account}`;
  const denied: Access[] = [];
  const rest = [...all];
  const review = async () => {
    for (let next = rest.shift(); next !== undefined; next = rest.shift())
      if (!(await isAllowed(client, next, user, signal))) denied.push(next);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, review));
  const who = user ?? 'you';
  if (denied.length === 0)
    return [passed('permissions', `all ${all.length} permissions are granted to ${who}`)];
  const remedy = `bind the shipped roles: vmwright manifests | kubectl apply --server-side -f -${user === undefined ? '; --service-account checks the permissions of the operator instead of yours' : ''}`;
  return denied.map((each) => failed(`permission ${accessText(each)}`, `not granted to ${who}`, remedy));
}

/**
 * Returns every permission of the shipped roles, once for each namespace that it is bound in.
 * @param controllers default: all
 */
export function accessesOf(
  namespace: string,
  namespaces?: readonly string[],
  controllers?: ReadonlySet<string>,
): readonly Access[] {
  const manifests = rbacOf(programPermissions(namespace, namespaces, controllers));
  const roles = manifests.filter((each) => 'rules' in each);
  return manifests
    .filter((each) => 'roleRef' in each)
    .flatMap(({ roleRef, metadata }) => {
      const role = roles.find(
        (each) =>
          each.kind === roleRef.kind &&
          each.metadata.name === roleRef.name &&
          (roleRef.kind === 'ClusterRole' || each.metadata.namespace === metadata.namespace),
      );
      return (role?.rules ?? []).flatMap((rule) =>
        'resources' in rule ? accessesIn(rule, metadata.namespace) : [],
      );
    });
}

function accessesIn(
  rule: {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly resourceNames?: readonly string[];
    readonly verbs: readonly string[];
  },
  namespace: string | undefined,
): readonly Access[] {
  const names = rule.resourceNames ?? [undefined];
  return rule.apiGroups.flatMap((group) =>
    rule.resources.flatMap((each) => {
      const [resource = '', subresource] = each.split('/');
      return names.flatMap((name) =>
        rule.verbs.map((verb) => ({
          group,
          resource,
          verb,
          ...(subresource !== undefined && { subresource }),
          ...(name !== undefined && { name }),
          ...(namespace !== undefined && { namespace }),
        })),
      );
    }),
  );
}

async function isAllowed(
  client: Client,
  resourceAttributes: Access,
  user: string | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const { allowed } =
    user === undefined
      ? await client.review(SelfSubjectAccessReview, { resourceAttributes }, { signal })
      : await client.review(
          SubjectAccessReview,
          { resourceAttributes, user, groups: groupsOf(user) },
          { signal },
        );
  return allowed === true;
}

/** Returns the groups of a service account. The review must name them, because roles may be bound to a group. */
function groupsOf(user: string): readonly string[] {
  const [, , namespace = ''] = user.split(':');
  return ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
}

function accessText({ verb, resource, subresource, group, name, namespace }: Access): string {
  const path = [resource, ...(group === '' ? [] : [group])].join('.');
  return [
    `${verb} ${path}${subresource === undefined ? '' : `/${subresource}`}`,
    ...(name === undefined ? [] : [name]),
    ...(namespace === undefined ? [] : [`in ${namespace}`]),
  ].join(' ');
}
