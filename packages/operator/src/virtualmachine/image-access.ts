import type { KubevirtSettings } from '../settings/kubevirt.ts';
import type { VMDiskImage } from '../vmdiskimage/resource.ts';
import { imageRefOf } from './image-ref.ts';
import type { VirtualMachine } from './resource.ts';

/**
 * Annotation of a VMDiskImage with the other namespaces that may use it, separated by commas; `*` for all namespaces.
 */
const SHARED_WITH = 'vmwright.dev/shared-with';

/**
 * Rules for images that a VirtualMachine of another namespace refers to. `*` stands for all namespaces.
 * - `imageNamespaces`: namespaces with images that the VirtualMachine may use
 * - `imageCreationNamespaces`: namespaces in which the operator may create an image for the VirtualMachine
 */
export type ImageAccessSettings = Pick<KubevirtSettings, 'imageNamespaces' | 'imageCreationNamespaces'>;

/** Permissions of a VirtualMachine for the image that it refers to. */
export interface ImageAccess {
  readonly mayUse: boolean;
  /**
   * Whether the operator may create the image from the VirtualMachine's template. `mayUse` does not imply it, because
   * an import can use Secrets of the image's namespace.
   */
  readonly mayCreate: boolean;
}

/**
 * Returns the permissions of a VirtualMachine for its image.
 * - An image in its own namespace: all permissions, because the author of the VirtualMachine could create such an
 *   image.
 * - An image in another namespace: the permissions in the operator's settings. An annotation of the image can also
 *   allow its use. Only users with access to the image's namespace can set the annotation.
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

/**
 * Whether a VirtualMachine may use its image. If not, the VirtualMachine does not count as a reference to the image.
 */
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
