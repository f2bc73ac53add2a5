import type { ConditionDoc, OutcomeWith, ReasonOf } from '../docs/conditions.ts';

/** Conditions of a VmGroup. The reasons that the code may report are derived from this table, and so is docs/vmgroup.md. */
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
    meaning: 'The machines are being removed, or the message says what prevents that.',
    remedy: 'Wait, or see the message.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NotFound'],
    meaning:
      'The template, resource pool or another object does not exist (yet). The operator keeps looking for it.',
    remedy: 'Correct the name, or create the object.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Ambiguous'],
    meaning: 'Several vCenter objects have the name in the spec.',
    remedy: 'Use the full inventory path.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NoPermission'],
    meaning: "The operator's vCenter user lacks a privilege.",
    remedy: 'Grant the privilege that the message names.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['FolderTaken'],
    meaning: 'The folder belongs to another group: groups `a-b/c` and `a/b-c` both use the folder `a-b-c`.',
    remedy: 'Delete one group and create it under another name or with another `placement.folder`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NameTaken'],
    meaning:
      "The group's folder contains a foreign machine that has the name of one of the group's machines.",
    remedy: 'Rename that machine, or move it away.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Moved'],
    meaning: "Users moved the machines that the message lists out of the group's folder.",
    remedy: 'Move them back, or delete them.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['IsTemplate'],
    meaning: 'A user turned a machine into a template.',
    remedy: 'Convert it back, or delete it.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NoSnapshot'],
    meaning: '`linked` needs a snapshot of the template.',
    remedy: 'Take a snapshot, or set `linked: false`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['PlacementChanged'],
    meaning:
      '`spec.placement` names another place than the one where the machines are; machines do not move.',
    remedy: 'Set the placement back, or delete the group and create another.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['InvalidPlacement'],
    meaning:
      'The folder, possibly from `--vsphere-folder` or the vCenter file, violates the [path rules](#tenants).',
    remedy: 'Correct the folder.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['UnknownVcenter'],
    meaning: 'No vCenter of that name is available to the namespace.',
    remedy: 'Correct `placement.vcenter`.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['VcenterChanged'],
    meaning: 'The address leads to another vCenter than at the first login. Nothing is sent to it.',
    remedy: 'Correct the address, or restart the operator if the vCenter was replaced on purpose.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['VcenterChanged'],
    meaning: "The vCenter of that name is not the one that holds the group's machines (`status.vcenterId`).",
    remedy:
      'Set the address of that vCenter back, or delete the group with `vmwright.dev/deletion-policy: Orphan`.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['VcenterUntrusted'],
    meaning: "vCenter's certificate is not trusted, or the file with its CA cannot be read.",
    remedy: 'Set or correct `VC_CA` or `VC_THUMBPRINT`, or pass `--insecure`.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['VcenterUnauthorized'],
    meaning: 'vCenter rejects the user name or password.',
    remedy: 'Correct the credentials.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['VcenterUnreachable'],
    meaning: 'vCenter does not respond, or responds with an HTTP error such as 503.',
    remedy: 'Wait, or repair the network.',
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
    meaning: 'Another operation on the machine has to finish first.',
    remedy: 'Wait.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['VcenterRefused'],
    meaning:
      'vCenter rejected the operation; the message contains its text. The operator retries. If the operation required powering off a machine, it waits 30 s to 10 min before the retry.',
    remedy: 'Read the message.',
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
