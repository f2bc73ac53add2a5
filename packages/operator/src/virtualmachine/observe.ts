import { keyOf, type ReconcileContext, Secret } from '@vmwright/runtime';
import {
  CDI_CONFIG,
  CdiConfig,
  DataVolume,
  KubevirtInstance,
  KubevirtMachine,
  NetworkAttachmentDefinition,
  PersistentVolumeClaim,
  StorageClass,
} from '../kubevirt/kinds.ts';
import { filesystemOverhead } from '../kubevirt/overhead.ts';
import { ownedIn } from '../kubevirt/owner-index.ts';
import { isOwnedBy } from '../kubevirt/ownership.ts';
import { VMDiskImage } from '../vmdiskimage/resource.ts';
import { keepsAddress } from './address-holder.ts';
import { type AddressConflict, findAddressConflict, networkRef } from './addresses.ts';
import { usesVolume } from './children.ts';
import { firstVolumeName, isInstanceOf, isVolumeName, secretName } from './identity.ts';
import { type ImageAccess, type ImageAccessSettings, imageAccessOf } from './image-access.ts';
import { imageKeyOf, imageRefOf } from './image-ref.ts';
import type { Passwords } from './passwords.ts';
import { VirtualMachine } from './resource.ts';
import type { CloneCounts } from './snapshot-choice.ts';
import type { SnapshotClones } from './snapshot-clones.ts';

/** State of the cluster that concerns a VirtualMachine. */
export interface Observed {
  readonly imageAccess: ImageAccess;
  readonly addressConflict?: AddressConflict | undefined;
  readonly image?: VMDiskImage | undefined;
  /** Number of clones of each snapshot of the image. */
  readonly clones: CloneCounts;
  readonly passwords: Passwords;
  readonly secret?: Secret | undefined;
  /** DataVolumes that the VirtualMachine owns. */
  readonly volumes: readonly DataVolume[];
  /** DataVolume of another owner that has the name of the root disk. */
  readonly foreignVolume?: DataVolume | undefined;
  /** PersistentVolumeClaim of the root disk. */
  readonly claim?: PersistentVolumeClaim | undefined;
  /** Fraction of the claim that CDI reserves for the file system. */
  readonly filesystemOverhead: number;
  readonly machine?: KubevirtMachine | undefined;
  readonly instance?: KubevirtInstance | undefined;
  readonly storageClass?: ObservedStorageClass | undefined;
  /** Missing NetworkAttachmentDefinitions of the interfaces: `namespace/name`. */
  readonly missingNetworks: readonly string[];
  /** Whether the cluster has the kind NetworkAttachmentDefinition. */
  readonly isMultusInstalled: boolean;
}

/** StorageClass of the root disk. */
interface ObservedStorageClass {
  readonly name: string;
  readonly exists: boolean;
  readonly allowsExpansion: boolean;
}

/** State that was read from the API server before the caches are read. */
export interface Read {
  readonly passwords: Passwords;
  /** DataVolume of the root disk, if the cached one may be outdated (`readDoubtfulVolume`). */
  readonly volume?: DataVolume | undefined;
  /** Claim of the root disk if the cache lacks it. Read only if the plan depends on it (`readDoubtfulClaim`). */
  readonly claim?: PersistentVolumeClaim | undefined;
}

/** Inputs of `observe` besides the caches. */
export interface ObserveOptions extends ImageAccessSettings {
  readonly clones: Pick<SnapshotClones, 'count'>;
}

type Context = Pick<ReconcileContext<VirtualMachine>, 'cache'>;

/**
 * Reads the state from the caches. It is not async, so the caches do not change before the caller has made the plan.
 * @param read state that was read from the API server
 */
export function observe(
  vm: VirtualMachine,
  { passwords, volume: read, claim: readClaim }: Read,
  { cache }: Context,
  { clones, ...settings }: ObserveOptions,
): Observed {
  const { namespace = '', name } = vm.metadata;
  const key = keyOf({ namespace, name });
  const image = cache(VMDiskImage).get(imageKeyOf(vm));
  const machine = owned(cache(KubevirtMachine).get(key), vm);
  const instance = cache(KubevirtInstance).get(key);
  const cached = ownedIn(cache(DataVolume), vm);
  const isRead = ({ metadata }: DataVolume) => metadata.name === read?.metadata.name;
  const volumes = [
    ...cached.filter((volume) => !isRead(volume)),
    ...(read !== undefined && isOwnedBy(read, vm) ? [read] : []),
  ];
  const volumeKey = keyOf({ namespace, name: currentVolumeName(vm, volumes, machine) });
  const volume = read ?? cache(DataVolume).get(volumeKey);
  const claim = cache(PersistentVolumeClaim).get(volumeKey) ?? readClaim;
  const className = claim?.spec?.storageClassName ?? image?.spec.storageClass;
  const storageClass = className === undefined ? undefined : cache(StorageClass).get({ name: className });
  const networks = (vm.spec.interfaces ?? []).map(({ network }) => networkRef(vm, network));
  const countOf = (snapshot: string) => clones.count(`${imageRefOf(vm).namespace}/${snapshot}`);
  return {
    imageAccess: imageAccessOf(vm, image, settings),
    addressConflict: findAddressConflict(vm, cache(VirtualMachine), (other, address) =>
      keepsAddress(other, vm, address),
    ),
    image,
    clones: new Map(image?.status?.snapshots?.map((snapshot) => [snapshot.name, countOf(snapshot.name)])),
    passwords,
    secret: owned(cache(Secret).get({ namespace, name: secretName(vm) }), vm),
    volumes,
    foreignVolume: volume !== undefined && !isOwnedBy(volume, vm) ? volume : undefined,
    claim,
    filesystemOverhead:
      claim === undefined ? 0 : filesystemOverhead(claim, cache(CdiConfig).get({ name: CDI_CONFIG })),
    machine,
    instance: instance !== undefined && isInstanceOf(instance, vm) ? instance : undefined,
    storageClass:
      className === undefined
        ? undefined
        : {
            name: className,
            exists: storageClass !== undefined,
            allowsExpansion: storageClass?.allowVolumeExpansion === true,
          },
    isMultusInstalled: cache(NetworkAttachmentDefinition).isServed,
    missingNetworks: [
      ...new Set(
        networks.filter((ref) => cache(NetworkAttachmentDefinition).get(ref) === undefined).map(keyOf),
      ),
    ],
  };
}

/**
 * Returns the name of the root disk's DataVolume. If the status has no valid name, returns the name of an existing
 * disk, so that the machine keeps its data. The name may have never been stored, or a user may have removed or changed
 * it.
 */
export function currentVolumeName(
  vm: VirtualMachine,
  volumes: readonly DataVolume[],
  machine: KubevirtMachine | undefined,
): string {
  const { dataVolume } = vm.status ?? {};
  if (dataVolume !== undefined && isVolumeName(vm, dataVolume)) return dataVolume;
  const disks = volumes.filter(({ metadata }) => isVolumeName(vm, metadata.name));
  const disk =
    disks.find(({ metadata }) => usesVolume(machine, metadata.name)) ??
    disks.find(({ status }) => status?.phase === 'Succeeded') ??
    disks.at(-1);
  return disk?.metadata.name ?? firstVolumeName(vm);
}

/**
 * Returns the child if the VirtualMachine owns it. A child of another owner counts as missing; `checkName` reports it.
 */
function owned<T extends KubevirtMachine | Secret>(child: T | undefined, vm: VirtualMachine): T | undefined {
  return child !== undefined && isOwnedBy(child, vm) ? child : undefined;
}
