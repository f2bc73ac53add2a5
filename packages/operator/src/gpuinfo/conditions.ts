import type { ConditionDoc, OutcomeWith, ReasonOf } from '../docs/conditions.ts';

/** Conditions of a GPUInfo. The reasons that the code may report are derived from this table, and so is docs/gpuinfo.md. */
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
    meaning: 'No node has the labels of `nodeSelector`.',
    remedy: 'Correct `nodeSelector`, or label a node.',
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
    remedy: 'Add a node without GPUs, or set `gpuRequired: true`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NoMatchingModel'],
    meaning: 'No node has GPUs of the model `gpuModel`.',
    remedy: 'Correct `gpuModel`; `status.candidates` names the models.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['TooFewGpus'],
    meaning: 'No node has as many GPUs as `gpuCount`.',
    remedy: 'Lower `gpuCount`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['NodesNotReady'],
    meaning: 'No job can start on the matching nodes now.',
    remedy: 'See the reasons of the nodes in `status.candidates`.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['AllInUse'],
    meaning: 'Pods use all matching GPUs.',
    remedy: 'Wait until they end.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['AllReserved'],
    meaning: 'All matching GPUs are reserved or in use.',
    remedy: 'Wait until `fitsFrom`, or delete a GPUInfo that is not needed.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['TooShort'],
    meaning: 'Maintenance of all matching nodes comes too early, or `desAccTime` exceeds `--gpu-horizon`.',
    remedy: 'Use `fitsIfShortenedTo` hours, or wait until `fitsFrom`.',
  },
  {
    type: 'Ready',
    status: 'Unknown',
    reasons: ['FactsUnknown'],
    meaning: 'The state of the matching nodes is unknown or stale.',
    remedy: 'See `FactsComplete` and `status.candidates`.',
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
    remedy: 'To reserve a node again, change the spec.',
  },
  {
    type: 'Ready',
    status: 'False',
    reasons: ['Paused'],
    meaning: 'The object was paused before it had a node.',
    remedy: 'Remove `vmwright.dev/paused`.',
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
      'The reserved node is no longer suitable or does not exist (`NodeGone`), and the reservation stays, because a pod of its job is bound to the node or the object is paused.',
    remedy: 'See [Why is no node suitable?](#why-is-no-node-suitable)',
  },
  {
    type: 'FactsComplete',
    status: 'False',
    reasons: ['SourceUnavailable'],
    meaning:
      'A source of facts about nodes that match `nodeSelector`, or about the reserved node, is missing or has a value that cannot be read; the message names it. Absent otherwise.',
    remedy: 'Correct the value, or restore the source.',
  },
  {
    type: 'Simulated',
    status: 'True',
    reasons: ['GpuSource'],
    meaning:
      '`--gpu-source=simulated`: GPUs and maintenance are simulated with random values. Absent otherwise.',
    remedy: 'Use another `--gpu-source` in production.',
  },
] as const satisfies readonly ConditionDoc[];

export type GPUInfoReason = ReasonOf<typeof CONDITIONS>;
export type GPUInfoOutcome = OutcomeWith<GPUInfoReason>;
