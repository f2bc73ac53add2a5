import { expect, test } from 'vitest';
import type { ForeignCondition } from '../kubevirt/kinds.ts';
import { diagnose, type Symptoms } from './diagnosis.ts';
import type { VirtualMachine } from './resource.ts';

const metadata = { namespace: 'work', name: 'demo' };
const vm: VirtualMachine = {
  metadata,
  spec: { resources: { cpu: 1, memory: '1Gi', diskSize: '1Gi' }, vmDiskImageRef: { name: 'base' } },
  status: { dataVolume: 'demo-root' },
};
const claim = { metadata: { namespace: 'work', name: 'demo-root' } };
const machine = (printableStatus: string, ...conditions: readonly ForeignCondition[]) => ({
  metadata,
  status: { printableStatus, conditions },
});
const instance = (...conditions: readonly ForeignCondition[]) => ({ metadata, status: { conditions } });
const isFalse = (type: string, message: string) => ({ type, status: 'False', message });

test.for<readonly [string, string, Partial<Symptoms>]>([
  [
    'NetworkNotFound',
    'The NetworkAttachmentDefinition work/a (and 1 more) of spec.interfaces does not exist. Create it',
    { missingNetworks: ['work/a', 'work/b'] },
  ],
  [
    'MultusNotInstalled',
    'The NetworkAttachmentDefinition work/a of spec.interfaces cannot exist, because the cluster lacks this kind. Install Multus',
    { missingNetworks: ['work/a'], isMultusInstalled: false },
  ],
  [
    'StorageClassNotFound',
    'The StorageClass gp3 of the root disk does not exist. Create it, or correct storageClass',
    { storageClass: { name: 'gp3', exists: false, allowsExpansion: false } },
  ],
  [
    'Unschedulable',
    'No node can run the machine: 0/2 nodes are available. Reduce spec.resources',
    {
      machine: machine('ErrorUnschedulable'),
      instance: instance(isFalse('PodScheduled', '0/2 nodes are available')),
    },
  ],
  ['ImagePullBackOff', 'Check the installation of KubeVirt', { machine: machine('ImagePullBackOff') }],
  ['ErrorPvcNotFound', 'the operator restarts it', { machine: machine('ErrorPvcNotFound'), claim }],
  [
    'ClaimNotFound',
    'To clone a new disk from the image, delete the DataVolume demo-root',
    { machine: machine('ErrorPvcNotFound') },
  ],
  ['DataVolumeError', 'see the condition VolumeReady', { machine: machine('DataVolumeError') }],
  [
    'CrashLoopBackOff',
    'See the events of the VirtualMachineInstance work/demo',
    { machine: machine('CrashLoopBackOff') },
  ],
  ['MachinePaused', 'virtctl unpause vm demo', { machine: machine('Paused') }],
  [
    'MachineFailing',
    'KubeVirt cannot start the machine: no such thing',
    { machine: machine('Stopped', { type: 'Failure', status: 'True', message: 'no such thing' }) },
  ],
  [
    'MachineFailing',
    'KubeVirt cannot start the machine: failed to locate it',
    { machine: machine('Starting'), instance: instance(isFalse('Synchronized', 'failed to locate it')) },
  ],
])('the reason %s is reported with a message that contains: %s', ([reason, text, symptoms]) => {
  const problem = diagnose(vm, { missingNetworks: [], isMultusInstalled: true, ...symptoms });
  expect(problem).toMatchObject({ phase: 'Provisioning', reason });
  expect(problem?.message).toContain(text);
});

test.for<Partial<Symptoms>>([
  {},
  { machine: machine('Starting'), instance: instance({ type: 'Synchronized', status: 'True' }) },
  { machine: machine('Running', { type: 'Failure', status: 'False', message: 'old' }) },
  // The StorageClass was deleted after the disk was bound to its volume; the disk stays usable.
  {
    storageClass: { name: 'gp3', exists: false, allowsExpansion: false },
    claim: { ...claim, status: { phase: 'Bound' } },
  },
  {
    machine: machine('Stopping'),
    instance: {
      ...instance(isFalse('Synchronized', 'old')),
      metadata: { ...metadata, deletionTimestamp: '2026-11-17T10:00:00Z' },
    },
  },
])('no problem is reported for %j', (symptoms) => {
  expect(diagnose(vm, { missingNetworks: [], isMultusInstalled: true, ...symptoms })).toBeUndefined();
});
