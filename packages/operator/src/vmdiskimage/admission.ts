import { type AdmissionRules, allow, type Caches, deny, keyOf, type Verdict } from '@vmwright/runtime';
import { deletionPolicyOf, POLICY_CHANGED } from '../annotations.ts';
import { foregroundProblem } from '../kubevirt/deletion.ts';
import type { ImageAccessSettings } from '../virtualmachine/image-access.ts';
import { countReferences, hasSyncedUsers, indexUsers, listReferrers, usersOf } from './references.ts';
import type { VMDiskImage } from './resource.ts';
import { NAMED_REFERRERS } from './status.ts';

/** Users that delete the contents of a namespace that is being deleted; the second one without credentials per controller. */
const NAMESPACE_CONTROLLERS: ReadonlySet<string> = new Set([
  'system:serviceaccount:kube-system:namespace-controller',
  'system:kube-controller-manager',
]);

/** State and settings from which the references of an image are counted. */
export interface ReferenceSources extends Pick<ImageAccessSettings, 'imageNamespaces'> {
  readonly caches: Caches;
}

/**
 * Returns the admission rules of VMDiskImages, which reject the deletion of a referenced image and unknown deletion policies.
 * The finalizer holds a referenced image in any case, but its deletion cannot be undone: the rejection comes before that.
 * @param sources undefined for manifests, which only declare the rules
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
        // The namespace controller also deletes the data, so the image would only keep the namespace from being deleted.
        const isByNamespace = NAMESPACE_CONTROLLERS.has(request.user.username);
        return sources === undefined || isByNamespace ? allow() : validateDeletion(image, sources);
      }
      const policy = deletionPolicyOf(image);
      return typeof policy === 'object' ? deny(policy.problem) : allow();
    },
  };
}

function validateDeletion(image: VMDiskImage, sources: ReferenceSources): Verdict {
  if (image.metadata.deletionTimestamp !== undefined) return allow(); // it is being deleted already
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
