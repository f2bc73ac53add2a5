import { foreignKind, type Kind, type KubeObject, schema } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { ResourceRules } from '../apiserver/resource.ts';

/*
 * Kinds of KubeVirt, CDI, CSI snapshots, Multus and the storage. Not imported from the operator, so that a wrong path there
 * fails. Specs and statuses are open: the models read only a few fields.
 */

/** An object of another project. */
export interface OpenObject extends KubeObject {
  readonly spec?: unknown;
  readonly status?: unknown;
}

const { object, optional, anything, boolean, string } = schema;
const OPEN = object({ spec: optional(anything()), status: optional(anything()) });

type Names = Pick<Kind, 'group' | 'version' | 'kind' | 'plural'>;

function kindOf(names: Names, scope: Kind['scope'] = 'Namespaced'): Kind<OpenObject> {
  return foreignKind<OpenObject>({ ...names, scope });
}

const kubevirt = { group: 'kubevirt.io', version: 'v1' } as const;
const snapshots = { group: 'snapshot.storage.k8s.io', version: 'v1' } as const;

export const Machine = kindOf({ ...kubevirt, kind: 'VirtualMachine', plural: 'virtualmachines' });
export const Instance = kindOf({
  ...kubevirt,
  kind: 'VirtualMachineInstance',
  plural: 'virtualmachineinstances',
});
export const Volume = kindOf({
  ...{ group: 'cdi.kubevirt.io', version: 'v1beta1' },
  ...{ kind: 'DataVolume', plural: 'datavolumes' },
});
export const Claim = kindOf({
  ...{ group: '', version: 'v1' },
  ...{ kind: 'PersistentVolumeClaim', plural: 'persistentvolumeclaims' },
});
export const Snapshot = kindOf({ ...snapshots, kind: 'VolumeSnapshot', plural: 'volumesnapshots' });
export const SnapshotClass = kindOf(
  { ...snapshots, kind: 'VolumeSnapshotClass', plural: 'volumesnapshotclasses' },
  'Cluster',
);
export const StorageClass = kindOf(
  { group: 'storage.k8s.io', version: 'v1', kind: 'StorageClass', plural: 'storageclasses' },
  'Cluster',
);
export const Network = kindOf({
  ...{ group: 'k8s.cni.cncf.io', version: 'v1' },
  ...{ kind: 'NetworkAttachmentDefinition', plural: 'network-attachment-definitions' },
});
export const Secret = kindOf({ group: '', version: 'v1', kind: 'Secret', plural: 'secrets' });
export const ConfigMap = kindOf({ group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps' });

const custom = (kind: Kind, status: boolean): ResourceRules => ({ kind, schema: OPEN, custom: true, status });

/** The kinds as the API server serves them. KubeVirt's instances have no status subresource. */
const SERVED: readonly ResourceRules[] = [
  custom(Machine, true),
  custom(Instance, false),
  custom(Volume, true),
  custom(Snapshot, true),
  custom(Network, false),
  { kind: Claim, schema: OPEN, custom: false, status: true },
  {
    ...{ kind: SnapshotClass, custom: true, status: false },
    schema: object({ driver: optional(string()), deletionPolicy: optional(string()) }),
  },
  {
    ...{ kind: StorageClass, custom: false, status: false },
    schema: object({
      provisioner: optional(string()),
      volumeBindingMode: optional(string()),
      allowVolumeExpansion: optional(boolean()),
    }),
  },
];

export function serveKubevirt(server: ApiServer): void {
  for (const rules of SERVED) server.serveResource(rules);
}

/** Returns the stored object with this name. */
export function find(
  server: ApiServer,
  kind: Kind,
  namespace: string | undefined,
  name: string,
): StoredObject | undefined {
  for (const each of server.objects(kind))
    if (each.metadata.name === name && each.metadata.namespace === namespace) return each;
  return undefined;
}

/** Whether a change is one of this kind. Names of kinds are not unique: two groups have a VirtualMachine. */
export function isOf(resource: { readonly kind: Kind }, { group, plural }: Kind): boolean {
  return resource.kind.group === group && resource.kind.plural === plural;
}

/** Returns the UID of the object's controller. */
export function controllerOf({ metadata }: StoredObject): string | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid;
}
