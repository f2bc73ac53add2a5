import { defineKind, type ObjectOf, schema } from '@vmwright/runtime';
import { FOLDER_RULES, LONGEST_PATH } from './folder-path.ts';

const { array, boolean, conditions, integer, intOrString, literals, object, optional, string } = schema;

const replicas = integer({
  description: 'How many machines there shall be. Not more than a thousand: each is listed in the status.',
  minimum: 0,
  maximum: 1_000,
  format: 'int32',
});
/** vSphere 8's largest machine. */
const MOST_CPUS = 768;
const MOST_MEMORY_GIB = 24 * 1_024;

const cpu = integer({
  description: 'How many CPUs each machine has.',
  minimum: 1,
  maximum: MOST_CPUS,
  format: 'int32',
});
const memory = integer({
  description: 'How much memory each machine has, in GiB.',
  minimum: 1,
  maximum: MOST_MEMORY_GIB,
  format: 'int32',
});
const template = string({
  description:
    'What the machines are cloned from: the name of a template, or its path where several are called so. One that is not there yet is waited for.',
  minLength: 1,
});

/** Where machines go. What is left out is as the operator was told, or the only one that vCenter has. */
const place = {
  vcenter: optional(
    string({ description: 'Which vCenter, by its name in the file of vCenters.', minLength: 1 }),
  ),
  datacenter: optional(string({ description: 'Which datacenter, by its name.', minLength: 1 })),
  folder: optional(
    string({
      description:
        "The folder of machines that the group's own is made in; made where it is missing. At most 8 steps, such as a/b.",
      minLength: 1,
      maxLength: LONGEST_PATH,
      rules: FOLDER_RULES,
    }),
  ),
  cluster: optional(string({ description: 'Which cluster, by its name or path.', minLength: 1 })),
  resourcePool: optional(string({ description: 'Which resource pool, by its name or path.', minLength: 1 })),
  datastore: optional(string({ description: 'Which datastore, by its name or path.', minLength: 1 })),
  storagePolicy: optional(
    string({ description: "Which storage policy the machines' disks follow, by its id.", minLength: 1 }),
  ),
};

/** Machines do not move: what says where they are cannot change. The other fields say where new machines go. */
const FIXED = ['vcenter', 'datacenter', 'folder'] as const;

/** @param at the placement in the spec, with the objects on the way to it */
function fixedPlacement(at: readonly string[]): readonly schema.Rule[] {
  const valueIn = (self: string, name: string) => {
    const path = [self, ...at, name];
    const has = path.slice(2).map((_, i) => `has(${path.slice(0, i + 2).join('.')})`);
    return `(${[...has, `has(${path.join('.')})`].join(' && ')} ? ${path.join('.')} : '')`;
  };
  return FIXED.map((name) => ({
    rule: `${valueIn('self', name)} == ${valueIn('oldSelf', name)}`,
    message: `${[...at, name].join('.')} cannot be changed, because machines do not move; delete the group and create another`,
  }));
}

const linked = optional(
  boolean({
    description:
      "Whether disks build on the template's current snapshot instead of being copied: made in seconds, at the price of leaning on the template.",
  }),
);
const updateStrategy = literals(['RollingUpdate', 'OnDelete'], {
  description:
    'How machines follow when cpu, memory or template change. RollingUpdate: by and by. OnDelete: those that are there stay as they are.',
});
const maxUnavailable = intOrString({
  description: 'How many machines may be away at a time while they are updated: a number, or a percentage.',
  rules: [
    {
      rule: "type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",
      message: 'maxUnavailable is a number from 1 on, or a percentage from 1% to 100%',
    },
  ],
});
const scaleIn = optional(
  literals(['NotReadyFirst', 'Newest', 'Oldest'], {
    description:
      'Which machines go first when there are too many. NotReadyFirst, unless said otherwise: those that do not run, then the newest.',
  }),
);
const shutdownSeconds = optional(
  integer({
    description:
      'How long a guest is given to shut itself down before it is powered off. 0, unless said otherwise: it is powered off at once.',
    minimum: 0,
    maximum: 86_400,
  }),
);

const fields = {
  observedGeneration: optional(
    integer({
      description:
        'Generation of the spec that the operator has acted on last; -1 before it has seen the object. Smaller than metadata.generation while a change is not taken up yet.',
      format: 'int64',
    }),
  ),
  phase: optional(
    literals(['RUNNING', 'PENDING', 'ERROR'], {
      description:
        'RUNNING: all machines are there, run, and are as wanted. PENDING: on the way there. ERROR: something stands in the way.',
    }),
  ),
  currentReplicas: optional(integer({ description: 'How many machines there are.' })),
  desiredReplicas: optional(integer({ description: 'How many there shall be, as last looked at.' })),
  readyReplicas: optional(integer({ description: 'How many of them run.' })),
  updatedReplicas: optional(
    integer({ description: 'How many of them have the wanted template, cpu and memory.' }),
  ),
  lastMessage: optional(string({ description: 'What there is to know, in a sentence.' })),
  selector: optional(string({ description: 'For autoscalers.' })),
  vcenter: optional(string({ description: 'Where its machines are: the vCenter,' })),
  vcenterId: optional(string({ description: 'which is this one, whatever it is called,' })),
  datacenter: optional(string({ description: 'the datacenter,' })),
  folder: optional(string({ description: 'and the folder that its own is in. They do not move.' })),
  folderId: optional(
    string({
      description: 'Reference of that folder in vCenter, by which it is found after it was renamed.',
    }),
  ),
  replicas: optional(
    array(
      object({
        slot: integer({ description: 'Which of the group it is. A slot that was left may be taken again.' }),
        name: string({ description: 'In vCenter.' }),
        instanceUuid: string({ description: 'In vCenter, fixed before the machine is made.' }),
        created: string({ description: 'When it was decided on.', format: 'date-time' }),
        attempts: optional(
          integer({
            description: 'How often vCenter was about to be asked for it: stored before each time.',
          }),
        ),
        leaving: optional(boolean({ description: 'It is, or will be, removed.' })),
        offSince: optional(
          string({
            description:
              'When the machine was first observed powered off, with the update strategy OnDelete. It is powered on five minutes later.',
            format: 'date-time',
          }),
        ),
        shutdownAt: optional(
          string({ description: 'When its guest was asked to shut itself down.', format: 'date-time' }),
        ),
        power: optional(literals(['poweredOn', 'poweredOff', 'suspended'])),
        ip: optional(string()),
        host: optional(string()),
        task: optional(string({ description: 'What vCenter is doing to it.' })),
      }),
      { description: 'Its machines, and those that are to come.' },
    ),
  ),
  replacing: optional(
    object(
      {
        request: string({
          description: 'The value of the annotation vmwright.dev/replace that was accepted.',
        }),
        slots: array(integer(), { description: 'Slots that wait to be replaced.' }),
      },
      { description: 'The last request to replace machines.' },
    ),
  ),
  slotsUsed: optional(
    integer({ description: 'Slots from this one on were never used: nothing can be left of them.' }),
  ),
  conditions: optional(conditions()),
};

const status = object(fields, {
  description: 'The observed state of the machines, written by the operator alone.',
  // Differs from every generation, so that kstatus (Flux, Argo CD) does not take a group without a status for ready.
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

const description = 'A number of machines from one template, on vSphere.';

export const VERSIONS = [
  {
    name: 'v1beta1',
    storage: true,
    description,
    spec: object(
      {
        ...{ replicas, cpu, memory, template },
        placement: optional(object(place, { description: 'Where the machines go.' })),
        linked,
        update: optional(
          object(
            { strategy: optional(updateStrategy), maxUnavailable: optional(maxUnavailable) },
            { description: 'How machines follow when cpu, memory or template change.' },
          ),
        ),
        ...{ scaleIn, shutdownSeconds },
      },
      { description: 'The wanted machines.', rules: fixedPlacement(['placement']) },
    ),
    ...shown,
  },
  {
    name: 'v1alpha1',
    description,
    spec: object(
      {
        ...{ replicas, cpu, memory, template },
        ...place,
        linked,
        updateStrategy: optional(updateStrategy),
        maxUnavailable: optional(maxUnavailable),
        ...{ scaleIn, shutdownSeconds },
      },
      { description: 'The wanted machines.', rules: fixedPlacement([]) },
    ),
    ...shown,
  },
] as const;

/** A number of machines from one template, on vSphere. */
export const VmGroup = defineKind({
  group: 'vm.codeconnect.vmworld.com',
  kind: 'VmGroup',
  plural: 'vmgroups',
  shortNames: ['vg'],
  versions: VERSIONS,
});
export type VmGroup = ObjectOf<typeof VmGroup>;
export type VmGroupStatus = NonNullable<VmGroup['status']>;
/** A machine of a group, or one that is to come. */
export type Replica = NonNullable<VmGroupStatus['replicas']>[number];
export type Placement = NonNullable<VmGroup['spec']['placement']>;
/** A placement, with the reference of the folder in vCenter once it is known: people can rename the folder. */
export type Placed = Placement & { readonly folderId?: string | undefined };
