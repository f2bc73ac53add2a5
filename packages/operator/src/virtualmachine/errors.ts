import {
  ApiError,
  BadRequestError,
  ForbiddenError,
  InvalidError,
  keyOf,
  NotFoundError,
} from '@vmwright/runtime';
import type { RequiredAction } from './actions.ts';
import { imageRefOf } from './image-ref.ts';
import type { PlannedCondition, Problem } from './problem.ts';
import type { VirtualMachine } from './resource.ts';

/**
 * Thrown when an object with the name of a child belongs to another owner. The operator does not change such an object.
 */
export class NameConflictError extends Error {
  readonly code = 'NAME_CONFLICT';
  readonly retryable = false;

  constructor(kind: string, where: string) {
    super(
      `The ${kind} ${where} exists and was not created for this VirtualMachine. Delete that ${kind}, or create the VirtualMachine under another name`,
    );
    this.name = 'NameConflictError';
  }
}

/** A problem that an action caused. `part` is the condition that reports it in addition to Ready. */
export type ActionProblem = Problem & { readonly part?: 'DiskImageReady' | 'VolumeReady' };

/**
 * Returns what the status reports about an action that failed. Undefined if the controller only logs the error and
 * retries, for example after a lost connection. Messages about Secrets do not repeat the server's text, because it may
 * quote the data of the Secret.
 */
export function problemOf(
  vm: VirtualMachine,
  action: RequiredAction,
  error: unknown,
): ActionProblem | undefined {
  if (error instanceof NameConflictError)
    return { phase: 'Failed', reason: 'NameConflict', message: error.message };
  if (!(error instanceof ApiError) || !isRejection(error)) return undefined;
  const text = error.message;
  if (error instanceof ForbiddenError && text.includes('exceeded quota') && action.type !== 'applySecret')
    return {
      phase: 'Provisioning',
      reason: 'QuotaExceeded',
      message: `A quota of the namespace does not allow another object: ${text}`,
      ...partOf(action),
    };
  switch (action.type) {
    case 'createImage':
      return imageProblem(vm, error);
    case 'createVolume':
      return volumeProblem(vm, error);
    case 'applyMachine':
      return {
        phase: 'Failed',
        reason: 'MachineRejected',
        message: `The KubeVirt VirtualMachine ${keyOf(vm.metadata)} is rejected: ${text}`,
      };
    case 'applySecret':
      return {
        phase: 'Provisioning',
        reason: 'SecretRejected',
        message: `The API server rejects the Secret with the cloud-init data (HTTP ${error.status})`,
      };
    case 'deleteVolume':
    case 'restart':
      return undefined;
  }
}

/**
 * Returns the condition VolumeReady for a growth of the root disk that the API server rejected. It is True, because the
 * disk stays usable at its present size. Undefined if the controller only logs the error and retries.
 */
export function expansionRejection(error: unknown): PlannedCondition | undefined {
  const isGone = error instanceof NotFoundError; // the claim was deleted, so the growth was not rejected
  if (!(error instanceof ApiError) || isGone || !isRejection(error)) return undefined;
  const message = `The root disk cannot grow: ${error.message}`;
  return { status: 'True', reason: 'ExpansionRejected', message };
}

function imageProblem(vm: VirtualMachine, error: ApiError): ActionProblem {
  const ref = imageRefOf(vm);
  const part = 'DiskImageReady';
  if (error instanceof NotFoundError)
    return {
      phase: 'Provisioning',
      reason: 'ImageNamespaceNotFound',
      message: `The namespace ${ref.namespace} of the VMDiskImage ${keyOf(ref)} does not exist. Create it, or create the VirtualMachine again with another spec.vmDiskImageRef`,
      part,
    };
  const isInvalid = error instanceof InvalidError;
  return {
    phase: isInvalid ? 'Failed' : 'Provisioning',
    reason: 'ImageRejected',
    message: `The VMDiskImage ${keyOf(ref)} cannot be created: ${error.message}`,
    part,
  };
}

function volumeProblem(vm: VirtualMachine, error: ApiError): ActionProblem {
  const { namespace } = imageRefOf(vm);
  const part = 'VolumeReady';
  // If the operator lacks the permission to clone, CDI rejects a clone across namespaces with the text below and the
  // HTTP status 422. A 403 counts only if it mentions datavolumes/source, because other webhooks reject with 403, too.
  const isUnauthorized = error.message.includes('insufficient permissions in clone source namespace');
  const isForbidden = error instanceof ForbiddenError && error.message.includes('datavolumes/source');
  if (isForbidden || isUnauthorized)
    return {
      phase: 'Provisioning',
      reason: 'CloneForbidden',
      message: `The clone of the root disk is forbidden: the operator needs the permission to create datavolumes/source in the namespace ${namespace}. An administrator has to grant it (${error.message})`,
      part,
    };
  return {
    phase: 'Provisioning',
    reason: 'VolumeRejected',
    message: `The DataVolume of the root disk is rejected: ${error.message}`,
    part,
  };
}

/** Returns the condition that becomes False, besides Ready, when the action is rejected; empty if there is none. */
function partOf({ type }: RequiredAction): Pick<ActionProblem, 'part'> {
  if (type === 'createImage') return { part: 'DiskImageReady' };
  return type === 'createVolume' ? { part: 'VolumeReady' } : {};
}

/**
 * Whether the server understood the request and rejected it. A retry then succeeds only after a change of the cluster
 * or the spec.
 */
function isRejection(error: ApiError): boolean {
  return [ForbiddenError, InvalidError, BadRequestError, NotFoundError].some((each) => error instanceof each);
}
