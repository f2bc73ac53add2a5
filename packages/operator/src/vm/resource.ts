import { defineKind, type ObjectOf, schema } from '@vmwright/runtime';

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
          message: 'a vmname is not "." or "..": it needs at least one other character',
        },
        { rule: 'self == oldSelf', message: 'the vmname of a machine cannot be changed; create another VM' },
      ],
    }),
  },
  { description: 'Wanted machine of the private cloud.' },
);

const fields = {
  observedGeneration: optional(
    integer({
      description:
        'Generation of the spec that the operator has acted on last; -1 before it has seen the object. Smaller than metadata.generation while a change is not taken up yet.',
      format: 'int64',
    }),
  ),
  vmId: optional(
    string({
      description:
        'Id of the machine in the cloud. It cannot be changed or removed, except by the operator together with `recreations` (a lost machine is replaced) or `repairs` (it named a machine of another VM).',
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
        'State of the machine. New: it is being created. Running: it is running. Failed: the cloud rejects it, or could not start it. Unknown: the cloud does not answer, or has no such machine any more. Deleting: the VM is being deleted, and the machine may still exist. Deleted: the machine is gone, and finalizers of others keep the VM.',
    }),
  ),
  msg: optional(
    string({ description: 'Message of the condition Ready: the state of the VM in a sentence.' }),
  ),
  attempts: optional(
    integer({
      description:
        'Number of attempts to create or replace the machine. Stored before each request to the cloud.',
    }),
  ),
  recreations: optional(
    integer({ description: 'Number of times that a lost or failed machine was given up for a new one.' }),
  ),
  recreatedAt: optional(
    string({
      description: 'Time of the last re-creation. The next one waits for a growing pause after it.',
      format: 'date-time',
    }),
  ),
  repairs: optional(
    integer({
      description:
        'Number of times that the operator has corrected a vmId that named a machine of another VM.',
    }),
  ),
  conditions: optional(conditions()),
};

const status = object(fields, {
  description: 'Observed state of the machine, written by the operator.',
  // Differs from every generation, so that kstatus (Flux, Argo CD) does not take a VM without a status for ready.
  default: { observedGeneration: -1 },
});

/**
 * At the root, because a rule of the status is not evaluated when the whole status is removed. Counters of the operator
 * that grow let the vmId change: they are the paths on which it means to.
 */
const VM_ID_STAYS = {
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
  // `vm` and `vms` are also KubeVirt's short names for its own machines; `cvm` is unambiguous beside it.
  shortNames: ['cvm'],
  annotations: { 'api-approved.kubernetes.io': 'unapproved, not a part of Kubernetes' },
  description: 'VM is a machine of the private cloud.',
  spec,
  status,
  rules: [VM_ID_STAYS],
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

/** Whether the status names a machine. An empty vmId, which the original controller writes, names none. */
export function hasVmId(status: VMStatus): status is VMStatus & { readonly vmId: string } {
  return status.vmId !== undefined && status.vmId !== '';
}
