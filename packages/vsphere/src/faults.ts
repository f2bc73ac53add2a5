import { VsphereError } from './errors.ts';
import { isKindOf } from './schema/schema.ts';
import type { DataObject, ManagedObjectReference, Vim25 } from './vim25/vim25.generated.ts';

/**
 * Codes by fault type. A fault gets the code of the first entry that is its own type or one of its base types. If there
 * is no such entry, the code is `FAULT`.
 */
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

/** Codes of faults after which the same request may succeed later. */
const RETRYABLE: ReadonlySet<string> = new Set([
  'TASK_IN_PROGRESS',
  'CONCURRENT_ACCESS',
  'RESOURCE_IN_USE',
  'HOST_COMMUNICATION',
  'TIMED_OUT',
]);

export type FaultCode = (typeof CODES)[keyof typeof CODES] | 'FAULT';

/** Thrown for a fault that vCenter returned, or with which a task failed. */
export class FaultError extends VsphereError {
  readonly code: FaultCode;
  override readonly retryable: boolean;
  /** Name of the fault type in vim25: `InvalidPowerState`. */
  readonly type: string;
  /** The message without the name of the operation: the same text for all operations that fail with this fault. */
  readonly reason: string;
  /** The fields of the fault; `faultOf` returns them typed. */
  readonly detail: DataObject;

  /** @param operation name of the operation; the message begins with it */
  constructor(operation: string, type: string, detail: DataObject, message: string) {
    const reason = reasonFor(type, detail, message);
    super(`${operation}: ${reason}`);
    this.reason = reason;
    this.type = type;
    this.detail = detail;
    this.code = codeOf(type);
    this.retryable = RETRYABLE.has(this.code);
  }
}

/** Returns the fields of a fault when it is of this type: `faultOf(error, 'DuplicateName')?.object`. */
export function faultOf<K extends keyof Vim25>(error: unknown, type: K): Vim25[K] | undefined {
  if (!(error instanceof FaultError)) return undefined;
  const { detail } = error;
  return isFaultOf(error.type, detail, type) ? detail : undefined;
}

/** Whether an object is of this type or of a subtype, so that it has the fields of this type. */
export function isA<K extends keyof Vim25>(object: DataObject, type: K): object is DataObject & Vim25[K] {
  return object._type !== undefined && isKindOf(object._type, type);
}

function isFaultOf<K extends keyof Vim25>(name: string, detail: unknown, type: K): detail is Vim25[K] {
  return detail !== undefined && isKindOf(name, type);
}

function codeOf(type: string): FaultCode {
  for (const [name, code] of Object.entries(CODES)) if (isKindOf(type, name)) return code;
  return 'FAULT';
}

function reasonFor(type: string, detail: DataObject, message: string): string {
  const serverMessage = message.trim().replace(/\.$/, '');
  const summary = describeFault(type, detail);
  if (summary === undefined)
    return serverMessage === '' ? `vCenter returned the fault ${type}` : `${serverMessage} (${type})`;
  return serverMessage === '' ? summary : `${summary} (${serverMessage})`;
}

function describeFault(type: string, detail: DataObject): string | undefined {
  if (isFaultOf(type, detail, 'NotAuthenticated')) return 'the session has ended';
  if (isFaultOf(type, detail, 'InvalidLogin')) return 'vCenter rejected the user name or password';
  if (isFaultOf(type, detail, 'NoPermission')) {
    const on = detail.object === undefined ? '' : ` on ${nameOf(detail.object)}`;
    return detail.privilegeId
      ? `the user lacks the privilege ${detail.privilegeId}${on}`
      : `the user lacks a privilege${on}`;
  }
  if (isFaultOf(type, detail, 'ManagedObjectNotFound'))
    return detail.obj?.value
      ? `${nameOf(detail.obj)} does not exist any more`
      : 'the object does not exist any more';
  if (isFaultOf(type, detail, 'DuplicateName') && detail.name)
    return `the name '${detail.name}' is already used by ${nameOf(detail.object)}`;
  if (isFaultOf(type, detail, 'InvalidPowerState') && detail.existingState) {
    const required =
      detail.requestedState === undefined ? '' : `; the operation requires ${detail.requestedState}`;
    return `the machine is ${detail.existingState}${required}`;
  }
  if (isFaultOf(type, detail, 'TaskInProgress') && detail.task?.value)
    return `another task is in progress on the object (${nameOf(detail.task)})`;
  if (isFaultOf(type, detail, 'RequestCanceled')) return 'the operation was cancelled';
  if (isFaultOf(type, detail, 'InvalidArgument') && detail.invalidProperty)
    return `vCenter rejected the value of ${detail.invalidProperty}`;
  return undefined;
}

/** Returns the name of an object for messages: `VirtualMachine vm-12`. */
export function nameOf({ type, value }: ManagedObjectReference): string {
  return `${type} ${value}`;
}
