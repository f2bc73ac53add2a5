import { type Client, ignoreNotFound, type Kind, type KubeObject } from '@vmwright/runtime';
import {
  DataVolume,
  KubevirtInstance,
  KubevirtMachine,
  PersistentVolumeClaim,
  VolumeSnapshot,
} from '../kubevirt/kinds.ts';
import { imageRefOf } from '../virtualmachine/image-ref.ts';
import { VirtualMachine } from '../virtualmachine/resource.ts';
import { VMDiskImage } from '../vmdiskimage/resource.ts';
import { listAll } from './cluster.ts';

/** An object and its descendants. */
export interface Family {
  readonly kind: string;
  readonly object: KubeObject;
  readonly children: readonly Family[];
  /** Whether the parent only refers to the object and does not own it. */
  readonly isReferenced?: boolean;
}

/**
 * Kinds of the objects that vmwright or KubeVirt creates for a VirtualMachine or a VMDiskImage. Secrets are never read.
 */
const CHILD_KINDS: readonly Kind[] = [
  ...[KubevirtMachine, KubevirtInstance, DataVolume, PersistentVolumeClaim, VolumeSnapshot],
];

/** Kinds of the objects that have children in the cluster. The machines of all other kinds are outside the cluster. */
const PARENTS: readonly Kind[] = [VirtualMachine, VMDiskImage];

/** Reads an object's children, by their owner references, and the image that a VirtualMachine refers to. */
export async function readFamily(client: Client, kind: Kind, object: KubeObject): Promise<Family> {
  if (!PARENTS.includes(kind)) return { kind: kind.kind, object, children: [] };
  const { namespace } = object.metadata;
  const listed = await Promise.all(
    CHILD_KINDS.map(async (each) => {
      const { items } = await listAll(client, each, namespace);
      return items.map((item) => ({ kind: each.kind, object: item }));
    }),
  );
  const images: Family[] = [];
  for (const image of kind === VirtualMachine ? await readImages(client, object) : [])
    images.push({ ...(await readFamily(client, VMDiskImage, image.object)), isReferenced: true });
  return { kind: kind.kind, object, children: [...images, ...childrenOf(object, listed.flat())] };
}

/** Returns the candidates that the given object owns, each with its own children. */
export function childrenOf(
  { metadata: { uid } }: KubeObject,
  candidates: readonly Pick<Family, 'kind' | 'object'>[],
): readonly Family[] {
  const isChild = ({ object: { metadata } }: Pick<Family, 'object'>) =>
    uid !== undefined && (metadata.ownerReferences ?? []).some((owner) => owner.uid === uid);
  return candidates
    .filter(isChild)
    .map(({ kind, object }) => ({ kind, object, children: childrenOf(object, candidates) }));
}

/** Reads the image that a VirtualMachine refers to. Returns an empty list if the image does not exist. */
export async function readImages(
  client: Client,
  { metadata }: KubeObject,
): Promise<readonly { readonly kind: string; readonly object: VMDiskImage }[]> {
  const machine = await client.get(VirtualMachine, metadata);
  const image = await ignoreNotFound(client.get(VMDiskImage, imageRefOf(machine)));
  return image === undefined ? [] : [{ kind: VMDiskImage.kind, object: image }];
}
