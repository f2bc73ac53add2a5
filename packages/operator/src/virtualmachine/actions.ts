import type { Draft, EventInput, Secret } from '@vmwright/runtime';
import type { DataVolume, KubevirtMachine } from '../kubevirt/kinds.ts';
import type { VMDiskImage } from '../vmdiskimage/resource.ts';

/** A change of the cluster that a plan asks for. `reason` says why, for the audit line. */
export type Action =
  /**
   * `event` is recorded only if this action creates the image. Another VirtualMachine may create it at the same time.
   */
  | { readonly type: 'createImage'; readonly image: Draft<VMDiskImage>; readonly event: EventInput }
  /**
   * `isNew` is true if the caches lack the object. `checkName` then ensures that no object of another owner has the
   * name.
   */
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
      /** Precondition of the deletion: if the clone has succeeded since this version, the DataVolume is not deleted. */
      readonly resourceVersion: string | undefined;
      readonly reason: string;
    }
  /**
   * Enlarges the claim of the root disk. The disk is usable at its old size, so a rejection does not stop other
   * actions.
   */
  | {
      readonly type: 'resizeClaim';
      readonly name: string;
      readonly uid: string | undefined;
      readonly size: string;
    }
  /** Deletes the instance; KubeVirt starts another one. */
  | { readonly type: 'restart'; readonly uid: string | undefined; readonly reason: string };

/** An action that ends the reconcile if the API server rejects it: the actions after it are not executed. */
export type RequiredAction = Exclude<Action, { readonly type: 'resizeClaim' }>;
