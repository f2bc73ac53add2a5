import { type Kind, schema } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { ResourceRules } from '../apiserver/resource.ts';
import { kindOf, OPEN } from '../scenario/open-kind.ts';

/*
 * Kinds of KubeVirt, CDI, CSI snapshots, Multus and storage. Not imported from the operator, so that the simulation
 * detects a wrong API path in the operator. Specs and statuses accept any fields, because the models read only a few of
 * them.
 */

const { object, optional, boolean, string } = schema;

const kubevirt = { group: 'kubevirt.io', version: 'v1' } as const;
const snapshots = { group: 'snapshot.storage.k8s.io', version: 'v1' } as const;

export const Machine = kindOf({ ...kubevirt, kind: 'VirtualMachine', plural: 'virtualmachines' });
export const Instance = kindOf({
  ...kubevirt,
  kind: 'VirtualMachineInstance',
  plural: 'virtualmachineinstances',
});
export const Volume = kindOf({
  group: 'cdi.kubevirt.io',
  version: 'v1beta1',
  kind: 'DataVolume',
  plural: 'datavolumes',
});
const Source = kindOf({
  group: 'cdi.kubevirt.io',
  version: 'v1beta1',
  kind: 'DataSource',
  plural: 'datasources',
});
const Config = kindOf(
  { group: 'cdi.kubevirt.io', version: 'v1beta1', kind: 'CDIConfig', plural: 'cdiconfigs' },
  'Cluster',
);
export const Claim = kindOf({
  group: '',
  version: 'v1',
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
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
  group: 'k8s.cni.cncf.io',
  version: 'v1',
  kind: 'NetworkAttachmentDefinition',
  plural: 'network-attachment-definitions',
});
export const Secret = kindOf({ group: '', version: 'v1', kind: 'Secret', plural: 'secrets' });
export const ConfigMap = kindOf({ group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps' });

const Namespace = kindOf({ group: '', version: 'v1', kind: 'Namespace', plural: 'namespaces' }, 'Cluster');

const custom = (kind: Kind, status: boolean): ResourceRules => ({ kind, schema: OPEN, custom: true, status });

/** The kinds as the API server serves them. KubeVirt's instances have no status subresource. */
const SERVED: readonly ResourceRules[] = [
  custom(Machine, true),
  custom(Instance, false),
  custom(Volume, true),
  custom(Source, true),
  custom(Config, true),
  custom(Snapshot, true),
  custom(Network, false),
  { kind: Claim, schema: OPEN, custom: false, status: true },
  { kind: Namespace, schema: OPEN, custom: false, status: true },
  {
    kind: SnapshotClass,
    custom: true,
    status: false,
    schema: object({ driver: optional(string()), deletionPolicy: optional(string()) }),
  },
  {
    kind: StorageClass,
    custom: false,
    status: false,
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
