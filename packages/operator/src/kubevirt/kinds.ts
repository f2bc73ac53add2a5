import type { KubeObject } from '@vmwright/runtime';
import { apiGroup } from '../api-group.ts';

/*
 * Kinds of KubeVirt, CDI, CSI snapshots and Multus. The types contain only the fields that the operator reads or sets.
 */

const core = apiGroup('', 'v1');
const kubevirt = apiGroup('kubevirt.io', 'v1');
const cdi = apiGroup('cdi.kubevirt.io', 'v1beta1');
const storage = apiGroup('storage.k8s.io', 'v1');
const snapshots = apiGroup('snapshot.storage.k8s.io', 'v1');
const multus = apiGroup('k8s.cni.cncf.io', 'v1');

/** A condition as KubeVirt and CDI write it. */
export interface ForeignCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
}

/** KubeVirt's VirtualMachine, which runs a machine for a VirtualMachine of this operator. */
export interface KubevirtMachine extends KubeObject {
  readonly spec?: {
    readonly runStrategy?: string;
    readonly template?: {
      readonly metadata?: {
        readonly labels?: Readonly<Record<string, string>>;
        readonly annotations?: Readonly<Record<string, string>>;
      };
      readonly spec?: KubevirtMachineSpec;
    };
  };
  readonly status?: {
    readonly printableStatus?: string;
    readonly ready?: boolean;
    readonly created?: boolean;
    readonly conditions?: readonly ForeignCondition[];
    /** Failed starts since an instance last ran; undefined if there are none. */
    readonly startFailure?: { readonly lastFailedVMIUID?: string };
  };
}

/** Spec of the instances of a KubeVirt VirtualMachine. */
export interface KubevirtMachineSpec {
  readonly hostname?: string;
  readonly domain: {
    readonly cpu?: { readonly cores?: number };
    readonly memory?: { readonly guest?: string };
    readonly devices: {
      readonly disks?: readonly {
        readonly name: string;
        readonly bootOrder?: number;
        readonly disk: { readonly bus: string };
      }[];
      readonly interfaces?: readonly {
        readonly name: string;
        readonly macAddress?: string;
        readonly bridge?: object;
        readonly masquerade?: object;
      }[];
    };
  };
  readonly networks?: readonly {
    readonly name: string;
    readonly pod?: object;
    readonly multus?: { readonly networkName: string };
  }[];
  readonly volumes?: readonly {
    readonly name: string;
    readonly dataVolume?: { readonly name: string };
    readonly cloudInitNoCloud?: {
      readonly secretRef?: { readonly name: string };
      readonly networkDataSecretRef?: { readonly name: string };
    };
  }[];
}

export const KubevirtMachine = kubevirt.namespaced<KubevirtMachine>('VirtualMachine');

/** KubeVirt's VirtualMachineInstance: a running machine. */
export interface KubevirtInstance extends KubeObject {
  readonly spec?: KubevirtMachineSpec;
  readonly status?: {
    readonly phase?: string;
    readonly nodeName?: string;
    readonly interfaces?: readonly { readonly name?: string; readonly ipAddress?: string }[];
    readonly conditions?: readonly ForeignCondition[];
  };
}

export const KubevirtInstance = kubevirt.namespaced<KubevirtInstance>('VirtualMachineInstance');

/** Source of a DataVolume's data. Exactly one field is set. */
export interface DataVolumeSource {
  readonly http?: {
    readonly url: string;
    readonly secretRef?: string;
    readonly certConfigMap?: string;
    readonly checksum?: string;
  };
  readonly s3?: { readonly url: string; readonly secretRef?: string; readonly certConfigMap?: string };
  readonly registry?: { readonly url?: string; readonly secretRef?: string; readonly certConfigMap?: string };
  readonly blank?: object;
  readonly snapshot?: { readonly namespace: string; readonly name: string };
  readonly pvc?: { readonly namespace: string; readonly name: string };
}

/** CDI's DataVolume: a PersistentVolumeClaim that CDI fills from a source. */
export interface DataVolume extends KubeObject {
  readonly spec?: {
    readonly source?: DataVolumeSource;
    /**
     * Reference to a DataSource that names the source; replaces `source`. The default namespace of the DataSource is
     * that of the DataVolume.
     */
    readonly sourceRef?: { readonly kind: string; readonly namespace?: string; readonly name: string };
    readonly storage?: {
      readonly storageClassName?: string;
      readonly accessModes?: readonly string[];
      readonly resources?: { readonly requests?: { readonly storage?: string } };
    };
  };
  readonly status?: {
    readonly phase?: string;
    readonly claimName?: string;
    /** Percentage such as `61.0%`, or `N/A`. */
    readonly progress?: string;
    readonly restartCount?: number;
    readonly conditions?: readonly ForeignCondition[];
  };
}

export const DataVolume = cdi.namespaced<DataVolume>('DataVolume');

/** CDI's DataSource: a reference to the snapshot or claim that DataVolumes are cloned from. */
export interface DataSource extends KubeObject {
  readonly spec?: { readonly source?: Pick<DataVolumeSource, 'snapshot' | 'pvc'> };
}

export const DataSource = cdi.namespaced<DataSource>('DataSource');

/** Configuration of CDI that applies to the cluster. */
export interface CdiConfig extends KubeObject {
  readonly status?: {
    /**
     * Fraction of each claim that is reserved for the file system, such as `0.06`; by default and per storage class.
     */
    readonly filesystemOverhead?: {
      readonly global?: string;
      readonly storageClass?: Readonly<Record<string, string>>;
    };
  };
}

export const CdiConfig = cdi.cluster<CdiConfig>('CDIConfig');

/** Name of the only CDIConfig. */
export const CDI_CONFIG = 'config';

/** Label that CDI sets on the PersistentVolumeClaims of DataVolumes. Selects the claims that the operator caches. */
export const CDI_LABEL = { app: 'containerized-data-importer' } as const;

export interface PersistentVolumeClaim extends KubeObject {
  readonly spec?: {
    readonly storageClassName?: string;
    readonly volumeMode?: string;
    readonly volumeName?: string;
    readonly resources?: { readonly requests?: { readonly storage?: string } };
  };
  readonly status?: {
    readonly phase?: string;
    readonly capacity?: { readonly storage?: string };
    readonly conditions?: readonly ForeignCondition[];
  };
}

export const PersistentVolumeClaim = core.namespaced<PersistentVolumeClaim>('PersistentVolumeClaim');

export interface StorageClass extends KubeObject {
  readonly provisioner?: string;
  readonly volumeBindingMode?: string;
  readonly allowVolumeExpansion?: boolean;
}

export const StorageClass = storage.cluster<StorageClass>('StorageClass', 'storageclasses');

export interface VolumeSnapshot extends KubeObject {
  readonly spec?: {
    readonly volumeSnapshotClassName?: string;
    readonly source?: { readonly persistentVolumeClaimName?: string };
  };
  readonly status?: {
    readonly readyToUse?: boolean;
    readonly restoreSize?: string;
    readonly error?: { readonly message?: string; readonly time?: string };
  };
}

export const VolumeSnapshot = snapshots.namespaced<VolumeSnapshot>('VolumeSnapshot');

/** Multus network that an interface of a machine is attached to. */
export type NetworkAttachmentDefinition = KubeObject;

export const NetworkAttachmentDefinition = multus.namespaced<NetworkAttachmentDefinition>(
  'NetworkAttachmentDefinition',
  'network-attachment-definitions',
);
