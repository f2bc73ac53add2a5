import { defineKind, type ObjectOf, schema } from '@vmwright/runtime';
import { CATEGORY } from '../schema.ts';
import { FOLDER_RULES, MAX_PATH_LENGTH } from './folder-path.ts';

const { array, boolean, conditions, integer, intOrString, literals, object, optional, string } = schema;

const replicas = integer({
  description: 'Desired number of machines, at most 1000, because the status lists each of them.',
  minimum: 0,
  maximum: 1_000,
  format: 'int32',
});
/** Limits of a machine in vSphere 8. */
const MOST_CPUS = 768;
const MOST_MEMORY_GIB = 24 * 1_024;

const cpu = integer({
  description: 'Number of virtual CPUs of each machine.',
  minimum: 1,
  maximum: MOST_CPUS,
  format: 'int32',
});
const memory = integer({
  description: 'Memory of each machine in GiB.',
  minimum: 1,
  maximum: MOST_MEMORY_GIB,
  format: 'int32',
});
const template = string({
  description:
    'Template that the machines are cloned from: its name, or its inventory path if the name is ambiguous. The operator waits for a template that does not exist yet.',
  minLength: 1,
});

/**
 * Fields of the placement. A missing field gets the default from the vCenter's configuration. Without a default,
 * datacenter and cluster must be unambiguous, and datastore and storagePolicy are left out of the clone request.
 */
const place = {
  vcenter: optional(
    string({
      description:
        'Name of a vCenter in the file that the flag --vcenters of the operator names. It cannot be changed. By default, the vCenter that the file assigns to the namespace, else the vCenter for all namespaces.',
      minLength: 1,
    }),
  ),
  datacenter: optional(
    string({
      description:
        'Name of the datacenter. It cannot be changed. By default, the datacenter that the configuration of the operator sets for this vCenter, else the only datacenter of the vCenter.',
      minLength: 1,
    }),
  ),
  folder: optional(
    string({
      description:
        "Path of the VM folder that contains the group's own folder, for example a/b, with at most 8 segments. The operator creates missing folders. The path cannot be changed. By default, the folder that the configuration of the operator sets for this vCenter, else vm-operator.",
      minLength: 1,
      maxLength: MAX_PATH_LENGTH,
      rules: FOLDER_RULES,
    }),
  ),
  cluster: optional(
    string({
      description:
        'Name or inventory path of the compute cluster. By default, the cluster that the configuration of the operator sets for this vCenter, else the only cluster of the datacenter.',
      minLength: 1,
    }),
  ),
  resourcePool: optional(
    string({
      description:
        'Name or inventory path of the resource pool. By default, the resource pool that the configuration of the operator sets for this vCenter. If there is none, or if the group names another cluster, the root resource pool of the cluster.',
      minLength: 1,
    }),
  ),
  datastore: optional(
    string({
      description:
        'Name or inventory path of the datastore. By default, the datastore that the configuration of the operator sets for this vCenter, else the datastore of the template.',
      minLength: 1,
    }),
  ),
  storagePolicy: optional(
    string({
      description:
        "Id of the storage policy of the machines' disks. By default, the storage policy that the configuration of the operator sets for this vCenter, else none.",
      minLength: 1,
    }),
  ),
};

/**
 * Fields of the placement that are immutable, because machines do not move. Changes of other fields apply to new
 * machines.
 */
const IMMUTABLE = ['vcenter', 'datacenter', 'folder'] as const;

/** @param at path of the placement in the spec */
function immutablePlacement(at: readonly string[]): readonly schema.Rule[] {
  const valueIn = (self: string, name: string) => {
    const path = [self, ...at, name];
    const has = path.slice(2).map((_, i) => `has(${path.slice(0, i + 2).join('.')})`);
    return `(${[...has, `has(${path.join('.')})`].join(' && ')} ? ${path.join('.')} : '')`;
  };
  return IMMUTABLE.map((name) => ({
    rule: `${valueIn('self', name)} == ${valueIn('oldSelf', name)}`,
    message: `${[...at, name].join('.')} is immutable, because machines do not move; delete the group and create another`,
  }));
}

const linked = optional(
  boolean({
    description:
      'Whether machines are linked clones: their disks are based on the current snapshot of the template. Cloning takes seconds, but the machines depend on the template. false by default.',
  }),
);
const updateStrategy = literals(['RollingUpdate', 'OnDelete'], {
  description:
    'How a change of cpu, memory or template reaches existing machines. RollingUpdate (default): the operator updates or replaces them, and makes at most maxUnavailable of them unavailable at a time. OnDelete: they stay as they are.',
});
const maxUnavailable = intOrString({
  description:
    'Maximum number of machines that may be unavailable during an update: a number, or a percentage of spec.replicas. A percentage is rounded down, but to at least 1. The default is 1.',
  rules: [
    {
      rule: "type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",
      message: 'maxUnavailable must be a number of at least 1, or a percentage from 1% to 100%',
    },
  ],
});
const scaleIn = optional(
  literals(['NotReadyFirst', 'Newest', 'Oldest'], {
    description:
      'Which machines are removed first when spec.replicas is reduced. NotReadyFirst (default): machines that do not run, then the newest. Newest: the newest machines. Oldest: the oldest machines.',
  }),
);
const shutdownSeconds = optional(
  integer({
    description:
      'Time in seconds that a guest has to shut down before the operator powers the machine off to remove or resize it. 0 (default): the operator powers the machine off immediately.',
    minimum: 0,
    maximum: 86_400,
  }),
);

const fields = {
  observedGeneration: optional(
    integer({
      description: 'Generation of the spec that this status describes; -1 before the first reconcile.',
      format: 'int64',
    }),
  ),
  phase: optional(
    literals(['RUNNING', 'PENDING', 'ERROR'], {
      description:
        'RUNNING: all machines exist, run and are up to date. PENDING: the operator is still changing machines. ERROR: the error in lastMessage prevents these changes.',
    }),
  ),
  currentReplicas: optional(integer({ description: 'Number of machines that exist.' })),
  desiredReplicas: optional(integer({ description: 'Desired number of machines at the last reconcile.' })),
  readyReplicas: optional(integer({ description: 'Number of machines that run.' })),
  updatedReplicas: optional(
    integer({ description: 'Number of machines with the current template, cpu and memory.' }),
  ),
  lastMessage: optional(string({ description: 'Message of the condition Ready.' })),
  selector: optional(
    string({
      description: 'Label selector of the scale subresource. No pod matches it; autoscalers require it.',
    }),
  ),
  vcenter: optional(
    string({ description: "Name of the vCenter that holds the group's machines. Machines do not move." }),
  ),
  vcenterId: optional(string({ description: "UUID of the vCenter that holds the group's machines." })),
  datacenter: optional(string({ description: "Name of the datacenter that holds the group's machines." })),
  folder: optional(string({ description: "Path of the VM folder that contains the group's own folder." })),
  folderId: optional(
    string({
      description:
        'Id in vCenter of the folder that status.folder names. With this id, the operator finds the folder even if people rename it.',
    }),
  ),
  replicas: optional(
    array(
      object({
        slot: integer({
          description:
            'Number of the machine in the group, from 0. When the machine is gone, a new machine can get the same number.',
        }),
        name: string({ description: 'Name of the machine in vCenter.' }),
        instanceUuid: string({
          description:
            'Instance UUID of the machine in vCenter. The operator chooses it before it clones the machine.',
        }),
        created: string({
          description: 'Time when the operator added the machine to this list.',
          format: 'date-time',
        }),
        attempts: optional(
          integer({
            description:
              'Number of requests to clone or remove the machine. The operator counts each request before it sends the request. The count starts at 1 if an earlier machine had the same name.',
          }),
        ),
        terminating: optional(boolean({ description: 'Whether the machine is being removed.' })),
        offSince: optional(
          string({
            description:
              'Only with the update strategy OnDelete: time when the operator first observed that the machine was powered off. Five minutes later, the operator powers the machine on.',
            format: 'date-time',
          }),
        ),
        shutdownAt: optional(
          string({ description: 'Time when the guest was asked to shut down.', format: 'date-time' }),
        ),
        power: optional(
          literals(['poweredOn', 'poweredOff', 'suspended'], { description: 'Power state of the machine.' }),
        ),
        ip: optional(string({ description: 'IP address that the guest reports.' })),
        host: optional(string({ description: 'Name of the ESXi host that runs the machine.' })),
        task: optional(string({ description: 'Id of the vCenter task that is running for the machine.' })),
      }),
      { description: 'Machines of the group, including those that are being cloned or removed.' },
    ),
  ),
  replacing: optional(
    object(
      {
        request: string({
          description: 'Value of the annotation vmwright.dev/replace that was accepted.',
        }),
        slots: array(integer(), {
          description: 'Numbers (status.replicas[].slot) of the machines that are still to be replaced.',
        }),
      },
      { description: 'Latest request to replace machines, from the annotation vmwright.dev/replace.' },
    ),
  ),
  slotsUsed: optional(
    integer({
      description:
        'Highest number (status.replicas[].slot) that any machine of the group has had, plus 1. It never decreases.',
    }),
  ),
  conditions: optional(conditions()),
};

const status = object(fields, {
  description: 'Observed state of the machines, written by the operator.',
  // -1 differs from every generation. Without it, kstatus (Flux) would report a new group as ready.
  default: { observedGeneration: -1 },
});

const shown = {
  status,
  scale: {
    specPath: '.spec.replicas',
    statusPath: '.status.currentReplicas',
    labelSelectorPath: '.status.selector',
  },
  columns: [
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Current', type: 'integer', jsonPath: '.status.currentReplicas' },
    { name: 'Desired', type: 'integer', jsonPath: '.spec.replicas' },
    { name: 'CPU', type: 'integer', jsonPath: '.spec.cpu' },
    { name: 'Memory', type: 'integer', jsonPath: '.spec.memory' },
    { name: 'Template', type: 'string', jsonPath: '.spec.template' },
    { name: 'Last_Message', type: 'string', jsonPath: '.status.lastMessage' },
    { name: 'Ready', type: 'integer', jsonPath: '.status.readyReplicas', priority: 1 },
    { name: 'Updated', type: 'integer', jsonPath: '.status.updatedReplicas', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', priority: 1 },
  ],
} as const;

const description = 'VmGroup is a set of machines on vSphere that are cloned from one template.';

export const VERSIONS = [
  {
    name: 'v1beta1',
    storage: true,
    description,
    spec: object(
      {
        replicas,
        cpu,
        memory,
        template,
        placement: optional(
          object(place, {
            description:
              'Where the machines are placed. Machines do not move: vcenter, datacenter and folder are immutable.',
          }),
        ),
        linked,
        update: optional(
          object(
            { strategy: optional(updateStrategy), maxUnavailable: optional(maxUnavailable) },
            { description: 'How a change of cpu, memory or template reaches existing machines.' },
          ),
        ),
        scaleIn,
        shutdownSeconds,
      },
      { description: 'Desired machines.', rules: immutablePlacement(['placement']) },
    ),
    ...shown,
  },
  {
    name: 'v1alpha1',
    description,
    spec: object(
      {
        replicas,
        cpu,
        memory,
        template,
        ...place,
        linked,
        updateStrategy: optional(updateStrategy),
        maxUnavailable: optional(maxUnavailable),
        scaleIn,
        shutdownSeconds,
      },
      { description: 'Desired machines.', rules: immutablePlacement([]) },
    ),
    ...shown,
  },
] as const;

/** A set of machines on vSphere that are cloned from one template. */
export const VmGroup = defineKind({
  group: 'vm.codeconnect.vmworld.com',
  kind: 'VmGroup',
  plural: 'vmgroups',
  shortNames: ['vg'],
  categories: [CATEGORY],
  versions: VERSIONS,
});
export type VmGroup = ObjectOf<typeof VmGroup>;
export type VmGroupStatus = NonNullable<VmGroup['status']>;
/** Stored state of a slot. */
export type Replica = NonNullable<VmGroupStatus['replicas']>[number];
