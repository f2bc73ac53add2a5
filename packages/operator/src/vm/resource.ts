import { defineKind, type ObjectOf, schema } from '@vmwright/runtime';
import { CATEGORY } from '../schema.ts';

const { conditions, object, optional, string, integer, literals } = schema;

const spec = object(
  {
    vmname: string({
      description:
        'Name of the machine in the private cloud. It cannot be changed: delete the VM and create another.',
      rules: [
        {
          rule: "self.matches('^[A-Za-z0-9._-]{1,63}$')",
          message: 'a vmname is 1 to 63 characters: letters, digits, "-", "_" and "."',
        },
        {
          rule: "!(self in ['.', '..'])",
          message: 'vmname must not be "." or ".."',
        },
        { rule: 'self == oldSelf', message: 'the vmname of a machine cannot be changed; create another VM' },
      ],
    }),
  },
  { description: 'Desired machine in the private cloud.' },
);

const fields = {
  observedGeneration: optional(
    integer({
      description:
        'Generation of the spec that the operator processed last. The value is -1 before the operator has processed the object. It is smaller than metadata.generation until the operator has processed the latest change.',
      format: 'int64',
    }),
  ),
  vmId: optional(
    string({
      description:
        'Id of the machine in the cloud. The operator sets it. The API server rejects a change unless the same write increases `status.recreations` (the operator replaces a lost or failed machine) or `status.repairs` (the operator corrects a wrong id).',
      maxLength: 253,
    }),
  ),
  cpuUtilization: optional(
    integer({
      description: 'CPU utilization of the running machine in percent, as last observed.',
      minimum: 0,
      maximum: 100,
    }),
  ),
  opStatus: optional(
    literals(['New', 'Running', 'Failed', 'Unknown', 'Deleting', 'Deleted'], {
      description:
        'State of the machine. New: it is being created. Running: it is running. Failed: the cloud rejected the name or the request, or the machine has failed. Unknown: the state is not known, for example because the cloud does not answer or has no such machine any more. Deleting: the VM is being deleted, and the machine may still exist. Deleted: the machine is deleted, and finalizers of other controllers keep the VM.',
    }),
  ),
  msg: optional(
    string({ description: 'Message of the condition Ready: the state of the VM in a sentence.' }),
  ),
  attempts: optional(
    integer({
      description:
        'Number of requests to create a machine, or to delete a failed machine that is replaced. The operator counts each request before it sends the request to the cloud.',
    }),
  ),
  recreations: optional(integer({ description: 'Number of lost or failed machines that were replaced.' })),
  recreatedAt: optional(
    string({
      description:
        'Time when the operator last began to replace the machine. The next replacement begins 10 seconds after this time at the earliest. This delay doubles with each replacement, up to 5 minutes.',
      format: 'date-time',
    }),
  ),
  repairs: optional(
    integer({
      description:
        'Number of times that the operator has corrected a vmId that did not name the machine of this VM.',
    }),
  ),
  conditions: optional(
    conditions(
      'Ready: the machine is running. CloudAvailable: the cloud answers the operator; during an outage, it is False and its reason is the cause. NameAccepted: the cloud accepts the name. VmLost: the cloud has no machine of this VM any more. Reconciling: the operator works on the VM, or waits for something that ends by itself. Stalled: a person has to change something. Paused: the operator observes the VM and changes nothing.',
    ),
  ),
};

const status = object(fields, {
  description: 'Observed state of the machine, written by the operator.',
  // -1 differs from every generation. Without it, kstatus (Flux) would report a new VM as ready.
  default: { observedGeneration: -1 },
});

/**
 * Rejects a change of `status.vmId`, unless the same write increases `status.recreations` or `status.repairs`. The rule
 * is at the root of the schema: a rule of the status is not evaluated if a write removes the whole status.
 */
const VM_ID_IS_FIXED = {
  rule: `!has(oldSelf.status) || !has(oldSelf.status.vmId) || oldSelf.status.vmId == ''
    || (has(self.status) && has(self.status.vmId) && self.status.vmId == oldSelf.status.vmId)
    || (has(self.status) && has(self.status.recreations)
      && self.status.recreations > (has(oldSelf.status.recreations) ? oldSelf.status.recreations : 0))
    || (has(self.status) && has(self.status.vmId) && has(self.status.repairs)
      && self.status.repairs > (has(oldSelf.status.repairs) ? oldSelf.status.repairs : 0))`.replaceAll(
    /\s+/g,
    ' ',
  ),
  message: 'the vmId of a machine cannot be changed or removed',
  fieldPath: '.status.vmId',
};

/** A machine of the private cloud. */
export const VM = defineKind({
  group: 'samplecontroller.k8s.io',
  version: 'v1alpha1',
  kind: 'VM',
  plural: 'vms',
  // `vm` and `vms` are also short names of KubeVirt's VirtualMachine; `cvm` is unambiguous.
  shortNames: ['cvm'],
  categories: [CATEGORY],
  annotations: { 'api-approved.kubernetes.io': 'unapproved, not a part of Kubernetes' },
  description: 'VM is a machine of the private cloud.',
  spec,
  status,
  rules: [VM_ID_IS_FIXED],
  columns: [
    { name: 'VMName', type: 'string', jsonPath: '.spec.vmname' },
    { name: 'Status', type: 'string', jsonPath: '.status.opStatus' },
    { name: 'VMID', type: 'string', jsonPath: '.status.vmId' },
    { name: 'CPU', type: 'integer', jsonPath: '.status.cpuUtilization' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Message', type: 'string', jsonPath: '.status.msg', priority: 1 },
  ],
});
export type VM = ObjectOf<typeof VM>;
export type VMStatus = NonNullable<VM['status']>;

/**
 * Whether the status names a machine. An empty vmId names none. The predecessor of this operator writes an empty vmId.
 */
export function hasVmId(status: VMStatus): status is VMStatus & { readonly vmId: string } {
  return status.vmId !== undefined && status.vmId !== '';
}
