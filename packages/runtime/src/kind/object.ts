/** What all objects of Kubernetes have in common, as far as the runtime reads it. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly generateName?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** The name of an object within its kind; `namespace` is empty for kinds without namespaces. */
export interface ObjectRef {
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** `namespace/name`, or `name` alone where there is no namespace: the key of queues and caches. */
export function keyOf({ namespace, name }: ObjectRef): string {
  return namespace ? `${namespace}/${name}` : name;
}

export function refOf(key: string): ObjectRef {
  const cut = key.indexOf('/');
  return cut === -1 ? { name: key } : { namespace: key.slice(0, cut), name: key.slice(cut + 1) };
}
