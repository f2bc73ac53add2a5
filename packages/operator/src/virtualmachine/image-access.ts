import type { KubevirtSettings } from '../settings/kubevirt.ts';
import type { VMDiskImage } from '../vmdiskimage/resource.ts';
import { imageRefOf } from './image-ref.ts';
import type { VirtualMachine } from './resource.ts';

/** Annotation of a VMDiskImage: the other namespaces whose VirtualMachines may use it, separated by commas, or `*` for all. */
const SHARED_WITH = 'vmwright.dev/shared-with';

/** Namespaces whose images other namespaces may use and create. `*` stands for all. */
export type ImageAccessSettings = Pick<KubevirtSettings, 'imageNamespaces' | 'imageCreationNamespaces'>;

/** What a VirtualMachine may do with the image that it refers to. */
export interface ImageAccess {
  readonly mayUse: boolean;
  /** Whether the operator creates the image from the VirtualMachine's template. Its import can use Secrets of its namespace. */
  readonly mayCreate: boolean;
}

/**
 * Returns what a VirtualMachine may do with its image. In its own namespace it may do everything, because its author could also
 * create the image. In other namespaces the operator's settings decide; an image can also be shared by its annotation, which only
 * users with access to its namespace can set.
 */
export function imageAccessOf(
  vm: VirtualMachine,
  image: Pick<VMDiskImage, 'metadata'> | undefined,
  settings: ImageAccessSettings,
): ImageAccess {
  const { namespace } = imageRefOf(vm);
  const isOwn = namespace === vm.metadata.namespace;
  return {
    mayUse: mayUseImage(vm, image, settings),
    mayCreate: isOwn || includes(settings.imageCreationNamespaces, namespace),
  };
}

/** Whether a VirtualMachine may use the image that it refers to. Only then is it a reference of the image. */
export function mayUseImage(
  vm: VirtualMachine,
  image: Pick<VMDiskImage, 'metadata'> | undefined,
  { imageNamespaces }: Pick<ImageAccessSettings, 'imageNamespaces'>,
): boolean {
  const { namespace = '' } = vm.metadata;
  const { namespace: ofImage } = imageRefOf(vm);
  if (ofImage === namespace || includes(imageNamespaces, ofImage)) return true;
  const sharedWith = image?.metadata.annotations?.[SHARED_WITH]?.split(',') ?? [];
  return includes(
    sharedWith.map((name) => name.trim()),
    namespace,
  );
}

function includes(namespaces: readonly string[], namespace: string): boolean {
  return namespaces.includes('*') || namespaces.includes(namespace);
}
