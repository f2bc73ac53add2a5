import type { ConditionDoc, OutcomeWith, ReasonOf } from '../docs/conditions.ts';

/**
 * Conditions of a GPUInfo. The reasons that the code may report are derived from this table, and so is docs/gpuinfo.md.
 */
export const CONDITIONS = [
  {
    type: 'Ready',
    status: 'True',
    reasons: ['Reserved'],
    meaning: 'A node is reserved.',
    remedy: 'Nothing.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NoNodes'],
    meaning: 'The cluster has no nodes.',
    remedy: 'Add a node.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NoMatchingNode'],
    meaning: 'No node has all labels in `spec.nodeSelector`.',
    remedy: 'Correct `spec.nodeSelector`, or label a node.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NoGpu'],
    meaning: 'The job needs a GPU, and no matching node has one.',
    remedy: 'Check that the device plugin or DRA driver runs: `kubectl describe node`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['OnlyGpuNodes'],
    meaning: 'The job needs no GPU, and all matching nodes have GPUs.',
    remedy: 'Add a node without GPUs, or set `spec.gpuRequired` to true.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NoMatchingModel'],
    meaning: 'No matching node has GPUs of the model in `spec.gpuModel`.',
    remedy: 'Correct `spec.gpuModel`. The messages in `status.candidates` name the models of the nodes.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['TooFewGpus'],
    meaning: 'No matching node has as many GPUs as `spec.gpuCount`.',
    remedy: 'Lower `spec.gpuCount`, or add a node with more GPUs.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NodesNotReady'],
    meaning: 'No job can start on the matching nodes now.',
    remedy: 'Remove the cause that `status.candidates` names for a node, such as a taint.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['AllInUse'],
    meaning: 'Pods use all matching GPUs.',
    remedy: 'Wait until these pods end, or delete a pod that is not needed.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['AllReserved'],
    meaning: 'All matching GPUs are reserved or in use.',
    remedy: 'Wait until `status.fitsFrom`, if it is set, or delete a GPUInfo that is not needed.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['TooShort'],
    meaning:
      'No matching node is available for `spec.desAccTime` hours. Maintenance begins earlier, or no maintenance is known and `spec.desAccTime` is longer than `--gpu-horizon`.',
    remedy:
      'Reduce `spec.desAccTime` to the hours in `status.fitsIfShortenedTo`, or wait until `status.fitsFrom`, if it is set.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['FactsUnknown'],
    meaning: 'The state of the matching nodes is unknown or stale.',
    remedy:
      'Restore the source that the condition `FactsComplete` or a message in `status.candidates` names.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['TooManyReservations'],
    meaning:
      'The limit of stored reservations, of the namespace or of the cluster, is reached. See [Limits](#limits).',
    remedy: 'Delete GPUInfos that are no longer needed, including ended ones.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['ReservationEnded'],
    meaning: '`desAccTime` has passed, or the job has ended.',
    remedy: 'To reserve a node again, change `spec`, or create another GPUInfo.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Paused'],
    meaning: 'The GPUInfo was paused before a node was reserved.',
    remedy: 'Remove the annotation `vmwright.dev/paused`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Deleting'],
    meaning: 'The GPUInfo is being deleted and has no node.',
    remedy: 'Wait until the finalizers in `metadata.finalizers` are removed.',
  },
  {
    type: 'Degraded',
    status: 'True',
    reasons: ['PodsOnOtherNode'],
    meaning:
      'Pods of the job run on, or wait for, another node than the reserved one, because the reservation moved after they were created.',
    remedy: 'Delete these pods; the pods that replace them are bound to the reserved node.',
  },
  {
    type: 'Degraded',
    status: 'True',
    reasons: [
      'OtherLabels',
      'NoGpu',
      'HasGpu',
      'OtherModel',
      'TooFewGpus',
      'NotReady',
      'Unschedulable',
      'Tainted',
      'PoweredOff',
      'HostUnavailable',
      'HostInMaintenance',
      'Reserved',
      'InUse',
      'TooShort',
      'BeyondHorizon',
      'FactsUnknown',
      'NodeGone',
    ],
    meaning:
      'The reserved node is no longer suitable, or it does not exist (`NodeGone`). The reservation stays, because a pod of the job is bound to the node or the GPUInfo is paused.',
    remedy: 'Look up the reason in [Why is no node suitable?](#why-is-no-node-suitable)',
  },
  {
    type: 'FactsComplete',
    status: 'False',
    reasons: ['SourceUnavailable'],
    meaning:
      'The operator lacks information about the nodes that match `spec.nodeSelector`, or about the reserved node. A source is missing, or has a value that cannot be read. The message names the source. Absent otherwise.',
    remedy: 'Correct the value, or restore the source that the message names.',
  },
  {
    type: 'Simulated',
    status: 'True',
    reasons: ['GpuSource'],
    meaning:
      'The operator runs with `--gpu-source=simulated`: GPUs and maintenance are simulated with random values. Absent otherwise.',
    remedy: 'Set `--gpu-source=real` in production.',
  },
] as const satisfies readonly ConditionDoc[];

export type GPUInfoReason = ReasonOf<typeof CONDITIONS>;
export type GPUInfoOutcome = OutcomeWith<GPUInfoReason>;
