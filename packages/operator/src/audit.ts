import { type KubeObject, keyOf, type Logger } from '@vmwright/runtime';

/**
 * A change that the operator makes to a machine. An object of KubeVirt or CDI, such as a DataVolume, also counts as a
 * machine.
 */
export type Act =
  | 'create'
  | 'reconfigure'
  | 'powerOn'
  | 'powerOff'
  | 'restart'
  | 'delete'
  /** Deletes a machine of an object that no longer exists, or an image that no object refers to. */
  | 'collect'
  /** Removes the ownership labels. The machine stays. */
  | 'orphan';

/** Messages of the audit lines. */
const MESSAGES: Readonly<Record<Act, string>> = {
  create: 'Creating machine',
  reconfigure: 'Reconfiguring machine',
  powerOn: 'Powering on machine',
  powerOff: 'Powering off machine',
  restart: 'Restarting machine',
  delete: 'Deleting machine',
  collect: 'Collecting orphaned machine',
  orphan: 'Orphaning machine',
};

/** A change of a machine that the backend has accepted. */
export interface AuditedAct {
  readonly act: Act;
  /** Type of the changed resource in its backend: `Server`, `VirtualMachine`, `DataVolume`. */
  readonly resource: string;
  /** Immutable id of the machine in its backend. */
  readonly machine: string;
  /** Name of the machine. @default none */
  readonly machineName?: string | undefined;
  /** Why the operator makes the change. */
  readonly reason: string;
  /** Task of the backend that performs the change. @default none */
  readonly task?: string | undefined;
}

/**
 * The Kubernetes object that a machine belongs to. `generation` is undefined if the object no longer exists.
 */
export interface AuditedObject {
  readonly kind: string;
  readonly metadata: Pick<KubeObject['metadata'], 'namespace' | 'name' | 'uid' | 'generation'>;
}

/**
 * Logs a change of a machine, at every log level. All controllers that change machines use this function, so that all
 * lines have the same fields and can be found by the field `audit`. Call it once per change, as soon as the backend has
 * accepted the request. Do not call it if a machine to be deleted was already gone.
 */
export function audit(log: Logger, { kind, metadata }: AuditedObject, act: AuditedAct): void {
  const { act: name, resource, machine, machineName, reason, task } = act;
  const { uid, generation } = metadata;
  const object = { kind, object: keyOf(metadata), uid, generation };
  log.audit({ audit: name, ...object, resource, machine, machineName, reason, task }, MESSAGES[name]);
}
