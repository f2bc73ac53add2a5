import { type KubeObject, keyOf, type Logger } from '@vmwright/runtime';

/** An act of the operator on a machine, or on another operator's object that is part of a machine, such as a DataVolume. */
export type Act =
  | 'create'
  | 'reconfigure'
  | 'powerOn'
  | 'powerOff'
  | 'restart'
  | 'delete'
  /** Deletes a machine that was created after its object was deleted. */
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

/** An act that the backend has accepted. */
export interface AuditedAct {
  readonly act: Act;
  /** Type of the changed resource in its backend: `Server`, `VirtualMachine`, `DataVolume`. */
  readonly resource: string;
  /** Immutable id of the machine in its backend. */
  readonly machine: string;
  /** Name of the machine. @default none */
  readonly machineName?: string | undefined;
  /** Why the operator acts. */
  readonly reason: string;
  /** Task of the backend. @default none */
  readonly task?: string | undefined;
}

/** The object for which the operator acts. The object of an orphan does not exist any more, so its generation is unknown. */
export interface AuditedObject {
  readonly kind: string;
  readonly metadata: Pick<KubeObject['metadata'], 'namespace' | 'name' | 'uid' | 'generation'>;
}

/**
 * Logs an act on a machine, whatever the configured log level. All controllers that act on machines use this function, so that all
 * lines have the same fields and can be found by the field `audit`. Must be called once per act, as soon as the backend has accepted
 * the request, and not if a deletion found the machine already gone.
 */
export function audit(log: Logger, { kind, metadata }: AuditedObject, act: AuditedAct): void {
  const { act: name, resource, machine, machineName, reason, task } = act;
  const { uid, generation } = metadata;
  const object = { kind, object: keyOf(metadata), uid, generation };
  log.audit({ audit: name, ...object, resource, machine, machineName, reason, task }, MESSAGES[name]);
}
