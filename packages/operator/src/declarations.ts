import {
  admission,
  conversion,
  type Need,
  type ProgramNeeds,
  silentLogger,
  type WebhookAddress,
} from '@vmwright/runtime';
import { Namespace } from './kinds.ts';
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
export const SYSTEM = { name: 'kube-system' };

/** What is asked before objects are stored, and when they are converted: for manifests, of which nobody asks anything. */
export function webhooks(namespaces: readonly string[] | undefined) {
  const nobody = { check: async () => undefined };
  const rules = admitVms(nobody, silentLogger);
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

/** What it may do. */
export function needs(namespace: string, namespaces?: readonly string[]): ProgramNeeds {
  const cluster: Need = { kind: Namespace, verbs: ['get'], names: [SYSTEM.name] };
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
    needs: [cluster],
  };
}
