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
    remedy:
      'Delete the VM, or set the annotation `vmwright.dev/recreate: "true"` to get a new machine. If the annotation is already set, read the message.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['MachineDeleting'],
    meaning: 'The cloud is deleting the machine.',
    remedy:
      'Wait. If the annotation `vmwright.dev/recreate` is not set, the operator did not request the deletion: find out who did.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['VmLost'],
    meaning: 'The cloud has no machine of this VM any more.',
    remedy:
      'Delete the VM, or set the annotation `vmwright.dev/recreate: "true"` to get a new machine. If the annotation is already set, wait.',
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
    meaning: 'The cloud does not allow the name in `spec.vmname`.',
    remedy: 'Delete the VM, and create another with a different `spec.vmname`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NameTaken'],
    meaning: 'Another machine uses the name in `spec.vmname`.',
    remedy:
      'Delete this VM, and create another with a different `spec.vmname`. If the message names a VM, you can delete that VM instead.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Paused'],
    meaning: 'The VM was paused before it had a machine.',
    remedy: 'Remove the annotation `vmwright.dev/paused`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Deleting'],
    meaning:
      'The VM is being deleted. If something blocks the deletion of the machine, the message says what.',
    remedy: 'Wait. If the message names an annotation, correct or remove the annotation.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Deleted'],
    meaning: 'The machine is deleted. Finalizers of other controllers keep the VM object.',
    remedy: 'Check the controllers that own the finalizers in `metadata.finalizers`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Orphaned'],
    meaning:
      'The machine stays in the cloud, because the deletion policy is `Orphan`. Finalizers of other controllers keep the VM object.',
    remedy: 'Check the controllers that own the finalizers in `metadata.finalizers`.',
  },
  {
    type: 'Ready',
    status: 'False, Unknown',
    reasons: ['CloudRefused'],
    meaning:
      'The cloud rejected the request as invalid. The message contains the text from the cloud. `Ready` is False if `status.vmId` is not set, and Unknown otherwise.',
    remedy:
      'Remove the cause that the message names, or ask the administrator of the cloud. The operator retries within a minute.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['CloudUnreachable'],
    meaning: 'The cloud does not answer.',
    remedy: 'Wait. If this continues, check the network between the operator and the cloud.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['CloudFailing'],
    meaning: 'The cloud answers with a server error (HTTP 5xx).',
    remedy: 'Wait. If this continues, ask the administrator of the cloud.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['CloudBusy'],
    meaning:
      'The cloud asked the operator to pause (HTTP 429, or HTTP 503 with `Retry-After`). The operator sends no requests for the requested time, but pauses for at most one minute.',
    remedy: 'Wait.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['CloudUnauthorized'],
    meaning: "The cloud rejects the operator's API key, or the operator cannot read the key.",
    remedy:
      'Replace the key in the file that `--cloud-api-key-file` names; this needs no restart. If the key is in `CLOUD_API_KEY`, replace it there and restart the operator.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['CloudUnexpectedAnswer'],
    meaning: "Another program, such as a proxy, answers at the cloud's address.",
    remedy: "Check the operator's `CLOUD_URL` and proxy settings.",
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
    reasons: [
      'CloudUnreachable',
      'CloudFailing',
      'CloudBusy',
      'CloudUnauthorized',
      'CloudUnexpectedAnswer',
      'CloudRefused',
    ],
    meaning:
      'The cloud has an outage: it does not answer, or does not serve the operator. `CloudRefused` means here that the cloud rejects the requests that list the machines. A rejected request for a single VM is not an outage.',
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
