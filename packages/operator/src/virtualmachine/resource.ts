import { defineKind, type ObjectOf, schema } from '@vmwright/runtime';
import { CATEGORY, message, NEW_STATUS, objectName, observedGeneration, size, time } from '../schema.ts';
import { imageFields, imageRules } from '../vmdiskimage/resource.ts';

const { array, boolean, conditions, integer, intOrString, literals, object, optional, string } = schema;

const user = object(
  {
    name: string({
      description:
        'Login name. A name that Linux does not allow is changed to a legal one ("demo user" to "demo-user"); the condition UserNamesChanged names both.',
      minLength: 1,
      maxLength: 64,
    }),
    plain_text_passwd: optional(
      string({
        description:
          'Password. The operator writes only its hash, into the Secret with the cloud-init data. Prefer passwordSecretRef, because this field is readable by everyone who can read the VirtualMachine.',
        minLength: 1,
        maxLength: 256,
      }),
    ),
    passwordSecretRef: optional(
      object(
        {
          name: objectName('Name of the Secret, in the namespace of the VirtualMachine.'),
          key: optional(
            string({
              description: 'Key of the password in the Secret. Defaults to "password".',
              minLength: 1,
              maxLength: 253,
            }),
          ),
        },
        { description: 'Secret that contains the password.' },
      ),
    ),
    lock_passwd: optional(
      boolean({
        description: 'Whether login with the password is disabled. true by default, as in cloud-init.',
      }),
    ),
    sudo: optional(
      string({ description: 'Rule for sudo, such as ALL=(ALL) NOPASSWD:ALL.', maxLength: 1_024 }),
    ),
    groups: optional(string({ description: 'Groups of the user, separated by commas.', maxLength: 1_024 })),
  },
  {
    description: 'A user that cloud-init creates at the first boot.',
    rules: [
      {
        rule: '!(has(self.plain_text_passwd) && has(self.passwordSecretRef))',
        message: 'set plain_text_passwd or passwordSecretRef, not both',
      },
    ],
  },
);

const resources = object(
  {
    cpu: intOrString({
      description: 'Number of virtual CPUs.',
      rules: [
        {
          rule: "string(self).matches('^[1-9][0-9]{0,2}$')",
          message: 'must be a whole number of virtual CPUs from 1 to 999',
        },
      ],
    }),
    memory: size('Memory of the machine, such as 2Gi.'),
    diskSize: size(
      'Size of the root disk, such as 18Gi. The disk is at least as large as the image. The size can be increased later, but not reduced.',
    ),
  },
  {
    description: 'Size of the machine.',
    rules: [
      {
        rule: 'quantity(self.diskSize).compareTo(quantity(oldSelf.diskSize)) >= 0',
        message: 'diskSize cannot shrink, because data would be lost',
        fieldPath: '.diskSize',
      },
    ],
  },
);

const networkInterface = object(
  {
    network: string({
      description:
        'Multus network: the name of a NetworkAttachmentDefinition in the namespace of the VirtualMachine, or namespace/name.',
      minLength: 1,
      maxLength: 317,
      pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[a-z0-9]([-.a-z0-9]*[a-z0-9])?$',
    }),
    ipAddress: string({
      description: 'Static address with the prefix length of the network, such as 10.10.0.161/24.',
      maxLength: 49,
      rules: [
        {
          rule: 'isCIDR(self)',
          message: 'must be an address with a prefix length, such as 10.10.0.161/24',
        },
      ],
    }),
  },
  { description: 'A network interface with a static address.' },
);

const imageRef = object(
  {
    name: objectName('Name of the VMDiskImage.'),
    namespace: optional(
      objectName('Namespace of the VMDiskImage. Defaults to the namespace of the VirtualMachine.'),
    ),
  },
  {
    description: 'VMDiskImage that the root disk is cloned from.',
    rules: [
      {
        rule: 'self == oldSelf',
        message:
          'vmDiskImageRef cannot be changed, because the root disk is cloned once; create another VirtualMachine',
      },
    ],
  },
);

const spec = object(
  {
    baseVm: optional(
      string({
        description:
          'Name of the base VM. The operator copies it to the annotation vmwright.dev/base-vm of the KubeVirt VirtualMachine and, if it is a valid label value, to a label with the same key.',
        maxLength: 253,
      }),
    ),
    baseVmVersion: optional(
      string({
        description:
          'Version of the base VM. The operator copies it to the annotation vmwright.dev/base-vm-version of the KubeVirt VirtualMachine and, if it is a valid label value, to a label with the same key.',
        maxLength: 253,
      }),
    ),
    name: optional(
      string({
        description:
          'Display name of the machine. The operator copies it to the annotation vmwright.dev/name of the KubeVirt VirtualMachine and, if it is a valid label value, to a label with the same key.',
        maxLength: 253,
      }),
    ),
    version: optional(
      string({
        description:
          'Version of the machine. The operator copies it to the annotation vmwright.dev/version of the KubeVirt VirtualMachine and, if it is a valid label value, to a label with the same key.',
        maxLength: 253,
      }),
    ),
    ignoreOnDeploy: optional(
      boolean({
        description:
          'Whether the machine stays stopped after its disk and all other resources are prepared. false by default.',
      }),
    ),
    updatePolicy: optional(
      literals(['Report', 'Restart'], {
        description:
          'What happens when a change takes effect only after a restart. Report (default): the condition RestartRequired is True until the machine is restarted. Restart: the operator restarts the machine, except after its root disk was replaced.',
      }),
    ),
    users: optional(
      array(user, { description: 'Users that cloud-init creates at the first boot.', maxItems: 32 }),
    ),
    resources,
    interfaces: optional(
      array(networkInterface, {
        description: 'Network interfaces. Without any, the machine is connected to the pod network.',
        maxItems: 16,
      }),
    ),
    vmDiskImageRef: imageRef,
    vmDiskImageTemplate: optional(
      object(imageFields, {
        description:
          'Spec of the VMDiskImage that vmDiskImageRef names. The operator creates the image if it does not exist. The template is ignored if the image exists.',
        rules: imageRules,
      }),
    ),
  },
  { description: 'Desired machine.' },
);

const status = object(
  {
    observedGeneration,
    phase: optional(
      literals(['Provisioning', 'Ready', 'Failed', 'Deleting'], {
        description:
          'State of the machine. Provisioning: the image, the root disk or the KubeVirt VirtualMachine is being prepared. Ready: the machine is ready for use. Failed: a user must change something; the condition Ready says what. Deleting: the machine is being deleted.',
      }),
    ),
    message,
    printableStatus: optional(
      string({ description: 'Status that KubeVirt reports for the machine, such as Running.' }),
    ),
    ip: optional(
      string({
        description:
          'IP address of the machine: the first one that KubeVirt reports, or else the first one in spec.interfaces.',
      }),
    ),
    node: optional(string({ description: 'Node that the machine runs on.' })),
    snapshot: optional(
      string({
        description: 'VolumeSnapshot that the root disk is cloned from. Stored before the disk is created.',
      }),
    ),
    dataVolume: optional(string({ description: 'DataVolume of the root disk.' })),
    restarts: optional(
      integer({
        description:
          'Number of restarts by the operator after failed starts, since the machine was last ready.',
      }),
    ),
    restartedAt: time('Time when the operator last restarted the machine.'),
    restartedGeneration: optional(
      integer({
        description:
          'Value of metadata.generation of the KubeVirt VirtualMachine when the operator last restarted the machine because of spec.updatePolicy Restart.',
        format: 'int64',
      }),
    ),
    restartedInstance: optional(
      string({
        description:
          'UID of the VirtualMachineInstance that the operator last restarted. Stored before the instance is deleted; the deletion is repeated while the instance exists.',
      }),
    ),
    stuckSince: time(
      'Time at which KubeVirt first failed to start the machine although its root disk was ready.',
    ),
    conditions: optional(
      conditions(
        'Ready: the machine is ready for use. DiskImageReady: the VMDiskImage is Ready. VolumeReady: the root disk is cloned. ImageDiffers: the existing VMDiskImage differs from vmDiskImageTemplate. UserNamesChanged: a user name was changed to a legal one. RestartRequired: a change takes effect after a restart. Reconciling, Stalled: as kstatus defines them. Paused: the operator observes the machine and changes nothing.',
      ),
    ),
  },
  {
    description: 'Observed state of the machine, written by the operator.',
    default: NEW_STATUS,
  },
);

/** A machine on KubeVirt whose root disk is cloned from a VMDiskImage. */
export const VirtualMachine = defineKind({
  group: 'pelotech.ot',
  version: 'v1alpha1',
  kind: 'VirtualMachine',
  plural: 'virtualmachines',
  shortNames: ['otvm'],
  categories: [CATEGORY],
  description: 'VirtualMachine is a machine on KubeVirt whose root disk is cloned from a VMDiskImage.',
  spec,
  status,
  rules: [
    {
      rule: 'self.metadata.name.size() <= 63',
      message: 'the name must have at most 63 characters, because it is the host name of the machine',
    },
  ],
  columns: [
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Image', type: 'string', jsonPath: '.spec.vmDiskImageRef.name' },
    { name: 'Status', type: 'string', jsonPath: '.status.printableStatus' },
    { name: 'IP', type: 'string', jsonPath: '.status.ip' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Message', type: 'string', jsonPath: '.status.message', priority: 1 },
  ],
});
export type VirtualMachine = ObjectOf<typeof VirtualMachine>;
export type VirtualMachineStatus = NonNullable<VirtualMachine['status']>;
