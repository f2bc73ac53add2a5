import { foreignKind, type Kind, type KubeObject, schema } from '@vmwright/runtime';

/** An object of a kind that another project defines. Its spec and status have no schema here. */
export interface OpenObject extends KubeObject {
  readonly spec?: unknown;
  readonly status?: unknown;
}

const { object, optional, anything } = schema;

export const OPEN = object({ spec: optional(anything()), status: optional(anything()) });

/** Returns a kind that another project defines. */
export function kindOf(
  names: Pick<Kind, 'group' | 'version' | 'kind' | 'plural'>,
  scope: Kind['scope'] = 'Namespaced',
): Kind<OpenObject> {
  return foreignKind<OpenObject>({ ...names, scope });
}
