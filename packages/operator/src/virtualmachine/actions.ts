import type { Draft, Secret } from '@vmwright/runtime';
import type { DataVolume, KubevirtMachine } from '../kubevirt/kinds.ts';
import type { VMDiskImage } from '../vmdiskimage/resource.ts';

/** A change of the cluster that a plan asks for. */
export type Action =
  | { readonly type: 'createImage'; readonly image: Draft<VMDiskImage> }
  /** `isNew`: the caches show no such object; one of another owner must not be changed. */
  | { readonly type: 'applySecret'; readonly secret: Draft<Secret>; readonly isNew: boolean }
  | { readonly type: 'applyMachine'; readonly machine: Draft<KubevirtMachine>; readonly isNew: boolean }
  | { readonly type: 'createVolume'; readonly volume: Draft<DataVolume> }
  /** Deletes this version only: a clone that has succeeded since is kept. */
  | {
      readonly type: 'deleteVolume';
      readonly name: string;
      readonly uid: string | undefined;
      readonly resourceVersion: string | undefined;
    }
  | {
      readonly type: 'resizeClaim';
      readonly name: string;
      readonly uid: string | undefined;
      readonly size: string;
    }
  /** Deletes the instance; KubeVirt starts another one. */
  | { readonly type: 'restart'; readonly uid: string | undefined };
