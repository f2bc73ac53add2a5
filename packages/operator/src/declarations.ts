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
import { admitVms } from './vm/admission.ts';
import { FINALIZER as VM_FINALIZER } from './vm/controller.ts';
import { VM } from './vm/resource.ts';
import { FINALIZER as VMGROUP_FINALIZER } from './vmgroup/controller.ts';
import { CONVERSION } from './vmgroup/conversion.ts';
import { VmGroup } from './vmgroup/resource.ts';

/** Of the program, its leases, roles and webhook configurations. */
export const NAME = 'vmwright';

/** The kinds that it brings to their wanted state. */
export const KINDS = [VM, VmGroup] as const;

/** In which the cluster is known by its UID. */
const SYSTEM = { name: 'kube-system' };

/** The UID of `kube-system`, since a cluster has no name of its own. @throws SettingsError where it has none */
export async function clusterIdOf(client: Pick<Client, 'get'>): Promise<string> {
  const { metadata } = await client.get(Namespace, SYSTEM);
  if (metadata.uid !== undefined && metadata.uid !== '') return metadata.uid;
  throw new SettingsError('this cluster cannot be told from others; give it a name with --cluster-id');
}

/** What is asked before objects are stored, and when they are converted: for manifests, of which nobody asks anything. */
export function webhooks(namespaces: readonly string[] | undefined) {
  const rules = admitVms(undefined, '', silentLogger);
  const namespaceSelector = namespaces && {
    matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: namespaces }],
  };
  return [
    admission(VM, { ...rules, ...(namespaceSelector && { namespaceSelector }) }),
    conversion(VmGroup, CONVERSION),
  ];
}

export function webhookAddress(namespace: string, url: string | undefined): WebhookAddress {
  return url === undefined ? { service: { name: `${NAME}-webhook`, namespace } } : { url };
}

/** Name under which Prometheus reaches the metrics, by a Service. */
export function metricsName(namespace: string): string {
  return `${NAME}-metrics.${namespace}.svc`;
}

/** What it may do. */
export function needs(namespace: string, namespaces?: readonly string[]): ProgramPermissions {
  const cluster: Permission = { kind: Namespace, verbs: ['get'], names: [SYSTEM.name] };
  return {
    name: NAME,
    namespace,
    ...(namespaces && { namespaces }),
    controllers: [
      { for: VM, finalizer: { name: VM_FINALIZER } },
      { for: VmGroup, finalizer: { name: VMGROUP_FINALIZER } },
    ],
    jobs: [{ reads: [VM] }, { reads: [VmGroup] }],
    election: { name: NAME },
    webhooks: { webhooks: webhooks(namespaces) },
    secureStatus: true,
    permissions: [cluster],
  };
}
