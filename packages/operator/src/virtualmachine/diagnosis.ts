import { conditionOf, keyOf } from '@vmwright/runtime';
import type { VirtualMachineReason } from './conditions.ts';
import type { Observed } from './observe.ts';
import type { Problem } from './problem.ts';
import type { VirtualMachine } from './resource.ts';

/** State from which a problem is diagnosed. */
export type Symptoms = Pick<
  Observed,
  'machine' | 'instance' | 'claim' | 'storageClass' | 'missingNetworks' | 'isMultusInstalled' | 'image'
>;

/**
 * Returns why the machine does not run, based on the objects in the cluster and on KubeVirt's report. Undefined if no
 * cause is found. Each problem ends automatically when its cause is removed.
 */
export function diagnose(vm: VirtualMachine, symptoms: Symptoms): Problem | undefined {
  const { machine, instance, claim, storageClass, missingNetworks, isMultusInstalled } = symptoms;
  const problem = (reason: VirtualMachineReason, message: string): Problem => ({
    phase: 'Provisioning',
    reason,
    message,
  });
  const [network] = missingNetworks;
  if (network !== undefined) {
    const others = missingNetworks.length > 1 ? ` (and ${missingNetworks.length - 1} more)` : '';
    if (!isMultusInstalled)
      return problem(
        'MultusNotInstalled',
        `The NetworkAttachmentDefinition ${network}${others} of spec.interfaces cannot exist, because the cluster lacks this kind. Install Multus (k8s.cni.cncf.io/v1), or remove spec.interfaces to use the pod network`,
      );
    return problem(
      'NetworkNotFound',
      `The NetworkAttachmentDefinition ${network}${others} of spec.interfaces does not exist. Create it, or correct the interface`,
    );
  }
  if (storageClass?.exists === false && claim?.status?.phase !== 'Bound')
    return problem(
      'StorageClassNotFound',
      `The StorageClass ${storageClass.name} of the root disk does not exist. Create it, or correct storageClass of the VMDiskImage`,
    );
  const status = machine?.status?.printableStatus;
  const where = keyOf(vm.metadata);
  // The conditions of an instance that is being deleted are ignored: they say nothing about the next instance.
  const isAlive = instance?.metadata.deletionTimestamp === undefined;
  const conditions = isAlive ? instance?.status?.conditions : undefined;
  switch (status) {
    case 'ErrorUnschedulable': {
      const { message = 'no cause given' } = conditionOf(conditions, 'PodScheduled') ?? {};
      return problem(
        'Unschedulable',
        `No node can run the machine: ${message}. Reduce spec.resources, or add nodes with enough resources`,
      );
    }
    case 'ErrImagePull':
    case 'ImagePullBackOff':
      return problem(
        status,
        `A node cannot pull KubeVirt's launcher image. Check the installation of KubeVirt`,
      );
    case 'ErrorPvcNotFound':
      return claim === undefined
        ? claimLost(vm)
        : problem(
            status,
            'KubeVirt started the machine before its root disk existed; the operator restarts it',
          );
    case 'DataVolumeError':
      return problem(status, 'KubeVirt reports an error of the root disk; see the condition VolumeReady');
    case 'CrashLoopBackOff':
      return problem(
        status,
        `The machine repeatedly fails to start; KubeVirt retries with a back-off of up to 5 minutes. See the events of the VirtualMachineInstance ${where}`,
      );
    case 'Paused':
      return problem(
        'MachinePaused',
        `The machine is paused. Unpause it with: virtctl unpause vm ${vm.metadata.name}`,
      );
  }
  const failure = conditionOf(machine?.status?.conditions, 'Failure');
  const failed = failure?.status === 'True' ? failure : conditionOf(conditions, 'Synchronized');
  if (failed === undefined || (failed !== failure && failed.status !== 'False')) return undefined;
  return problem(
    'MachineFailing',
    `KubeVirt cannot start the machine: ${failed.message ?? failed.reason ?? ''}`,
  );
}

/** Returns the problem to report after the claim of the root disk, and the data with it, was deleted. */
export function claimLost({ status }: VirtualMachine): Problem {
  return {
    phase: 'Provisioning',
    reason: 'ClaimNotFound',
    message: `The PersistentVolumeClaim of the root disk was deleted, and the data of the disk with it. To clone a new disk from the image, delete ${status?.dataVolume === undefined ? 'its DataVolume' : `the DataVolume ${status.dataVolume}`}`,
  };
}
