import { keyOf } from '@vmwright/runtime';
import type { VMDiskImage } from '../vmdiskimage/resource.ts';
import type { Action } from './actions.ts';
import { imageFromTemplate, imageRefOf, templateDifferences } from './image-ref.ts';
import type { Observed } from './observe.ts';
import type { PlannedCondition, Problem } from './problem.ts';
import type { VirtualMachine } from './resource.ts';

/** Plan for the image of a VirtualMachine. */
export interface ImagePlan {
  /** The image, if a disk can be cloned from it. */
  readonly usable?: VMDiskImage;
  /** Condition DiskImageReady. */
  readonly condition: PlannedCondition;
  /** Why no disk can be cloned from the image. */
  readonly problem?: Problem;
  /** Message of the condition ImageDiffers. */
  readonly difference?: string;
  readonly actions: readonly Action[];
}

const NOTHING = { actions: [] } as const;

/**
 * Plans the image of a VirtualMachine: uses it, waits for it, or creates it from the template. If the namespace of the
 * image is not allowed, the image is neither created nor cloned.
 */
export function planImage(
  vm: VirtualMachine,
  { image, imageAccess: { mayUse, mayCreate } }: Pick<Observed, 'image' | 'imageAccess'>,
): ImagePlan {
  const { namespace } = imageRefOf(vm);
  const where = keyOf(imageRefOf(vm));
  if (!mayUse)
    return waiting({
      phase: 'Failed',
      reason: 'ImageNamespaceNotAllowed',
      message: `VirtualMachines of other namespaces are not allowed to use images of the namespace ${namespace}. Use an image in the namespace of the VirtualMachine, or ask an administrator of the operator to allow it (--image-namespaces), or the owner of the image to share it (annotation vmwright.dev/shared-with)`,
    });
  if (image === undefined) return planMissing(vm, where, mayCreate);
  const { phase, message = '' } = image.status ?? {};
  const fields = templateDifferences(vm, image);
  const difference =
    fields.length === 0
      ? {}
      : {
          difference: `The existing VMDiskImage ${where} differs from vmDiskImageTemplate in ${fields.join(', ')}; the template is ignored`,
        };
  if (phase === 'Ready') {
    const condition = {
      status: 'True',
      reason: 'Ready',
      message: `The VMDiskImage ${where} is Ready`,
    } as const;
    return { usable: image, condition, ...difference, ...NOTHING };
  }
  const blocked = (problem: Problem): ImagePlan => ({ ...waiting(problem), ...difference });
  if (phase === 'Failed')
    return blocked({
      phase: 'Failed',
      reason: 'ImageFailed',
      message: `The VMDiskImage ${where} has failed: ${message}`,
    });
  if (phase === 'Deleting') {
    const then =
      vm.spec.vmDiskImageTemplate === undefined || !mayCreate
        ? 'create it again when it is gone'
        : 'the operator creates it again when it is gone';
    return blocked({
      phase: 'Provisioning',
      reason: 'ImageNotReady',
      message: `The VMDiskImage ${where} is being deleted; ${then}`,
    });
  }
  // Only the message of a failure is copied. In other phases, the message of the image changes often. Each copy would
  // write every VirtualMachine that uses the image.
  const text =
    phase === 'RetryableFailure' ? `has failed and is retried: ${message}` : `is ${phase ?? 'new'}`;
  return blocked({
    phase: 'Provisioning',
    reason: 'ImageNotReady',
    message: `The VMDiskImage ${where} ${text}; waiting until it is Ready`,
  });
}

function planMissing(vm: VirtualMachine, where: string, mayCreate: boolean): ImagePlan {
  const image = imageFromTemplate(vm);
  if (image === undefined)
    return waiting({
      phase: 'Provisioning',
      reason: 'ImageNotFound',
      message: `The VMDiskImage ${where} does not exist. Create it, or set spec.vmDiskImageTemplate`,
    });
  if (!mayCreate)
    return waiting({
      phase: 'Provisioning',
      reason: 'ImageCreationNotAllowed',
      message: `The VMDiskImage ${where} does not exist, and VirtualMachines of other namespaces are not allowed to create images in its namespace. Create the image, or ask an administrator of the operator to allow its creation (--image-creation-namespaces)`,
    });
  const note = `Created VMDiskImage ${where} from vmDiskImageTemplate`;
  return {
    ...waiting({
      phase: 'Provisioning',
      reason: 'CreatingImage',
      message: `The VMDiskImage ${where} is being created from vmDiskImageTemplate`,
    }),
    actions: [{ type: 'createImage', image, event: { type: 'Normal', reason: 'ImageCreated', note } }],
  };
}

function waiting(problem: Problem): ImagePlan {
  const { reason, message } = problem;
  return { condition: { status: 'False', reason, message }, problem, ...NOTHING };
}
