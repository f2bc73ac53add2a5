/** The fields that all Kubernetes objects have in common. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

/** The metadata fields that the runtime reads and writes. */
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

/** Reference to the owner of an object. The garbage collector deletes the object after its owner was deleted. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** Name of an object within its kind; `namespace` is undefined for cluster-scoped kinds. */
export interface ObjectRef {
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** Returns the key of an object in queues and caches: `namespace/name`, or `name` for cluster-scoped kinds. */
export function keyOf({ namespace, name }: ObjectRef): string {
  return namespace ? `${namespace}/${name}` : name;
}

/** Parses a key that `keyOf` has returned. */
export function refOf(key: string): ObjectRef {
  const cut = key.indexOf('/');
  return cut === -1 ? { name: key } : { namespace: key.slice(0, cut), name: key.slice(cut + 1) };
}
