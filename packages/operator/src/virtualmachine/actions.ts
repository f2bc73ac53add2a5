import type { Draft, EventInput, Secret } from '@vmwright/runtime';
import type { DataVolume, KubevirtMachine } from '../kubevirt/kinds.ts';
import type { VMDiskImage } from '../vmdiskimage/resource.ts';

/** A change of the cluster that a plan asks for. `reason`: why, for the audit line. */
export type Action =
  /** `event` is recorded only if this action created the image, and not another VirtualMachine at the same time. */
  | { readonly type: 'createImage'; readonly image: Draft<VMDiskImage>; readonly event: EventInput }
  /** `isNew`: the caches show no such object; one of another owner must not be changed. */
  | { readonly type: 'applySecret'; readonly secret: Draft<Secret>; readonly isNew: boolean }
  | {
      readonly type: 'applyMachine';
      readonly machine: Draft<KubevirtMachine>;
      readonly isNew: boolean;
      readonly reason: string;
    }
  | { readonly type: 'createVolume'; readonly volume: Draft<DataVolume> }
  | {
      readonly type: 'deleteVolume';
      readonly name: string;
      readonly uid: string | undefined;
      /** Precondition: another version may have succeeded. */
      readonly resourceVersion: string | undefined;
      readonly reason: string;
    }
  | {
      readonly type: 'resizeClaim';
      readonly name: string;
      readonly uid: string | undefined;
      readonly size: string;
    }
  /** Deletes the instance; KubeVirt starts another one. */
  | { readonly type: 'restart'; readonly uid: string | undefined; readonly reason: string };
