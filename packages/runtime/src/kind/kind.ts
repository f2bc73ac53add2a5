import type { KubeObject, ObjectRef } from './object.ts';

declare const objectType: unique symbol;

/** A kind of Kubernetes object: where its objects are, and (for the compiler alone) what they look like. */
export interface Kind<T extends KubeObject = KubeObject> {
  /** Empty for the core group. */
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
 * Names a kind that is declared elsewhere (one of Kubernetes itself, or of another system's CRD), with a type written
 * by hand for the fields in use: `const Secret = foreignKind<Secret>({ … })`.
 */
export function foreignKind<T extends KubeObject>(kind: Omit<Kind, typeof objectType>): Kind<T> {
  return kind;
}

export function apiVersionOf({ group, version }: Kind): string {
  return group === '' ? version : `${group}/${version}`;
}

/** As people write it in messages: `vmgroups.vm.codeconnect.vmworld.com`. */
export function resourceOf({ group, plural }: Kind): string {
  return group === '' ? plural : `${plural}.${group}`;
}

/** The path of a kind's objects, in one namespace or in all. */
export function collectionPath(kind: Kind, namespace?: string): string {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  const scope =
    kind.scope === 'Namespaced' && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${scope}/${kind.plural}`;
}

export function objectPath(kind: Kind, { namespace, name }: ObjectRef): string {
  return `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`;
}
