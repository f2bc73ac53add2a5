import type { ConditionDoc, OutcomeWith, ReasonOf } from '../docs/conditions.ts';

/** Conditions of a VM. The reasons that the code may report are derived from this table, and so is docs/vm.md. */
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
    status: 'False',
    reasons: ['Creating', 'Building'],
    meaning: 'The operator requested the machine; the cloud is creating it.',
    remedy: 'Wait.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['MachineFailed'],
    meaning: 'The cloud could not start the machine, or the machine failed later.',
    remedy: 'Delete the VM, or set `vmwright.dev/recreate`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['MachineDeleting'],
    meaning: 'The cloud is deleting the machine.',
    remedy:
      'Wait. If `vmwright.dev/recreate` is not set, the operator did not request the deletion: find out who did.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['VmLost'],
    meaning: 'The cloud has no machine of this VM any more.',
    remedy: 'Delete the VM, or set `vmwright.dev/recreate`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Recreating'],
    meaning: 'A lost or failed machine is being replaced.',
    remedy: 'Wait.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NameProhibited'],
    meaning: 'The cloud does not allow this name.',
    remedy: 'Create a VM with another `vmname`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NameTaken'],
    meaning: 'Another machine uses this name.',
    remedy: 'Choose another `vmname`, or delete the VM that the message names.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Paused'],
    meaning: 'The VM was paused before it had a machine.',
    remedy: 'Remove `vmwright.dev/paused`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Deleting'],
    meaning: 'The machine is being deleted, or its deletion is blocked; the message then says why.',
    remedy: 'Wait, or correct the annotation that the message names.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Deleted'],
    meaning: "The machine is deleted; other controllers' finalizers keep the object.",
    remedy: 'Check the controllers that own those finalizers.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Orphaned'],
    meaning: "The machine stays in the cloud; other controllers' finalizers keep the object.",
    remedy: 'Check the controllers that own those finalizers.',
  },
  {
    type: 'Ready',
    status: 'False, Unknown',
    reasons: ['CloudRefused'],
    meaning:
      'The cloud rejected the request as invalid; the message contains its text. The status is False if no machine exists.',
    remedy: 'Read the message. The operator retries within a minute.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['CloudUnreachable'],
    meaning: 'The cloud does not answer.',
    remedy: 'Wait; check the network between operator and cloud.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['CloudFailing'],
    meaning: 'The cloud answers with a server error (HTTP 5xx).',
    remedy: 'Wait; ask the administrator of the cloud.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['CloudBusy'],
    meaning:
      'The cloud asked to back off (429, or 503 with `Retry-After`). The operator sends no requests for the requested time.',
    remedy: 'Wait.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['CloudUnauthorized'],
    meaning: "The cloud rejects the operator's API key, or the operator cannot read the key.",
    remedy: 'Replace the key. The operator retries every second and uses a new key immediately.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['CloudUnexpectedAnswer'],
    meaning: "Another program, such as a proxy, answers at the cloud's address.",
    remedy: 'Check `CLOUD_URL` and the proxy settings.',
  },
  {
    type: 'CloudAvailable',
    status: 'True',
    reasons: ['Answering'],
    meaning: "The cloud answers the operator's requests for this VM.",
    remedy: 'Nothing.',
  },
  {
    type: 'CloudAvailable',
    status: 'False',
    reasons: ['CloudUnreachable', 'CloudFailing', 'CloudBusy', 'CloudUnauthorized', 'CloudUnexpectedAnswer'],
    meaning:
      'An outage: the cloud does not answer or does not serve the operator. `CloudRefused` is no outage.',
    remedy: 'See `Ready` with the same reason.',
  },
  {
    type: 'NameAccepted',
    status: 'True',
    reasons: ['Accepted'],
    meaning: 'The cloud accepts the name.',
    remedy: 'Nothing.',
  },
  {
    type: 'NameAccepted',
    status: 'False',
    reasons: ['Prohibited', 'Taken'],
    meaning:
      'The cloud rejects the name. The operator checks it again every five minutes and when the object changes.',
    remedy: 'See `Ready` with the reason `NameProhibited` or `NameTaken`.',
  },
  {
    type: 'VmLost',
    status: 'True',
    reasons: ['NotFound'],
    meaning: 'The cloud has no machine of this VM any more. Absent otherwise.',
    remedy: 'See `Ready` with the reason `VmLost`.',
  },
] as const satisfies readonly ConditionDoc[];

export type VmReason = ReasonOf<typeof CONDITIONS>;
export type VmOutcome = OutcomeWith<VmReason>;
