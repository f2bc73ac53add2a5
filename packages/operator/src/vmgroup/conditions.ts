import type { ConditionDoc, OutcomeWith, ReasonOf } from '../docs/conditions.ts';

/**
 * Conditions of a VmGroup. The reasons that the code may report are derived from this table, and so is docs/vmgroup.md.
 */
export const CONDITIONS = [
  {
    type: 'Ready',
    status: 'True',
    reasons: ['Running'],
    meaning: 'All machines exist, run and match the spec.',
    remedy: 'Nothing.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Progressing'],
    meaning: 'Machines are being created, updated or removed.',
    remedy: 'Wait.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Deleting'],
    meaning: 'The group is being deleted. If something prevents the deletion, the message says what.',
    remedy:
      'Wait. If the deletion is paused, remove the annotation `vmwright.dev/paused`. If the message names a problem, correct it.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NotFound'],
    meaning:
      'vCenter does not have an object that the group needs, such as the template or the resource pool. The message names the object. The operator keeps looking for it.',
    remedy:
      'Create the object in vCenter, or correct its name in the spec. To change `spec.placement.datacenter`, delete the group and create another.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Ambiguous'],
    meaning: 'Several vCenter objects match the spec, and the operator cannot choose between them.',
    remedy:
      'In the spec, name the object that the message asks for by its full inventory path. To set `spec.placement.datacenter`, delete the group and create another.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NoPermission'],
    meaning: "The operator's vCenter user lacks a privilege.",
    remedy: "In vCenter, grant the operator's user the privilege that the message names.",
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['FolderTaken'],
    meaning:
      "The group's folder belongs to another group. For example, the groups `a-b/c` and `a/b-c` (namespace/name) both use the folder `a-b-c`.",
    remedy:
      'Delete one of the two groups, and create it under another name or with another `spec.placement.folder`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NameTaken'],
    meaning:
      "The group's folder contains a machine that does not belong to the group and has the name of one of the group's machines.",
    remedy: 'In vCenter, rename that machine, or move it to another folder.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Moved'],
    meaning: "Users moved the machines that the message lists out of the group's folder.",
    remedy: "In vCenter, move the machines back into the group's folder, or delete them.",
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['IsTemplate'],
    meaning: 'A user turned a machine of the group into a template.',
    remedy: 'In vCenter, convert that template back to a virtual machine, or delete it.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NoSnapshot'],
    meaning: '`spec.linked` is true, but the template has no snapshot.',
    remedy: 'Take a snapshot of the template in vCenter, or set `spec.linked` to false.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['PlacementChanged'],
    meaning:
      '`spec.placement` names another vCenter, datacenter or folder than the status, which says where the machines are. Machines do not move.',
    remedy:
      'Delete the group and create another: `vcenter`, `datacenter` and `folder` in `spec.placement` are immutable. Deletion removes the machines from the place in the status, unless the deletion policy is `Orphan`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['InvalidPlacement'],
    meaning:
      'The path of the folder violates the [path rules](#tenants). The path is `spec.placement.folder` or a default of the operator.',
    remedy:
      'If `spec.placement.folder` is set, delete the group and create another with a valid folder. Otherwise, correct `--vsphere-folder`, or `placement.folder` of the vCenter in the file that `--vcenters` names.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['UnknownVcenter'],
    meaning:
      'The vCenter in `status.vcenter` or, if that is not set, in `spec.placement.vcenter` is not available to the namespace. If neither is set, no vCenter is available to the namespace.',
    remedy:
      'If `status.vcenter` is not set, delete the group and create another with an available `spec.placement.vcenter`. Otherwise, ask the administrator of the operator to make the vCenter available to the namespace.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['VcenterChanged'],
    meaning:
      "The vCenter's address leads to another vCenter than at the operator's first login. The operator changes nothing there.",
    remedy:
      'Correct the address: `VC_HOST`, or `server` in the file that `--vcenters` names. If the vCenter was replaced on purpose, restart the operator.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['VcenterChanged'],
    meaning:
      "The vCenter named in `status.vcenter` is not the one that holds the group's machines (`status.vcenterId`).",
    remedy:
      'Set the address of that vCenter back: `VC_HOST`, or `server` in the file that `--vcenters` names. Or set the annotation `vmwright.dev/deletion-policy: Orphan` and delete the group.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['VcenterUntrusted'],
    meaning: "vCenter's certificate is not trusted, or the file with its CA cannot be read.",
    remedy:
      'Set or correct `VC_CA` or `VC_THUMBPRINT` of the operator. With `--vcenters`, set or correct `ca` or `thumbprint` in that file. To accept any certificate, set only `--insecure`, or only `insecure: true` in that file.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['VcenterUnauthorized'],
    meaning: 'vCenter rejects the user name or password, or the operator cannot read them.',
    remedy:
      'Correct `VC_USER` and `VC_PASS` of the operator, or the files with these names in the folder with the credentials of the vCenter.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['VcenterUnreachable'],
    meaning: 'vCenter does not respond, or responds with an HTTP error such as 503.',
    remedy: 'Wait. If this continues, check vCenter, and the network between the operator and vCenter.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['Connecting'],
    meaning: 'The operator waits for the inventory of vCenter.',
    remedy: 'Wait.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['VcenterBusy'],
    meaning:
      'vCenter cannot execute the operation yet: another operation is still running, an ESXi host does not respond, or vCenter does not show the machine yet. The operator retries.',
    remedy: 'Wait.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['VcenterRefused'],
    meaning:
      'vCenter rejected the operation. The message contains the text from vCenter. The operator retries. If a change of `spec.cpu` or `spec.memory` required powering a machine off, the operator waits 30 s to 10 min before the retry.',
    remedy: 'Remove the cause that the message names.',
  },
  {
    type: 'VCenterAvailable',
    status: 'True',
    reasons: ['Connected'],
    meaning: 'vCenter responds, and its inventory is current.',
    remedy: 'Nothing.',
  },
  {
    type: 'VCenterAvailable',
    status: 'False',
    reasons: ['VcenterUnreachable', 'VcenterUnauthorized', 'VcenterUntrusted', 'VcenterChanged'],
    meaning:
      'The operator cannot use vCenter. `Ready` is Unknown with the same reason and message; the rest of the status shows the last observed machines.',
    remedy: 'See `Ready` with the same reason.',
  },
  {
    type: 'VCenterAvailable',
    status: 'Unknown',
    reasons: ['Connecting'],
    meaning: 'The operator waits for the inventory of vCenter.',
    remedy: 'Wait.',
  },
] as const satisfies readonly ConditionDoc[];

/** Reasons of the conditions, and reasons of problems that only events report. */
export type VmGroupReason = ReasonOf<typeof CONDITIONS> | 'InvalidDeletionPolicy' | 'UnknownMachine';
export type VmGroupOutcome = OutcomeWith<VmGroupReason>;
