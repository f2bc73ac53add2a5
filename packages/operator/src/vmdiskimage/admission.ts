import { type AdmissionRules, allow, type Caches, deny, keyOf, type Verdict } from '@vmwright/runtime';
import { deletionPolicyOf, POLICY_CHANGED } from '../annotations.ts';
import { foregroundProblem } from '../kubevirt/deletion.ts';
import type { ImageAccessSettings } from '../virtualmachine/image-access.ts';
import { countReferences, hasSyncedUsers, indexUsers, listReferrers, usersOf } from './references.ts';
import type { VMDiskImage } from './resource.ts';
import { NAMED_REFERRERS } from './status.ts';

/**
 * Names of the users that kube-controller-manager authenticates as when it deletes the contents of a terminating
 * namespace. kube-controller-manager has the second name if it runs without `--use-service-account-credentials`.
 */
const NAMESPACE_CONTROLLERS: ReadonlySet<string> = new Set([
  'system:serviceaccount:kube-system:namespace-controller',
  'system:kube-controller-manager',
]);

/** State and settings from which the references to an image are counted. */
export interface ReferenceSources extends Pick<ImageAccessSettings, 'imageNamespaces'> {
  readonly caches: Caches;
}

/**
 * Returns the admission rules of VMDiskImages. They reject unknown deletion policies and the deletion of a referenced
 * image. Without these rules, the finalizer would still keep a referenced image. But the image would already have a
 * deletion timestamp, so it would be deleted as soon as its last reference is gone.
 * @param sources undefined if the controller is off, or if only the manifests of the rules are needed
 */
export function admitVmDiskImages(sources: ReferenceSources | undefined): AdmissionRules<VMDiskImage> {
  if (sources !== undefined) indexUsers(sources.caches);
  return {
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    matchConditions: [
      { name: 'deletion-policy-changed', expression: `request.operation != "UPDATE" || ${POLICY_CHANGED}` },
    ],
    validate: (image, request) => {
      if (request.operation === 'DELETE') {
        const problem = foregroundProblem(image, request.propagation);
        if (problem !== undefined) return deny(problem);
        // The namespace controller also deletes the data, so a rejection would only block the deletion of the
        // namespace.
        const isByNamespace = NAMESPACE_CONTROLLERS.has(request.user.username);
        if (isByNamespace) return allow();
        return sources === undefined
          ? withoutController(image, request.propagation)
          : validateDeletion(image, request.propagation, sources);
      }
      const policy = deletionPolicyOf(image);
      return typeof policy === 'object' ? deny(policy.problem) : allow();
    },
  };
}

/**
 * Decides whether to allow a deletion while the controller is off. The finalizer keeps the image and thus its data,
 * unless the deletion is Foreground: then the garbage collector deletes the data first.
 */
function withoutController({ metadata }: VMDiskImage, propagation: string | undefined): Verdict {
  return propagation === 'Foreground'
    ? deny(
        `The controller of VMDiskImages is off, so it is not known whether the VMDiskImage ${keyOf(metadata)} is in use. Enable the controller (vmwright status shows why it is off), or delete the image without --cascade=foreground`,
      )
    : allow();
}

function validateDeletion(
  image: VMDiskImage,
  propagation: string | undefined,
  sources: ReferenceSources,
): Verdict {
  // Another deletion of an image that is being deleted is allowed, because it changes nothing. Foreground is an
  // exception: the garbage collector would delete the data of the image, which may be in use.
  const isRepeated = image.metadata.deletionTimestamp !== undefined && propagation !== 'Foreground';
  if (isRepeated || image.status?.deletionStartedAt !== undefined) return allow();
  const name = keyOf(image.metadata);
  if (!hasSyncedUsers(sources.caches))
    return deny(
      `The references to the VMDiskImage ${name} are not known yet, because the operator is starting. Try again`,
      {
        code: 503,
      },
    );
  const references = countReferences(usersOf(image, sources.caches, sources));
  if (references.count === 0) return allow();
  const users = references.count === 1 ? 'this object' : 'these objects';
  return deny(
    `The VMDiskImage ${name} is used by ${listReferrers(references, NAMED_REFERRERS)}. Delete ${users} first; kubectl get vmdi -o yaml lists the references in status.referencedBy`,
  );
}
