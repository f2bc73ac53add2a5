import type { KubeObject } from '@vmwright/runtime';

/* Annotations that users set on objects of every kind. */

const PAUSED = 'vmwright.dev/paused';
const DELETION_POLICY = 'vmwright.dev/deletion-policy';

/** Annotation with which the user allows the operator to replace a lost or failed machine: its value is `"true"`. */
export const RECREATE = 'vmwright.dev/recreate';

/** Whether the object is paused: the operator observes it and changes nothing. */
export function isPaused({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[PAUSED] === 'true';
}

/** Returns reason and message of the condition Paused; undefined if the object is not paused. */
export function pauseOf(
  object: KubeObject,
): { readonly reason: string; readonly message: string } | undefined {
  if (!isPaused(object)) return undefined;
  const isDeleting = object.metadata.deletionTimestamp !== undefined;
  const resume = isDeleting ? 'continue the deletion' : 'resume';
  const message = `The operator observes the object and changes nothing; remove the annotation ${PAUSED} to ${resume}`;
  return { reason: 'Annotation', message };
}

/** Whether the user allows the operator to replace a lost or failed machine of the object. */
export function mayRecreate({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[RECREATE] === 'true';
}

const REPLACE = 'vmwright.dev/replace';

/**
 * Returns the value of the annotation vmwright.dev/replace: names or slot numbers (`status.replicas`) of the
 * machines to replace, separated by commas. Each new value is a new request.
 */
export function replaceRequestOf({ metadata }: KubeObject): string | undefined {
  const request = metadata.annotations?.[REPLACE]?.trim();
  return request === '' ? undefined : request;
}

/** Annotation that requests another attempt after a failure that stops retries. Each new value is a new request. */
export const RETRY = 'vmwright.dev/retry';

/** Returns the value of the annotation vmwright.dev/retry. Each new value asks the operator once to try again. */
export function retryRequestOf({ metadata }: KubeObject): string | undefined {
  return metadata.annotations?.[RETRY];
}

/**
 * How the deletion of an object affects its external resources.
 * - `Delete`: the resources are deleted with the object
 * - `Orphan`: the resources are kept, and the operator no longer manages them
 */
export type DeletionPolicy = 'Delete' | 'Orphan';

/** Returns the deletion policy. For an unknown value, returns the problem to report; the caller must delete nothing. */
export function deletionPolicyOf({ metadata }: KubeObject): DeletionPolicy | { readonly problem: string } {
  const policy = metadata.annotations?.[DELETION_POLICY] ?? 'Delete';
  if (policy === 'Delete' || policy === 'Orphan') return policy;
  return { problem: `the annotation ${DELETION_POLICY} is "${policy}"; it must be Delete or Orphan` };
}

/**
 * CEL expression for `matchConditions`: whether a request changes the deletion policy. Other updates, such as the
 * removal of a finalizer, must not match, so that they succeed even while the webhook is not available.
 */
export const POLICY_CHANGED = `${policyIn('object')} != ${policyIn('oldObject')}`;

/**
 * CEL expression for `matchConditions`: whether a request deletes an object with `vmwright.dev/deletion-policy: Orphan`
 * by `--cascade=foreground` (dependents first). Other deletions must not match, so that they succeed even while the
 * webhook is not available.
 */
export const ORPHAN_IN_FOREGROUND = `${policyIn('oldObject')}.orValue("") == "Orphan" && request.options.?propagationPolicy.orValue("") == "Foreground"`;

function policyIn(object: string): string {
  return `${object}.metadata.?annotations[?"${DELETION_POLICY}"]`;
}

/** Whether the deletion of an object deletes its machines. False while the object is paused. */
export function deletesMachines(object: KubeObject): boolean {
  return deletionPolicyOf(object) === 'Delete' && !isPaused(object);
}
