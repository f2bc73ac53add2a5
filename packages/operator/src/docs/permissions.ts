import { type PolicyRule, rbacOf } from '@vmwright/runtime';
import { programPermissions } from '../declarations.ts';
import { CONTROLLERS } from '../settings/controllers.ts';

/** Permission of the operator in the cluster, for the documentation. */
export interface PermissionDoc {
  /** Name of the controller, as in `--controllers`; undefined if every controller needs the permission. */
  readonly controller: string | undefined;
  /**
   * Resource and group, followed by object names if the permission is limited to named objects:
   * `leases.coordination.k8s.io (vmwright)`.
   */
  readonly resource: string;
  readonly verbs: string;
  /** Whether the permission is limited to the operator's namespace. */
  readonly isOwnNamespace: boolean;
}

/**
 * Returns the permissions in the shipped roles: first those that every controller needs, then those of each controller.
 */
export function permissionDocs(): readonly PermissionDoc[] {
  const all = CONTROLLERS.map((controller) => ({ controller, rows: rowsOf(controller) }));
  const shared = all[0]?.rows.filter((row) =>
    all.every(({ rows }) => rows.some((each) => isSame(each, row))),
  );
  return [
    ...(shared ?? []).map((row) => ({ ...row, controller: undefined })),
    ...all.flatMap(({ controller, rows }) =>
      rows.filter((row) => !shared?.some((each) => isSame(each, row))).map((row) => ({ ...row, controller })),
    ),
  ];
}

type Row = Omit<PermissionDoc, 'controller'>;

function isSame(a: Row, b: Row): boolean {
  return a.resource === b.resource && a.verbs === b.verbs && a.isOwnNamespace === b.isOwnNamespace;
}

function rowsOf(controller: string): readonly Row[] {
  const objects = rbacOf(programPermissions('vmwright-system', undefined, new Set([controller])));
  return objects.flatMap((object) => {
    if (!('rules' in object)) return [];
    const isOwnNamespace = object.kind === 'Role';
    return object.rules.flatMap((rule) => ('resources' in rule ? [{ ...rowOf(rule), isOwnNamespace }] : []));
  });
}

function rowOf({ apiGroups, resources, resourceNames, verbs }: PolicyRule): Omit<Row, 'isOwnNamespace'> {
  const [group = ''] = apiGroups;
  const resource = resources.map((each) => (group === '' ? each : `${each}.${group}`)).join(', ');
  const names = resourceNames === undefined ? '' : ` (${resourceNames.join(', ')})`;
  return { resource: `${resource}${names}`, verbs: verbs.join(', ') };
}
