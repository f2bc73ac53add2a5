import {
  admission,
  type Client,
  type ControllerPermissions,
  conversion,
  type DeclaredKind,
  type Kind,
  Namespace,
  type Permission,
  type ProgramPermissions,
  silentLogger,
  type Webhook,
  type WebhookAddress,
} from '@vmwright/runtime';
import { admitPods } from './gpuinfo/admission.ts';
import { GPUINFO_OWN_PERMISSIONS, gpuInfoPermissions } from './gpuinfo/controller.ts';
import { Pod } from './gpuinfo/kinds.ts';
import { FACT_KINDS } from './gpuinfo/node-facts.ts';
import { GPUInfo } from './gpuinfo/resource.ts';
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

/** Kinds that the operator reconciles, with the name of their controller in `--controllers`. */
const KINDS: readonly { readonly kind: DeclaredKind; readonly controller: string }[] = [
  { kind: VM, controller: 'vm' },
  { kind: VmGroup, controller: 'vmgroup' },
  { kind: VirtualMachine, controller: 'kubevirt' },
  { kind: VMDiskImage, controller: 'kubevirt' },
  { kind: GPUInfo, controller: 'gpuinfo' },
];

/** Returns the kinds of these controllers. @param controllers names as in `--controllers`. @default all */
export function kindsOf(controllers?: ReadonlySet<string>): readonly DeclaredKind[] {
  return KINDS.filter(({ controller }) => controllers?.has(controller) ?? true).map(({ kind }) => kind);
}

/** Namespace with the UID that is used as the id of the cluster. */
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
 * @param controllers names as in `--controllers`. @default all
 */
export function webhooks(
  namespaces: readonly string[] | undefined,
  controllers?: ReadonlySet<string>,
): readonly Webhook[] {
  const rules = admitVms(undefined, '', silentLogger);
  const namespaceSelector = namespaces && {
    matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: namespaces }],
  };
  const selected = { ...(namespaceSelector && { namespaceSelector }) };
  const all: readonly (readonly [controller: string, Webhook])[] = [
    ['vm', admission(VM, { ...rules, ...selected })],
    ['kubevirt', admission(VirtualMachine, { ...admitVirtualMachines(undefined), ...selected })],
    ['kubevirt', admission(VMDiskImage, { ...admitVmDiskImages(undefined), ...selected })],
    ['gpuinfo', admission(Pod, { ...admitPods(undefined), ...selected })],
    ['vmgroup', conversion(VmGroup, CONVERSION)],
  ];
  return all.flatMap(([controller, webhook]) => (controllers?.has(controller) === false ? [] : webhook));
}

export function webhookAddress(namespace: string, url: string | undefined): WebhookAddress {
  return url === undefined ? { service: { name: `${NAME}-webhook`, namespace } } : { url };
}

/** Returns the DNS name of the Service through which Prometheus reads the metrics. */
export function metricsName(namespace: string): string {
  return `${NAME}-metrics.${namespace}.svc`;
}

/**
 * Returns the permissions that the operator needs in the cluster. Its RBAC roles are derived from them.
 * @param controllers names as in `--controllers`. @default all
 */
export function programPermissions(
  namespace: string,
  namespaces?: readonly string[],
  controllers?: ReadonlySet<string>,
): ProgramPermissions {
  const kinds: ReadonlySet<Kind> = new Set(kindsOf(controllers));
  const all: readonly ControllerPermissions[] = [
    { for: VM, finalizer: { name: VM_FINALIZER }, role: 'vm' },
    { for: VmGroup, finalizer: { name: VMGROUP_FINALIZER }, role: 'vmgroup' },
    { ...VIRTUAL_MACHINE_PERMISSIONS, role: 'kubevirt' },
    { ...IMAGE_PERMISSIONS, ownPermissions: IMAGE_OWN_PERMISSIONS, role: 'kubevirt' },
    { ...gpuInfoPermissions(FACT_KINDS), ownPermissions: GPUINFO_OWN_PERMISSIONS, role: 'gpuinfo' },
  ];
  const cluster: Permission = { kind: Namespace, verbs: ['get'], names: [SYSTEM.name] };
  return {
    name: NAME,
    namespace,
    ...(namespaces && { namespaces }),
    controllers: all.filter((controller) => kinds.has(controller.for)),
    jobs: COLLECTED.filter(({ kind }) => kinds.has(kind)).map(({ kind, role }) => ({ reads: [kind], role })),
    election: { name: NAME },
    // Not only the webhooks of `controllers`: the operator serves all webhooks, whichever controllers run.
    webhooks: { webhooks: webhooks(namespaces) },
    secureStatus: true,
    permissions: [cluster],
  };
}

/** Kinds with a garbage collector, which compares the machines in the backend with the objects of the kind. */
const COLLECTED = [
  { kind: VM, role: 'vm' },
  { kind: VmGroup, role: 'vmgroup' },
];
