import type { CloudClient } from '@vmwright/cloud';
import { admission, type Need, type ProgramNeeds, type WebhookAddress } from '@vmwright/runtime';
import { Namespace } from './kinds.ts';
import { admitVms } from './vm/admission.ts';
import { FINALIZER } from './vm/controller.ts';
import { VM } from './vm/resource.ts';

/** Of the program, its leases, roles and webhook configurations. */
export const NAME = 'vmwright';

/** The kinds that it brings to their wanted state. */
export const KINDS = [VM] as const;

/** In which the cluster is known by its UID. */
export const SYSTEM = { name: 'kube-system' };

/** What is asked before objects are stored. */
export function admissions(cloud: Pick<CloudClient, 'check'>) {
  return [admission(VM, admitVms(cloud))];
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
    controllers: [{ for: VM, finalizer: { name: FINALIZER } }],
    jobs: [{ reads: [VM] }],
    election: { name: NAME },
    // Nobody is asked about a name by the one who only lists what is asked.
    webhooks: { webhooks: admissions({ check: async () => undefined }) },
    needs: [cluster],
  };
}
