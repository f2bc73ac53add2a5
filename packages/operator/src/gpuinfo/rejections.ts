/** Why a node does not meet a request, as a row of the documentation. Texts are Markdown. */
interface RejectionDoc {
  readonly reason: string;
  readonly meaning: string;
  /** What the user can do. */
  readonly remedy: string;
}

/**
 * Reasons why a node does not meet a request, in the order of the checks. The reason of a node is the first check that
 * fails. The later this check, the closer the node is to being suitable. Exception: FactsUnknown is closer than NoGpu,
 * HasGpu, OtherModel and TooFewGpus, because the node may match. docs/gpuinfo.md is generated from this table.
 */
export const REJECTIONS = [
  {
    reason: 'OtherLabels',
    meaning: 'The node does not have all labels of `nodeSelector`.',
    remedy: 'Correct `nodeSelector`, or label the node.',
  },
  {
    reason: 'FactsUnknown',
    meaning:
      'The state of the node is unknown or stale: vCenter does not respond, the VM of the node is not found, a start of maintenance cannot be parsed, or the calendar has never been valid.',
    remedy: 'See the message and the condition `FactsComplete`. An existing reservation stays.',
  },
  {
    reason: 'NoGpu',
    meaning: 'The job needs a GPU, and neither the node nor its host has one.',
    remedy: 'Check that the device plugin or DRA driver runs: `kubectl describe node`.',
  },
  {
    reason: 'HasGpu',
    meaning: 'The job needs no GPU, and the node or its host has one.',
    remedy: 'Nodes with GPUs are kept for jobs that need them.',
  },
  {
    reason: 'OtherModel',
    meaning: 'The model of the GPUs does not match `gpuModel`.',
    remedy: 'Compare `gpuModel` with the model in the message; `*` stands for any characters.',
  },
  {
    reason: 'TooFewGpus',
    meaning: 'The node has fewer GPUs than `gpuCount`.',
    remedy: 'Lower `gpuCount`.',
  },
  {
    reason: 'NotReady',
    meaning: 'The condition `Ready` of the node is not True.',
    remedy: '`kubectl describe node`',
  },
  {
    reason: 'Unschedulable',
    meaning: 'The node is cordoned or being deleted.',
    remedy: '`kubectl uncordon`',
  },
  {
    reason: 'Tainted',
    meaning: 'The node has a taint with the effect `NoSchedule` or `NoExecute`.',
    remedy: 'Remove the taint. A `NoSchedule` taint with the GPU resource as key is ignored.',
  },
  {
    reason: 'PoweredOff',
    meaning: 'The VM of the node is powered off.',
    remedy: 'Power it on.',
  },
  {
    reason: 'HostUnavailable',
    meaning: 'vCenter is not connected to the ESXi host.',
    remedy: 'Check the host.',
  },
  {
    reason: 'HostInMaintenance',
    meaning: 'The ESXi host is in maintenance mode.',
    remedy: 'Wait, or exit maintenance mode.',
  },
  {
    reason: 'InUse',
    meaning: 'Pods use the GPUs.',
    remedy: 'Wait until they end.',
  },
  {
    reason: 'Reserved',
    meaning: 'Other GPUInfos have reserved the GPUs.',
    remedy: 'Wait until `status.fitsFrom`, if it is set, or delete a GPUInfo that is not needed.',
  },
  {
    reason: 'TooShort',
    meaning: 'Maintenance begins before the job is done; the message has the time and the source.',
    remedy:
      'Reduce `spec.desAccTime` to the hours in `status.fitsIfShortenedTo`, or wait until `status.fitsFrom`, if it is set.',
  },
  {
    reason: 'BeyondHorizon',
    meaning: 'No maintenance is known, and `spec.desAccTime` exceeds `--gpu-horizon`.',
    remedy: 'Reduce `spec.desAccTime`, or raise `--gpu-horizon`.',
  },
] as const satisfies readonly RejectionDoc[];
