import type { ConditionDoc, ReasonOf } from '../docs/conditions.ts';

/**
 * Conditions of a VirtualMachine. The reasons that the code may report are derived from this table, and so is
 * docs/virtualmachine.md.
 */
export const CONDITIONS = [
  {
    type: 'Ready',
    status: 'True',
    reasons: ['Running'],
    meaning: 'The machine is running.',
    remedy: 'Nothing.',
  },
  {
    type: 'Ready',
    status: 'True',
    reasons: ['IgnoredOnDeploy'],
    meaning:
      'The root disk and all other objects are prepared. The machine stays stopped, because `spec.ignoreOnDeploy` is true.',
    remedy: 'To start the machine, set `spec.ignoreOnDeploy` to false.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['ImageNotFound'],
    meaning:
      'The VMDiskImage in `spec.vmDiskImageRef` does not exist, and `spec.vmDiskImageTemplate` is not set.',
    remedy: 'Create the VMDiskImage, or set `spec.vmDiskImageTemplate`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['CreatingImage'],
    meaning: 'The VMDiskImage is being created from `spec.vmDiskImageTemplate`.',
    remedy: 'Wait.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['ImageNamespaceNotFound', 'ImageRejected'],
    meaning: 'The VMDiskImage cannot be created: its namespace does not exist, or the API server rejects it.',
    remedy: 'Create the namespace in the message, or correct `spec.vmDiskImageTemplate`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['ImageNotReady'],
    meaning: 'The VMDiskImage is not Ready yet, or is being deleted.',
    remedy:
      'Wait; see the [conditions of the VMDiskImage](vmdiskimage.md#conditions). If the message says so, create the VMDiskImage again after its deletion.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['ImageFailed'],
    meaning: 'The VMDiskImage has the phase Failed.',
    remedy:
      'Read `status.message` of the VMDiskImage, and see the [conditions of the VMDiskImage](vmdiskimage.md#conditions).',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['ImageNamespaceNotAllowed'],
    meaning:
      'The VirtualMachine is not allowed to use images of the namespace in `spec.vmDiskImageRef`. A machine that already has its root disk is not affected.',
    remedy:
      'Allow the use of the image, see [Images of other namespaces](#images-of-other-namespaces). Or create another VirtualMachine, with an image of its own namespace.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['ImageCreationNotAllowed'],
    meaning:
      'The VMDiskImage does not exist. The VirtualMachine is not allowed to create images in the namespace in `spec.vmDiskImageRef`.',
    remedy:
      'Create the VMDiskImage, or allow its creation, see [Images of other namespaces](#images-of-other-namespaces).',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['AddressConflict'],
    meaning:
      'Another VirtualMachine has the same address on the same network and keeps it, or two interfaces of this VirtualMachine have the same address. If another VirtualMachine keeps the address, the operator halts this machine.',
    remedy: 'Change the address in `spec.interfaces[].ipAddress`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['UserNamesCollide'],
    meaning:
      'Two users in `spec.users` have the same login name. Names that Linux does not allow are first changed to legal ones.',
    remedy: 'Change one of the names in `spec.users[].name`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NameConflict'],
    meaning: 'An object that was not created for this VirtualMachine has a name that the operator needs.',
    remedy: 'Delete that object, or create the VirtualMachine under another name.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['PasswordSecretMissing'],
    meaning:
      'The Secret in `spec.users[].passwordSecretRef` does not exist, or has no password under the key.',
    remedy: 'Create the Secret, or add the key to it.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NoFreeSnapshot'],
    meaning:
      'Every snapshot of the VMDiskImage has the maximum number of clones (`spec.maxClones` of the VMDiskImage).',
    remedy: 'Wait: the operator takes another snapshot.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Cloning'],
    meaning: 'The root disk is being cloned.',
    remedy: 'Wait; see `VolumeReady`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['WaitForFirstConsumer'],
    meaning: 'CDI clones the disk only when the machine is scheduled to a node.',
    remedy:
      'Wait. If `spec.ignoreOnDeploy` was set to true after the disk was created, set it to false, or delete the DataVolume in `status.dataVolume`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['CloneFailing', 'CloneFailed', 'VolumeDeleting', 'ClaimNotFound'],
    meaning:
      'CDI reports an error of the clone, or the DataVolume or the PersistentVolumeClaim of the root disk was deleted.',
    remedy:
      'Read the message. To get a new disk, delete the DataVolume in `status.dataVolume`: once it is gone, the operator clones a new disk from the image.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['CloneForbidden'],
    meaning: 'The operator is not allowed to clone from the namespace of the image.',
    remedy: 'Allow the operator to create `datavolumes/source` in the namespace of the image.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NetworkNotFound'],
    meaning: 'A NetworkAttachmentDefinition does not exist; the message names it.',
    remedy: 'Create the NetworkAttachmentDefinition, or correct `spec.interfaces[].network`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['MultusNotInstalled'],
    meaning: '`spec.interfaces` is set, and the cluster lacks the kind NetworkAttachmentDefinition.',
    remedy:
      'Install Multus, or remove `spec.interfaces` to use the pod network. The operator finds Multus within 30 seconds, without a restart.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['StorageClassNotFound'],
    meaning: 'The StorageClass of the root disk does not exist.',
    remedy: 'Create the StorageClass that the message names.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Unschedulable'],
    meaning: 'No node can run the machine: no node has enough resources, or none matches its requirements.',
    remedy:
      'Read the text of KubeVirt in the message. Reduce `spec.resources`, or add a node that can run the machine.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['QuotaExceeded'],
    meaning: 'A quota of the namespace does not allow another object.',
    remedy: 'Raise the quota, or delete other objects.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['MachineRejected', 'VolumeRejected', 'SecretRejected'],
    meaning: 'The API server or a webhook rejects the KubeVirt VirtualMachine, the DataVolume or the Secret.',
    remedy:
      'Remove the cause in the message. For `SecretRejected`, the message has only the HTTP status, because the text of the server may quote the Secret.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['ErrorPvcNotFound', 'DataVolumeError', 'CrashLoopBackOff'],
    meaning: 'KubeVirt cannot start the machine.',
    remedy: 'Wait: the operator or KubeVirt restarts the machine, see [Repairs](#repairs).',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['MachineFailing', 'ErrImagePull', 'ImagePullBackOff'],
    meaning:
      'KubeVirt cannot start the machine. `ErrImagePull` and `ImagePullBackOff`: a node cannot pull the launcher image of KubeVirt.',
    remedy:
      'Remove the cause in the message. If the launcher image cannot be pulled, check the installation of KubeVirt.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['MachinePaused'],
    meaning: 'The machine is paused in KubeVirt.',
    remedy: 'Run `virtctl unpause vm <name>`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['CreatingMachine', 'Starting', 'NotRunning', 'Stopping', 'MachineDeleting'],
    meaning:
      'The KubeVirt VirtualMachine is being created, started or stopped, or it was deleted and is created again.',
    remedy: 'Wait.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Deleting'],
    meaning: 'The VirtualMachine is being deleted.',
    remedy: 'Wait. If `Stalled` is True, remove the cause that the message names.',
  },
  {
    type: 'DiskImageReady',
    status: 'True',
    reasons: ['Ready'],
    meaning: 'The VMDiskImage is Ready.',
    remedy: 'Nothing.',
  },
  {
    type: 'DiskImageReady',
    status: 'False',
    reasons: [],
    meaning: 'No disk can be cloned from the VMDiskImage.',
    remedy: 'See `Ready` with the same reason.',
  },
  {
    type: 'VolumeReady',
    status: 'True',
    reasons: ['Cloned'],
    meaning: 'The root disk is cloned.',
    remedy: 'Nothing.',
  },
  {
    type: 'VolumeReady',
    status: 'False',
    reasons: [],
    meaning: 'The root disk is not cloned yet.',
    remedy: 'See `Ready` with the same reason.',
  },
  {
    type: 'VolumeReady',
    status: 'True, False',
    reasons: ['VolumeWithoutDataVolume'],
    meaning:
      'The PersistentVolumeClaim of the root disk exists, but its DataVolume does not. The status is True if the claim is Bound: the machine then uses it.',
    remedy: 'If the claim is not Bound, delete the claim: the operator then clones a new disk.',
  },
  {
    type: 'VolumeReady',
    status: 'True',
    reasons: ['Expanding', 'ExpansionPending', 'ExpansionFailing', 'ExpansionNotSupported'],
    meaning: 'The disk is usable, but not enlarged yet; the message says why.',
    remedy:
      '`Expanding`: wait. `ExpansionPending`: restart the machine. `ExpansionFailing`: check the PersistentVolumeClaim in the message. `ExpansionNotSupported`: set `allowVolumeExpansion: true` in the StorageClass.',
  },
  {
    type: 'VolumeReady',
    status: 'True',
    reasons: ['ExpansionRejected'],
    meaning:
      'The disk is usable at its present size. The API server rejects the larger size, for example because of a quota. All other changes are made.',
    remedy:
      'Remove the cause in the message, for example raise the quota. `spec.resources.diskSize` cannot be reduced.',
  },
  {
    type: 'ImageDiffers',
    status: 'True',
    reasons: ['TemplateIgnored'],
    meaning:
      'The existing VMDiskImage differs from `spec.vmDiskImageTemplate`, and the template is ignored. The message names the fields. Absent otherwise.',
    remedy:
      'Correct `spec.vmDiskImageTemplate`, or create another VirtualMachine with another `spec.vmDiskImageRef.name`.',
  },
  {
    type: 'UserNamesChanged',
    status: 'True',
    reasons: ['IllegalNames'],
    meaning: 'A user name was changed to a legal one; the message names both. Absent otherwise.',
    remedy: 'Nothing, or change the name in `spec.users[].name`.',
  },
  {
    type: 'RestartRequired',
    status: 'True',
    reasons: ['RestartRequired'],
    meaning: 'A change takes effect after a restart. Absent otherwise.',
    remedy:
      'Run `virtctl restart <name>`. With `spec.updatePolicy: Restart`, the operator restarts the machine, except after the root disk was replaced: a restart then deletes the data of the old disk.',
  },
] as const satisfies readonly ConditionDoc[];

export type VirtualMachineReason = ReasonOf<typeof CONDITIONS>;
