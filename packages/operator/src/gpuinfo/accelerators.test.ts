import { expect, test } from 'vitest';
import { acceleratorRank, isAccelerator, modelsOf } from './accelerators.ts';

test.each([
  'nvidia.com/gpu',
  'nvidia.com/gpu.shared',
  'nvidia.com/mig-1g.5gb',
  'nvidia.com/mig-3g.20gb.shared',
  'amd.com/gpu',
  'amd.com/cpx_nps4',
  'gpu.intel.com/i915',
  'gpu.intel.com/xe',
  'habana.ai/gaudi',
  'google.com/tpu',
  'aws.amazon.com/neuron',
  'huawei.com/Ascend910',
  'metax-tech.com/gpu',
  'iluvatar.ai/gpu',
  'kunlunxin.com/xpu',
])('%s is an accelerator', (resource) => {
  expect(isAccelerator(resource)).toBe(true);
});

test.each([
  'cpu',
  'memory',
  'ephemeral-storage',
  'hugepages-2Mi',
  'attachable-volumes-aws-ebs',
  'nvidia.com/gpumem',
  'nvidia.com/gpucores',
  'gpu.intel.com/millicores',
  'gpu.intel.com/memory.max',
  'gpu.intel.com/i915_monitoring',
  'devices.kubevirt.io/kvm',
  'kubernetes.io/gpu',
  'alpha.kubernetes.io/gpu',
  'vpc.amazonaws.com/pod-eni',
])('%s is not an accelerator', (resource) => {
  expect(isAccelerator(resource)).toBe(false);
});

test('acceleratorRank sorts whole devices first, then partitions, then shared devices', () => {
  const resources = [
    'nvidia.com/mig-1g.5gb.shared',
    'nvidia.com/gpu.shared',
    'nvidia.com/mig-1g.5gb',
    'nvidia.com/gpu',
  ];
  const ordered = resources.toSorted((a, b) => (acceleratorRank(a) ?? 0) - (acceleratorRank(b) ?? 0));
  expect(ordered).toEqual([
    'nvidia.com/gpu',
    'nvidia.com/mig-1g.5gb',
    'nvidia.com/gpu.shared',
    'nvidia.com/mig-1g.5gb.shared',
  ]);
});

test.each([
  ['nvidia.com/gpu', { 'nvidia.com/gpu.product': 'NVIDIA-A100-SXM4-40GB' }, ['NVIDIA-A100-SXM4-40GB']],
  ['nvidia.com/gpu', { 'cloud.google.com/gke-accelerator': 'nvidia-l4' }, ['nvidia-l4']],
  ['nvidia.com/gpu', { 'karpenter.k8s.aws/instance-gpu-name': 't4' }, ['t4']],
  [
    'nvidia.com/mig-1g.5gb',
    { 'nvidia.com/gpu.product': 'whole', 'nvidia.com/mig-1g.5gb.product': 'A100-MIG-1g.5gb' },
    ['A100-MIG-1g.5gb'],
  ],
  ['amd.com/gpu', { 'amd.com/gpu.product-name': 'Instinct_MI300X' }, ['Instinct_MI300X']],
  ['gpu.intel.com/xe', { 'gpu.intel.com/product': 'Max_1550' }, ['Max_1550']],
  ['google.com/tpu', { 'cloud.google.com/gke-tpu-accelerator': 'tpu-v5-lite' }, ['tpu-v5-lite']],
  ['amd.com/gpu', { 'nvidia.com/gpu.product': 'other vendor' }, []],
  ['nvidia.com/gpu', { 'nvidia.com/gpu.product': '' }, []],
  ['example.com/gpu', {}, []],
])('the model of %s with the labels %j is %j', (resource, labels, models) => {
  expect(modelsOf(resource, labels)).toEqual(models);
});
