import { type Caches, ObjectMetrics, type Registry } from '@vmwright/runtime';
import { GPUInfo } from './gpuinfo/resource.ts';
import { VERSION } from './version.ts';
import { VirtualMachine } from './virtualmachine/resource.ts';
import { VM } from './vm/resource.ts';
import { VMDiskImage } from './vmdiskimage/resource.ts';
import { VmGroup } from './vmgroup/resource.ts';

type VmPhase = NonNullable<NonNullable<VM['status']>['opStatus']>;
type VmGroupPhase = NonNullable<NonNullable<VmGroup['status']>['phase']>;
type VirtualMachinePhase = NonNullable<NonNullable<VirtualMachine['status']>['phase']>;
type GpuInfoPhase = NonNullable<NonNullable<GPUInfo['status']>['phase']>;
type ImagePhase = NonNullable<NonNullable<VMDiskImage['status']>['phase']>;

/* Records instead of arrays, so that the compiler reports a phase that is missing here. */
const VM_PHASES: Readonly<Record<VmPhase, true>> = {
  New: true,
  Running: true,
  Failed: true,
  Unknown: true,
  Deleting: true,
  Deleted: true,
};
const VMGROUP_PHASES: Readonly<Record<VmGroupPhase, true>> = { RUNNING: true, PENDING: true, ERROR: true };
const VIRTUAL_MACHINE_PHASES: Readonly<Record<VirtualMachinePhase, true>> = {
  Provisioning: true,
  Ready: true,
  Failed: true,
  Deleting: true,
};
const IMAGE_PHASES: Readonly<Record<ImagePhase, true>> = {
  Queued: true,
  Syncing: true,
  Ready: true,
  Failed: true,
  RetryableFailure: true,
  Deleting: true,
};
const GPUINFO_PHASES: Readonly<Record<GpuInfoPhase, true>> = { Reserved: true, Pending: true, Ended: true };

/** Name of the gauge that counts the objects of each kind. */
export const OBJECTS = 'vmwright_objects';

/** Declares `vmwright_build_info`. @param revision commit that the program was built from */
export function buildMetrics(registry: Registry, revision: string): void {
  registry
    .gauge({
      name: 'vmwright_build_info',
      help: 'Version and commit of the operator and version of Node, as labels; the value is 1',
      labels: ['version', 'revision', 'node_version'],
    })
    .with({ version: VERSION, revision, node_version: process.version })
    .set(1);
}

/** Declares `vmwright_objects` for the kinds whose controllers run. */
export function objectMetrics(
  registry: Registry,
  caches: Caches,
  kinds: Readonly<Record<'vm' | 'vmgroup' | 'kubevirt' | 'gpuinfo', boolean>>,
): void {
  const metrics = new ObjectMetrics(registry, OBJECTS);
  if (kinds.vm)
    metrics.count(caches.get(VM), {
      phases: Object.keys(VM_PHASES),
      phaseOf: ({ status }) => status?.opStatus,
    });
  if (kinds.vmgroup)
    metrics.count(caches.get(VmGroup), {
      phases: Object.keys(VMGROUP_PHASES),
      phaseOf: ({ status }) => status?.phase,
    });
  if (kinds.kubevirt) {
    metrics.count(caches.get(VirtualMachine), {
      phases: Object.keys(VIRTUAL_MACHINE_PHASES),
      phaseOf: ({ status }) => status?.phase,
    });
    metrics.count(caches.get(VMDiskImage), {
      phases: Object.keys(IMAGE_PHASES),
      phaseOf: ({ status }) => status?.phase,
    });
  }
  if (kinds.gpuinfo)
    metrics.count(caches.get(GPUInfo), {
      phases: Object.keys(GPUINFO_PHASES),
      phaseOf: ({ status }) => status?.phase,
    });
}
