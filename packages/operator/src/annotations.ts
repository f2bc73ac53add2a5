import type { KubeObject } from '@vmwright/runtime';

/* What users say about an object of any kind, beside its spec. */

const PAUSED = 'vmwright.dev/paused';
const DELETION_POLICY = 'vmwright.dev/deletion-policy';

/** `"true"`: what was lost outside is made anew. */
export const RECREATE = 'vmwright.dev/recreate';

/** Whether it is to be left as it is, for the time being. */
export function isPaused({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[PAUSED] === 'true';
}

/** Why an object is paused and how to resume it, for its condition Paused; undefined where it is not paused. */
export function pauseOf(
  object: KubeObject,
): { readonly reason: string; readonly message: string } | undefined {
  if (!isPaused(object)) return undefined;
  const isDeleting = object.metadata.deletionTimestamp !== undefined;
  const resume = isDeleting ? 'continue the deletion' : 'resume';
  const message = `The operator observes the object and changes nothing; remove the annotation ${PAUSED} to ${resume}`;
  return { reason: 'Annotation', message };
}

export function mayRecreate({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[RECREATE] === 'true';
}

const REPLACE = 'vmwright.dev/replace';

/** Which machines a person wants replaced: names or slots, separated by commas. Each text is a request of its own. */
export function replaceRequestOf({ metadata }: KubeObject): string | undefined {
  const request = metadata.annotations?.[REPLACE]?.trim();
  return request === '' ? undefined : request;
}

/** Whether external resources are deleted with the object, or kept and no longer managed. */
export type DeletionPolicy = 'Delete' | 'Orphan';

/** @returns a problem for the status if the value is unknown; nothing is deleted then */
export function deletionPolicyOf({ metadata }: KubeObject): DeletionPolicy | { readonly problem: string } {
  const policy = metadata.annotations?.[DELETION_POLICY] ?? 'Delete';
  if (policy === 'Delete' || policy === 'Orphan') return policy;
  return { problem: `the annotation ${DELETION_POLICY} is "${policy}"; it is Delete or Orphan` };
}

/** Whether the deletion of an object deletes its machines. False while it is paused. */
export function deletesMachines(object: KubeObject): boolean {
  return deletionPolicyOf(object) === 'Delete' && !isPaused(object);
}
