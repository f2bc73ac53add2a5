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
import type { VmGroupReason } from '../vmgroup/conditions.ts';

/**
 * Why an object does not match its spec, as its conditions report it. The message is the same on every retry. If
 * neither `isProgressing` nor `retryable` is set, the object is stalled until a person changes something.
 */
export interface ConditionError {
  readonly reason: VmGroupReason;
  readonly message: string;
  /** Whether the state of the machines is unknown. */
  readonly isUnknown?: boolean;
  /** Whether something else must finish first, such as another operation in vCenter. This is not a failure. */
  readonly isProgressing?: boolean;
  /** Whether a retry may succeed without a change by a person. */
  readonly retryable?: boolean;
}

/** Error that the status of an object reports as a condition. */
export class ReportedError extends Error {
  readonly code = 'REPORTED';
  readonly condition: ConditionError;

  constructor(condition: ConditionError) {
    super(condition.message);
    this.name = 'ReportedError';
    this.condition = condition;
  }
}

/**
 * Thrown when a vCenter cannot be used. The runtime logs it at debug, because `VcenterHealth` logs each outage once.
 */
export class VcenterOutageError extends BackendUnavailableError {
  readonly condition: ConditionError;

  constructor(vcenter: string, condition: ConditionError, cause: unknown) {
    super(`vcenter ${vcenter}`, condition.message, { cause });
    this.name = 'VcenterOutageError';
    this.condition = condition;
  }
}

/** Thrown when the CA with which the certificate of a vCenter is verified cannot be read. */
export class TrustError extends SettingsError {}

/**
 * Returns what the status reports for an error of a vCenter or its settings. Undefined for any other error; the
 * controller logs it instead.
 * @param vcenter name of the vCenter
 * @param attempt what failed, for the message: "cloning machines from template 'x'"
 */
export function toCondition(error: unknown, vcenter: string, attempt?: string): ConditionError | undefined {
  const subject = attempt ?? `vCenter '${vcenter}'`;
  if (error instanceof ReportedError || error instanceof VcenterOutageError) return error.condition;
  if (error instanceof SettingsError || isOutage(error)) return outageOf(vcenter, error).condition;
  if (!(error instanceof VsphereError)) return undefined;
  if (error instanceof NotFoundError) return { reason: 'NotFound', message: error.message };
  if (error instanceof AmbiguousError) return { reason: 'Ambiguous', message: error.message };
  if (error instanceof FaultError) return faultCondition(error, subject);
  if (error instanceof OptionsError || error instanceof InvalidRequestError)
    return { reason: 'VcenterRefused', message: `${subject}: ${error.message}`, retryable: true };
  return outageOf(vcenter, error).condition;
}

function faultCondition(error: FaultError, subject: string): ConditionError {
  const message = `${subject}: ${error.reason}`;
  if (error.retryable) return { reason: 'VcenterBusy', message, isProgressing: true };
  if (error.code === 'NO_PERMISSION') return { reason: 'NoPermission', message };
  return { reason: 'VcenterRefused', message, retryable: true };
}

/** Converts an error to an outage of the vCenter. The error determines the reason and the message of the condition. */
export function outageOf(vcenter: string, error: unknown): VcenterOutageError {
  return new VcenterOutageError(vcenter, { ...outageCondition(vcenter, error), isUnknown: true }, error);
}

function outageCondition(vcenter: string, error: unknown): ConditionError {
  if (error instanceof TrustError) return { reason: 'VcenterUntrusted', message: error.message };
  if (error instanceof SettingsError) return { reason: 'VcenterUnauthorized', message: error.message };
  if (error instanceof FaultError && error.code === 'INVALID_LOGIN')
    return {
      reason: 'VcenterUnauthorized',
      message: `vCenter '${vcenter}' rejects the user name or the password; correct its credentials`,
    };
  if (error instanceof VcenterChangedError)
    return {
      reason: 'VcenterChanged',
      message: `the address of vCenter '${vcenter}' leads to another vCenter (${error.actual}) than at the first login (${error.expected}), so nothing is changed there; correct its address, or restart the operator if the vCenter was replaced on purpose`,
    };
  if (error instanceof ConnectionError && error.untrusted)
    return {
      reason: 'VcenterUntrusted',
      message: `the certificate of vCenter '${vcenter}' is not trusted; set its CA (VC_CA) or its thumbprint (VC_THUMBPRINT), or pass --insecure to skip the verification`,
    };
  const reason = 'VcenterUnreachable';
  if (error instanceof UnavailableError)
    return {
      reason,
      message: `vCenter '${vcenter}' responds with HTTP ${error.status}${STATUS_TEXTS[error.status] ?? ''}; retrying automatically`,
      retryable: true,
    };
  return {
    reason,
    message: `vCenter '${vcenter}' does not respond; retrying automatically`,
    retryable: true,
  };
}

/** Descriptions of the HTTP statuses that a proxy, or a vCenter that is starting, responds with. */
const STATUS_TEXTS: Readonly<Record<number, string>> = {
  500: ' (internal server error)',
  502: ' (bad gateway)',
  503: ' (service unavailable)',
  504: ' (gateway timeout)',
};
