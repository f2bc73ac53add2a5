import { foreignKind, type Kind, type KubeObject } from '@vmwright/runtime';

/** Functions that declare kinds of another project's API group, in one version of that group. */
export interface ApiGroup {
  /**
   * Declares a namespaced kind.
   * @param plural name of the resource. @default the kind in lower case with an `s`
   */
  namespaced<T extends KubeObject>(kind: string, plural?: string): Kind<T>;
  /** Declares a cluster-scoped kind. @param plural as for `namespaced` */
  cluster<T extends KubeObject>(kind: string, plural?: string): Kind<T>;
}

/**
 * Returns functions that declare kinds of an API group. The types of the objects are written by hand and contain only
 * the fields that our code uses.
 * @param group empty for the core group
 */
export function apiGroup(group: string, version: string): ApiGroup {
  const pluralOf = (kind: string) => `${kind.toLowerCase()}s`;
  return {
    namespaced: (kind, plural = pluralOf(kind)) =>
      foreignKind({ group, version, kind, plural, scope: 'Namespaced' }),
    cluster: (kind, plural = pluralOf(kind)) =>
      foreignKind({ group, version, kind, plural, scope: 'Cluster' }),
  };
}
