/**
 * Extended resources that are accelerators, in order of precedence: whole devices, then parts of devices, then shared
 * devices. A node may announce several of them, often for the same devices. Then only the first resource with
 * allocatable devices is used.
 */
const RESOURCES: readonly (string | RegExp)[] = [
  'nvidia.com/gpu',
  'amd.com/gpu',
  'gpu.intel.com/xe',
  'gpu.intel.com/i915',
  'habana.ai/gaudi',
  'google.com/tpu',
  'aws.amazon.com/neuron',
  'aws.amazon.com/neurondevice',
  /^huawei\.com\/Ascend\w*$/,
  'cambricon.com/mlu',
  'qualcomm.com/qaic',
  /^nvidia\.com\/mig-[\w.]+(?<!\.shared)$/,
  /^amd\.com\/(spx|dpx|qpx|cpx)_nps\d$/,
  'aws.amazon.com/neuroncore',
  'nvidia.com/gpu.shared',
  /^nvidia\.com\/mig-[\w.]+\.shared$/,
  /** Rule for other vendors: the part after the slash names a type of accelerator, as in `metax-tech.com/gpu`. */
  /^(?!([^/]+\.)?kubernetes\.io\/)[^/]+\/(gpu|vgpu|npu|tpu|xpu|accelerator)$/,
];

/**
 * Returns the precedence of an extended resource among accelerators, 0 first; undefined if it is not an accelerator.
 */
export function acceleratorRank(resource: string): number | undefined {
  const rank = RESOURCES.findIndex((each) =>
    typeof each === 'string' ? each === resource : each.test(resource),
  );
  return rank === -1 ? undefined : rank;
}

/** Whether an extended resource is an accelerator. */
export function isAccelerator(resource: string): boolean {
  return acceleratorRank(resource) !== undefined;
}

/**
 * Labels with the model of a node's accelerators, by extended resource. GPU vendors' node labelers and cloud providers
 * set them.
 */
const MODEL_LABELS: readonly { readonly resource: RegExp; readonly labels: readonly string[] }[] = [
  {
    resource: /^nvidia\.com\//,
    labels: [
      'nvidia.com/gpu.product',
      'cloud.google.com/gke-accelerator',
      'karpenter.k8s.aws/instance-gpu-name',
      'k8s.amazonaws.com/accelerator',
    ],
  },
  { resource: /^amd\.com\//, labels: ['amd.com/gpu.product-name', 'beta.amd.com/gpu.product-name'] },
  { resource: /^gpu\.intel\.com\//, labels: ['gpu.intel.com/product'] },
  { resource: /^google\.com\/tpu$/, labels: ['cloud.google.com/gke-tpu-accelerator'] },
  { resource: /^aws\.amazon\.com\//, labels: ['karpenter.k8s.aws/instance-accelerator-name'] },
];

/** Returns the models of a node's accelerators according to its labels; empty if no label names a model. */
export function modelsOf(resource: string, labels: Readonly<Record<string, string>>): readonly string[] {
  // GPU feature discovery sets one model label per MIG profile, such as nvidia.com/mig-1g.5gb.product.
  const own = labels[`${resource}.product`];
  if (own !== undefined && own !== '') return [own];
  const known = MODEL_LABELS.find((each) => each.resource.test(resource))?.labels ?? [];
  const model = known.map((label) => labels[label]).find((value) => value !== undefined && value !== '');
  return model === undefined ? [] : [model];
}
