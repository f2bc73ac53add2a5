import { BackendUnavailableError } from '@vmwright/runtime';
import {
  AmbiguousError,
  ConnectionError,
  FaultError,
  InvalidRequestError,
  isOutage,
  NotFoundError,
  OptionsError,
  UnavailableError,
  VcenterChangedError,
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
  /** Not a failure: another operation must finish first. */
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

/** A vCenter cannot be used. The runtime logs it at debug: the outage itself is logged once for all groups. */
export class VcenterOutageError extends BackendUnavailableError {
  readonly trouble: Trouble;

  constructor(vcenter: string, trouble: Trouble, cause: unknown) {
    super(`vcenter ${vcenter}`, trouble.message, { cause });
    this.name = 'VcenterOutageError';
    this.trouble = trouble;
  }
}

/**
 * The condition that an error of vCenter leads to; undefined for an error of another origin, which is in the log.
 * @param vcenter its name
 * @param what was tried, where the message shall say so: "making machines from template 'x'"
 */
export function troubleOf(error: unknown, vcenter: string, what?: string): Trouble | undefined {
  if (error instanceof GroupError || error instanceof VcenterOutageError) return error.trouble;
  if (error instanceof SettingsError || isOutage(error)) return outageOf(vcenter, error).trouble;
  if (!(error instanceof VsphereError)) return undefined;
  if (error instanceof NotFoundError) return { reason: 'NotFound', message: error.message };
  if (error instanceof AmbiguousError) return { reason: 'Ambiguous', message: error.message };
  if (error instanceof FaultError) return refusal(error, what ?? `vCenter '${vcenter}'`);
  if (error instanceof OptionsError || error instanceof InvalidRequestError)
    return {
      reason: 'VcenterRefused',
      message: `${what ?? `vCenter '${vcenter}'`}: ${error.message}`,
      mayPass: true,
    };
  return outageOf(vcenter, error).trouble;
}

function refusal(error: FaultError, what: string): Trouble {
  const message = `${what}: ${error.reason}`;
  if (error.retryable) return { reason: 'VcenterBusy', message, isPassing: true };
  if (error.code === 'NO_PERMISSION') return { reason: 'NoPermission', message };
  return { reason: 'VcenterRefused', message, mayPass: true };
}

/** Each cause has a reason of its own, and a sentence that is the same at every retry. */
export function outageOf(vcenter: string, error: unknown): VcenterOutageError {
  return new VcenterOutageError(vcenter, { ...causeOf(vcenter, error), isUnknown: true }, error);
}

function causeOf(vcenter: string, error: unknown): Trouble {
  if (error instanceof SettingsError) return { reason: 'VcenterUnauthorized', message: error.message };
  if (error instanceof FaultError && error.code === 'INVALID_LOGIN')
    return {
      reason: 'VcenterUnauthorized',
      message: `vCenter '${vcenter}' rejects the user name or the password; correct its credentials`,
    };
  if (error instanceof VcenterChangedError)
    return {
      reason: 'VcenterChanged',
      message: `the address of vCenter '${vcenter}' leads to another vCenter (${error.actual}) than before (${error.expected}), so nothing is changed there; correct its address, or restart the operator where vCenter was replaced on purpose`,
    };
  if (error instanceof ConnectionError && error.untrusted)
    return {
      reason: 'VcenterUntrusted',
      message: `the certificate of vCenter '${vcenter}' is not trusted; give its authority (VC_CA) or its thumbprint (VC_THUMBPRINT), or pass --insecure to take whatever it shows`,
    };
  const reason = 'VcenterUnreachable';
  if (error instanceof UnavailableError)
    return {
      reason,
      message: `vCenter '${vcenter}' answers HTTP ${error.status}${STATUS_TEXTS[error.status] ?? ''}; the operator keeps trying`,
      mayPass: true,
    };
  return {
    reason,
    message: `vCenter '${vcenter}' does not answer; the operator keeps trying`,
    mayPass: true,
  };
}

/** Statuses that a proxy or a starting vCenter answers. */
const STATUS_TEXTS: Readonly<Record<number, string>> = {
  500: ' (internal server error)',
  502: ' (bad gateway)',
  503: ' (service unavailable)',
  504: ' (gateway timeout)',
};
