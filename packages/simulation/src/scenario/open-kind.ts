import { foreignKind, type Kind, type KubeObject, schema } from '@vmwright/runtime';

/** An object of another project, whose spec and status are not declared. */
export interface OpenObject extends KubeObject {
  readonly spec?: unknown;
  readonly status?: unknown;
}

const { object, optional, anything } = schema;

export const OPEN = object({ spec: optional(anything()), status: optional(anything()) });

/** Returns a kind of another project. */
export function kindOf(
  names: Pick<Kind, 'group' | 'version' | 'kind' | 'plural'>,
  scope: Kind['scope'] = 'Namespaced',
): Kind<OpenObject> {
  return foreignKind<OpenObject>({ ...names, scope });
}
