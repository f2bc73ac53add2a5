import { defineKind, type ObjectOf, schema } from '@vmwright/runtime';

const { conditions, object, optional, string, integer, literals } = schema;

const spec = object({
  vmname: string({
    description:
      'What the machine is called in the private cloud. It cannot be changed: delete the object and create another.',
    rules: [
      {
        rule: "self.matches('^[A-Za-z0-9._-]{1,63}$') && !(self in ['.', '..'])",
        message: 'a vmname is 1 to 63 characters: letters, digits, "-", "_" and "."',
      },
      { rule: 'self == oldSelf', message: 'the vmname of a machine cannot be changed; create another VM' },
    ],
  }),
});

const status = object({
  vmId: optional(
    string({
      description:
        "The machine's id in the cloud. Set once; it changes only where a lost machine is re-created.",
    }),
  ),
  cpuUtilization: optional(
    integer({ description: 'Of the running machine, in percent, as last seen.', minimum: 0, maximum: 100 }),
  ),
  opStatus: optional(
    literals(['New', 'Running', 'Failed', 'Unknown'], {
      description:
        'New: it is being made. Running. Failed: the cloud refuses it, or could not start it. Unknown: the cloud does not answer, or has no such machine any more.',
    }),
  ),
  msg: optional(string({ description: 'What there is to know about it, in a sentence.' })),
  attempts: optional(
    integer({
      description: 'How often the cloud was about to be asked for the machine: stored before each request.',
    }),
  ),
  recreations: optional(integer({ description: 'How often a lost machine was given up for a new one.' })),
  recreatedAt: optional(
    string({ description: 'When that was done last: the next one waits.', format: 'date-time' }),
  ),
  conditions: optional(conditions()),
});

/** A machine of the private cloud. */
export const VM = defineKind({
  group: 'samplecontroller.k8s.io',
  version: 'v1alpha1',
  kind: 'VM',
  plural: 'vms',
  annotations: { 'api-approved.kubernetes.io': 'unapproved, not a part of Kubernetes' },
  description: 'A machine of the private cloud.',
  spec,
  status,
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
