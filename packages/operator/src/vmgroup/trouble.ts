import {
  AmbiguousError,
  ConnectionError,
  FaultError,
  InvalidRequestError,
  NotFoundError,
  OptionsError,
  VsphereError,
} from '@vmwright/vsphere';
import { SettingsError } from '../settings/values.ts';

/**
 * Why a group is not as wanted, as its status reports it: the same text on every retry. Stalled until a person changes
 * something, unless it may pass by itself.
 */
export interface Trouble {
  readonly reason: string;
  readonly message: string;
  /** Nothing is known of the machines any more. */
  readonly isUnknown?: boolean;
  /** It is no failure: something else is under way, and has to end first. */
  readonly isPassing?: boolean;
  /** A retry may succeed without anybody's help. */
  readonly mayPass?: boolean;
}

/** A sentence for the status that is nobody's fault but the group's, or its surroundings'. */
export class GroupError extends Error {
  readonly code = 'VMGROUP';
  readonly trouble: Trouble;

  constructor(trouble: Trouble) {
    super(trouble.message);
    this.name = 'GroupError';
    this.trouble = trouble;
  }
}

/**
 * Undefined for what is not vCenter's: that is ours to mend, and in the log.
 * @param vcenter its name
 * @param what was tried, where that is to be told: "making machines from template 'x'"
 */
export function troubleOf(error: unknown, vcenter: string, what?: string): Trouble | undefined {
  if (error instanceof GroupError) return error.trouble;
  if (error instanceof SettingsError)
    return { reason: 'VcenterUnauthorized', message: error.message, isUnknown: true };
  if (!(error instanceof VsphereError)) return undefined;
  if (error instanceof NotFoundError) return { reason: 'NotFound', message: error.message };
  if (error instanceof AmbiguousError) return { reason: 'Ambiguous', message: error.message };
  if (error instanceof FaultError) return refusal(error, vcenter, what ?? `vCenter '${vcenter}'`);
  if (error instanceof ConnectionError && error.untrusted)
    return {
      reason: 'VcenterUntrusted',
      message: `the certificate of vCenter '${vcenter}' is not trusted; give its authority (VC_CA) or its thumbprint (VC_THUMBPRINT), or pass --insecure to take whatever it shows`,
      isUnknown: true,
    };
  if (error instanceof OptionsError || error instanceof InvalidRequestError)
    return {
      reason: 'VcenterRefused',
      message: `${what ?? `vCenter '${vcenter}'`}: ${error.message}`,
      mayPass: true,
    };
  return unreachable(vcenter).trouble;
}

function refusal(error: FaultError, vcenter: string, what: string): Trouble {
  const message = `${what}: ${error.reason}`;
  if (error.retryable) return { reason: 'VcenterBusy', message, isPassing: true };
  if (error.code === 'NO_PERMISSION') return { reason: 'NoPermission', message };
  if (error.code !== 'INVALID_LOGIN') return { reason: 'VcenterRefused', message, mayPass: true };
  return {
    reason: 'VcenterUnauthorized',
    message: `vCenter '${vcenter}' refuses the user name or the password; mend its credentials`,
    isUnknown: true,
  };
}

export function unreachable(vcenter: string): GroupError {
  return new GroupError({
    reason: 'VcenterUnreachable',
    message: `vCenter '${vcenter}' does not answer; it is asked again`,
    isUnknown: true,
    mayPass: true,
  });
}
