import {
  admission,
  type Client,
  conversion,
  type Permission,
  type ProgramPermissions,
  silentLogger,
  type WebhookAddress,
} from '@vmwright/runtime';
import { Namespace } from './kinds.ts';
import { SettingsError } from './settings/values.ts';
import { admitVirtualMachines } from './virtualmachine/admission.ts';
import { VIRTUAL_MACHINE_PERMISSIONS } from './virtualmachine/controller.ts';
import { VirtualMachine } from './virtualmachine/resource.ts';
import { admitVms } from './vm/admission.ts';
import { FINALIZER as VM_FINALIZER } from './vm/controller.ts';
import { VM } from './vm/resource.ts';
import { admitVmDiskImages } from './vmdiskimage/admission.ts';
import { IMAGE_OWN_PERMISSIONS, IMAGE_PERMISSIONS } from './vmdiskimage/controller.ts';
import { VMDiskImage } from './vmdiskimage/resource.ts';
import { FINALIZER as VMGROUP_FINALIZER } from './vmgroup/controller.ts';
import { CONVERSION } from './vmgroup/conversion.ts';
import { VmGroup } from './vmgroup/resource.ts';

/** Name of the program, its Lease, its roles and its webhook configurations. */
export const NAME = 'vmwright';

/** Kinds that the operator reconciles. */
export const KINDS = [VM, VmGroup, VirtualMachine, VMDiskImage] as const;

/** Namespace whose UID identifies the cluster. */
const SYSTEM = { name: 'kube-system' };

/**
 * Returns the UID of the namespace `kube-system` as the id of the cluster, because Kubernetes gives a cluster no id.
 * @throws SettingsError if the namespace has no UID
 */
export async function clusterIdOf(client: Pick<Client, 'get'>): Promise<string> {
  const { metadata } = await client.get(Namespace, SYSTEM);
  if (metadata.uid !== undefined && metadata.uid !== '') return metadata.uid;
  throw new SettingsError(
    'the namespace kube-system has no UID to identify this cluster by; set --cluster-id',
  );
}

/**
 * Returns the webhooks for the manifests. They are only declared: they serve no requests and have no client of the
 * cloud.
 */
export function webhooks(namespaces: readonly string[] | undefined) {
  const rules = admitVms(undefined, '', silentLogger);
  const namespaceSelector = namespaces && {
    matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: namespaces }],
  };
  const selected = { ...(namespaceSelector && { namespaceSelector }) };
  return [
    admission(VM, { ...rules, ...selected }),
    admission(VirtualMachine, { ...admitVirtualMachines(undefined), ...selected }),
    admission(VMDiskImage, { ...admitVmDiskImages(undefined), ...selected }),
    conversion(VmGroup, CONVERSION),
  ];
}

export function webhookAddress(namespace: string, url: string | undefined): WebhookAddress {
  return url === undefined ? { service: { name: `${NAME}-webhook`, namespace } } : { url };
}

/** Returns the DNS name of the Service through which Prometheus reads the metrics. */
export function metricsName(namespace: string): string {
  return `${NAME}-metrics.${namespace}.svc`;
}

/** Returns the permissions that the operator needs in the cluster. Its RBAC roles are derived from them. */
export function programPermissions(namespace: string, namespaces?: readonly string[]): ProgramPermissions {
  const cluster: Permission = { kind: Namespace, verbs: ['get'], names: [SYSTEM.name] };
  return {
    name: NAME,
    namespace,
    ...(namespaces && { namespaces }),
    controllers: [
      { for: VM, finalizer: { name: VM_FINALIZER } },
      { for: VmGroup, finalizer: { name: VMGROUP_FINALIZER } },
      VIRTUAL_MACHINE_PERMISSIONS,
      IMAGE_PERMISSIONS,
    ],
    jobs: [{ reads: [VM] }, { reads: [VmGroup] }],
    election: { name: NAME },
    webhooks: { webhooks: webhooks(namespaces) },
    secureStatus: true,
    permissions: [cluster],
    ownPermissions: IMAGE_OWN_PERMISSIONS,
  };
}
