import { VsphereError } from './errors.ts';
import { isKindOf } from './schema/schema.ts';
import type { DataObject, ManagedObjectReference, Vim25 } from './vim25/vim25.generated.ts';

/** By vim25's names. A fault that is not here has the code of the nearest of its bases that is. */
const CODES = {
  NotAuthenticated: 'NOT_AUTHENTICATED',
  InvalidLogin: 'INVALID_LOGIN',
  NoPermission: 'NO_PERMISSION',
  ManagedObjectNotFound: 'OBJECT_NOT_FOUND',
  DuplicateName: 'DUPLICATE_NAME',
  AlreadyExists: 'ALREADY_EXISTS',
  FileAlreadyExists: 'ALREADY_EXISTS',
  NotFound: 'NOT_FOUND',
  InvalidPowerState: 'INVALID_POWER_STATE',
  TaskInProgress: 'TASK_IN_PROGRESS',
  ToolsUnavailable: 'TOOLS_UNAVAILABLE',
  ConcurrentAccess: 'CONCURRENT_ACCESS',
  InvalidState: 'INVALID_STATE',
  ResourceInUse: 'RESOURCE_IN_USE',
  RequestCanceled: 'REQUEST_CANCELED',
  InvalidCollectorVersion: 'INVALID_COLLECTOR_VERSION',
  InsufficientResourcesFault: 'INSUFFICIENT_RESOURCES',
  NoDiskSpace: 'NO_DISK_SPACE',
  HostCommunication: 'HOST_COMMUNICATION',
  InvalidArgument: 'INVALID_ARGUMENT',
  InvalidName: 'INVALID_NAME',
  NotSupported: 'NOT_SUPPORTED',
  Timedout: 'TIMED_OUT',
} as const;

/** Faults that the same request may get past, later. */
const PASSING: ReadonlySet<string> = new Set([
  'TASK_IN_PROGRESS',
  'CONCURRENT_ACCESS',
  'RESOURCE_IN_USE',
  'HOST_COMMUNICATION',
  'TIMED_OUT',
]);

export type FaultCode = (typeof CODES)[keyof typeof CODES] | 'FAULT';

/** vCenter has answered, and the answer is no; or a task has ended so. */
export class FaultError extends VsphereError {
  readonly code: FaultCode;
  override readonly retryable: boolean;
  /** Its name in vim25: `InvalidPowerState`. */
  readonly type: string;
  /** The message without what was asked for: the same, however often it is. */
  readonly reason: string;
  /** What it says besides; see `faultOf` for the fields of its type. */
  readonly detail: DataObject;

  /** @param what was asked for, as it reads before a colon */
  constructor(what: string, type: string, detail: DataObject, message: string) {
    const reason = reasonFor(type, detail, message);
    super(`${what}: ${reason}`);
    this.reason = reason;
    this.type = type;
    this.detail = detail;
    this.code = codeOf(type);
    this.retryable = PASSING.has(this.code);
  }
}

/** The fields of a fault, where it is one of this type: `faultOf(error, 'DuplicateName')?.object`. */
export function faultOf<K extends keyof Vim25>(error: unknown, type: K): Vim25[K] | undefined {
  if (!(error instanceof FaultError)) return undefined;
  const { detail } = error;
  return isOf(error.type, detail, type) ? detail : undefined;
}

/** Whether an object that was read is one of this type, and so has its fields. */
export function isA<K extends keyof Vim25>(object: DataObject, type: K): object is DataObject & Vim25[K] {
  return object._type !== undefined && isKindOf(object._type, type);
}

function isOf<K extends keyof Vim25>(name: string, detail: unknown, type: K): detail is Vim25[K] {
  return detail !== undefined && isKindOf(name, type);
}

function codeOf(type: string): FaultCode {
  for (const [name, code] of Object.entries(CODES)) if (isKindOf(type, name)) return code;
  return 'FAULT';
}

function reasonFor(type: string, detail: DataObject, message: string): string {
  const said = message.trim().replace(/\.$/, '');
  const words = wordsFor(type, detail);
  if (words === undefined) return said === '' ? `vCenter answers ${type}` : `${said} (${type})`;
  return said === '' ? words : `${words} (${said})`;
}

function wordsFor(type: string, detail: DataObject): string | undefined {
  if (isOf(type, detail, 'NotAuthenticated')) return 'the session has ended';
  if (isOf(type, detail, 'InvalidLogin')) return 'vCenter refuses the user name or the password';
  if (isOf(type, detail, 'NoPermission')) {
    const on = detail.object === undefined ? '' : ` on ${nameOf(detail.object)}`;
    return detail.privilegeId
      ? `the user lacks the privilege ${detail.privilegeId}${on}`
      : `the user lacks a privilege${on}`;
  }
  if (isOf(type, detail, 'ManagedObjectNotFound'))
    return detail.obj?.value ? `${nameOf(detail.obj)} is gone` : 'the object is gone';
  if (isOf(type, detail, 'DuplicateName') && detail.name)
    return `the name '${detail.name}' is taken by ${nameOf(detail.object)}`;
  if (isOf(type, detail, 'InvalidPowerState') && detail.existingState) {
    const wanted =
      detail.requestedState === undefined ? '' : `, and would have to be ${detail.requestedState}`;
    return `it is ${detail.existingState}${wanted}`;
  }
  if (isOf(type, detail, 'TaskInProgress') && detail.task?.value)
    return `another task is at work on it, ${nameOf(detail.task)}`;
  if (isOf(type, detail, 'RequestCanceled')) return 'it was cancelled';
  if (isOf(type, detail, 'InvalidArgument') && detail.invalidProperty)
    return `vCenter does not accept ${detail.invalidProperty}`;
  return undefined;
}

/** As it reads in a sentence: `VirtualMachine vm-12`. */
export function nameOf({ type, value }: ManagedObjectReference): string {
  return `${type} ${value}`;
}
