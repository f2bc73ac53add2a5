import type { ObjectCache } from '@vmwright/runtime';
import { machineUid } from '../kubevirt/clones.ts';
import type { DataVolume } from '../kubevirt/kinds.ts';
import { imageRefOf } from './image-ref.ts';
import type { VirtualMachine } from './resource.ts';

/** Index of VirtualMachines by the snapshot that their root disk is cloned from. */
export const SNAPSHOT_INDEX = 'virtualmachine-snapshot';
/** Index of DataVolumes that belong to no VirtualMachine, by the snapshot that they are cloned from. */
export const FOREIGN_CLONE_INDEX = 'virtualmachine-foreign-clone';

/** Returns the key of a VirtualMachine in the index of snapshots. */
export function snapshotKeys(vm: VirtualMachine): readonly string[] {
  const { snapshot } = vm.status ?? {};
  return snapshot === undefined ? [] : [`${imageRefOf(vm).namespace}/${snapshot}`];
}

/** Returns the key of a DataVolume in the index of foreign clones. */
export function foreignCloneKeys(volume: DataVolume): readonly string[] {
  const { snapshot } = volume.spec?.source ?? {};
  const isForeign = snapshot !== undefined && machineUid(volume) === '';
  return isForeign ? [`${snapshot.namespace}/${snapshot.name}`] : [];
}

/**
 * Counts the clones of snapshots, including clones that are planned and not stored yet. `count` is called for every
 * snapshot in every reconcile of a VirtualMachine, so it only reads the sizes of indexes. The status of the image has
 * another number, from `countClones`. `chooseSnapshot` uses the larger of the two numbers.
 *
 * Flow:
 * 1. A reconcile counts the clones, chooses a snapshot and reserves a clone of it, without interruption by other
 *    reconciles.
 * 2. It stores its choice in `status.snapshot`. The index shows the choice immediately.
 * 3. It ends the reservation.
 *
 * So two concurrent reconciles never both choose the last clone that `maxClones` allows. Reservations need not survive
 * a restart, because nothing is created before the choice is stored.
 */
export class SnapshotClones {
  readonly #machines: Pick<ObjectCache<VirtualMachine>, 'countByIndex'>;
  readonly #volumes: Pick<ObjectCache<DataVolume>, 'countByIndex'>;
  readonly #reserved = new Map<string, number>();

  constructor(
    machines: Pick<ObjectCache<VirtualMachine>, 'countByIndex'>,
    volumes: Pick<ObjectCache<DataVolume>, 'countByIndex'>,
  ) {
    this.#machines = machines;
    this.#volumes = volumes;
  }

  /** Returns the number of clones of a snapshot. @param key `namespace/name` of the snapshot */
  count(key: string): number {
    const stored = this.#machines.countByIndex(SNAPSHOT_INDEX, key);
    return stored + this.#volumes.countByIndex(FOREIGN_CLONE_INDEX, key) + (this.#reserved.get(key) ?? 0);
  }

  /**
   * Reserves a clone until the result is disposed of.
   * @param key `namespace/name` of the snapshot; if undefined, reserves nothing
   */
  reserve(key: string | undefined): Disposable {
    const change = (by: number) => {
      if (key === undefined) return;
      const count = (this.#reserved.get(key) ?? 0) + by;
      if (count > 0) this.#reserved.set(key, count);
      else this.#reserved.delete(key);
    };
    change(1);
    return { [Symbol.dispose]: () => change(-1) };
  }
}
