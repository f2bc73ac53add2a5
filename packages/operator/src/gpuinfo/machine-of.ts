import { type ComputeFacts, type MachineFacts, NO_VSPHERE } from '../vcenter/compute-facts.ts';
import type { Blocker } from './candidate.ts';
import type { Node } from './kinds.ts';

/** The VM of a node. */
export interface NodeMachine {
  /** Undefined if the node is not on vSphere, or if its VM is not known. */
  readonly machine: MachineFacts | undefined;
  /** Set if the facts about the VM are missing or stale. */
  readonly blocker: Blocker | undefined;
  /** Whether a VM that appears later in vCenter can change the result. */
  readonly isProvisional: boolean;
}

const SCHEME = 'vsphere://';

/** Schemes of the provider ids of other clouds and of simulated nodes. */
const OTHER_CLOUDS: ReadonlySet<string> = new Set([
  ...['aws', 'gce', 'azure', 'alicloud', 'ibm', 'ibmcloud', 'oci', 'tencentcloud', 'huaweicloud', 'yandex'],
  ...['openstack', 'cloudstack', 'nutanix', 'proxmox', 'kubevirt', 'harvester', 'ionos', 'hcloud'],
  ...['digitalocean', 'linode', 'vultr', 'scaleway', 'exoscale', 'civo', 'upcloud', 'equinixmetal'],
  ...['packet', 'metal3', 'baremetal', 'kind', 'kwok', 'minikube'],
]);

/**
 * Finds the VM of a node: by the UUID in `spec.providerID`, then by the UUID that the guest reports, then by name. A
 * node with the provider id of another cloud is not on vSphere. A node with any other provider id may be on vSphere:
 * K3s and RKE2, for example, set their own provider ids on every infrastructure.
 *
 * The node gets a blocker if the facts of its vCenter are not current. It also gets a blocker if its VM has
 * disappeared, because the GPUs and the maintenance of its host are then unknown.
 * @param before name of the last known VM of the node; undefined if the node had none
 */
export function machineOf(
  { metadata, spec, status }: Node,
  compute: Pick<ComputeFacts, 'machineByUuid' | 'machineByName' | 'staleVcenters'>,
  before?: string,
): NodeMachine {
  const providerId = spec?.providerID ?? '';
  const isOnVsphere = providerId.startsWith(SCHEME);
  const [scheme = ''] = providerId.split('://');
  if (compute === NO_VSPHERE || OTHER_CLOUDS.has(scheme))
    return { machine: undefined, blocker: undefined, isProvisional: false };
  const uuid = isOnVsphere ? providerId.slice(SCHEME.length) : '';
  const systemUuid = status?.nodeInfo?.systemUUID ?? '';
  const byUuid =
    (uuid === '' ? undefined : compute.machineByUuid(uuid)) ??
    (systemUuid === '' ? undefined : compute.machineByUuid(systemUuid));
  const machine = byUuid ?? compute.machineByName(metadata.name);
  return {
    machine,
    blocker: unknown(machine, isOnVsphere ? providerId : undefined, before, compute.staleVcenters),
    isProvisional: byUuid === undefined,
  };
}

function unknown(
  machine: MachineFacts | undefined,
  providerId: string | undefined,
  before: string | undefined,
  stale: readonly string[],
): Blocker | undefined {
  if (machine !== undefined) {
    const vcenter = vcenterOf(machine.id);
    return stale.includes(vcenter)
      ? { reason: 'FactsUnknown', message: `the facts of vCenter '${vcenter}' are not current` }
      : undefined;
  }
  const [first] = stale;
  if (first !== undefined)
    return {
      reason: 'FactsUnknown',
      message: `the VM of the node is not known, and the facts of vCenter '${first}' are not current`,
    };
  if (providerId !== undefined)
    return { reason: 'FactsUnknown', message: `no vCenter has the VM of spec.providerID ${providerId}` };
  if (before === undefined) return undefined;
  return {
    reason: 'FactsUnknown',
    message: `no vCenter has the VM '${before}' of the node any more; delete the Node if its machine was removed`,
  };
}

/** Returns the name of the vCenter that the id of a machine or host begins with. */
export function vcenterOf(id: string): string {
  return id.slice(0, id.lastIndexOf('/'));
}

/** Whether two versions of a Node describe the same machine. */
export function isSameSystem(a: Node, b: Node): boolean {
  const identity = ({ metadata, spec, status }: Node) =>
    JSON.stringify([metadata.uid, spec?.providerID, status?.nodeInfo?.systemUUID]);
  return identity(a) === identity(b);
}
