import type { KubeObject, ObjectRef } from './object.ts';

declare const objectType: unique symbol;

/** A kind of Kubernetes objects: its API path and, for the compiler, the type of its objects. */
export interface Kind<T extends KubeObject = KubeObject> {
  /** API group; empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly scope: 'Namespaced' | 'Cluster';
  readonly [objectType]?: T;
}

/** The type of a kind's objects. */
export type ObjectOf<K extends Kind> = K extends Kind<infer T> ? T : never;

/**
 * Declares a kind that Kubernetes or another CRD defines, with a hand-written type of the fields in use: `const Secret
 * = foreignKind<Secret>({ … })`.
 */
export function foreignKind<T extends KubeObject>(kind: Omit<Kind, typeof objectType>): Kind<T> {
  return kind;
}

/** Returns the kind's apiVersion: `apps/v1`. */
export function apiVersionOf({ group, version }: Kind): string {
  return group === '' ? version : `${group}/${version}`;
}

/** Returns the kind's resource name, for keys and messages: `vmgroups.vm.codeconnect.vmworld.com`. */
export function resourceOf({ group, plural }: Kind): string {
  return group === '' ? plural : `${plural}.${group}`;
}

/** Returns the URL path of a kind's objects, in one namespace or in all. */
export function collectionPath(kind: Kind, namespace?: string): string {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  const scope =
    kind.scope === 'Namespaced' && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${scope}/${kind.plural}`;
}

/** Returns the URL path of one object. */
export function objectPath(kind: Kind, { namespace, name }: ObjectRef): string {
  return `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`;
}
