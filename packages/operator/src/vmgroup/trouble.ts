import { AmbiguousError, ConnectionError, FaultError, NotFoundError, VsphereError } from '@vmwright/vsphere';

/** What stands between us and the wanted machines, as a status tells it: in words that are the same each time. */
export interface Trouble {
  readonly reason: string;
  readonly message: string;
  /** Nothing is known of the machines any more. */
  readonly isUnknown?: boolean;
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
 * @param what was tried, where that is to be told: "cloning from template 'x'"
 */
export function troubleOf(error: unknown, vcenter: string, what?: string): Trouble | undefined {
  if (error instanceof GroupError) return error.trouble;
  if (!(error instanceof VsphereError)) return undefined;
  if (error instanceof NotFoundError) return { reason: 'NotFound', message: error.message };
  if (error instanceof AmbiguousError) return { reason: 'Ambiguous', message: error.message };
  if (error instanceof FaultError) {
    const message = `${what ?? `vCenter '${vcenter}'`}: ${error.reason}`;
    if (error.code === 'INVALID_LOGIN')
      return {
        reason: 'VcenterUnauthorized',
        message: `vCenter '${vcenter}' refuses the user name or the password; mend its credentials`,
        isUnknown: true,
      };
    if (error.code === 'NO_PERMISSION') return { reason: 'NoPermission', message };
    return { reason: 'VcenterRefused', message };
  }
  if (error instanceof ConnectionError && error.untrusted)
    return {
      reason: 'VcenterUntrusted',
      message: `the certificate of vCenter '${vcenter}' is not trusted; give its authority (VC_CA) or its thumbprint (VC_THUMBPRINT), or pass --insecure to take whatever it shows`,
      isUnknown: true,
    };
  return unreachable(vcenter).trouble;
}

export function unreachable(vcenter: string): GroupError {
  return new GroupError({
    reason: 'VcenterUnreachable',
    message: `vCenter '${vcenter}' does not answer; it is asked again`,
    isUnknown: true,
  });
}
