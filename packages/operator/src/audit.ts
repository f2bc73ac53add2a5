import { type KubeObject, keyOf, type Logger } from '@vmwright/runtime';

/** What the operator does to a machine, or to an object of another operator that holds a part of one. */
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
  /** Type of what is changed, as its backend names it: `Server`, `VirtualMachine`, `DataVolume`. */
  readonly resource: string;
  /** Id of the machine in its backend, which never changes. */
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
 * Logs an act on a machine. Every kind uses it, so that all lines have the same fields and `audit` finds them. Call it once per
 * act, when the backend has accepted the request.
 */
export function audit(log: Logger, { kind, metadata }: AuditedObject, act: AuditedAct): void {
  const { act: name, resource, machine, machineName, reason, task } = act;
  const { uid, generation } = metadata;
  const object = { kind, object: keyOf(metadata), uid, generation };
  log.info({ audit: name, ...object, resource, machine, machineName, reason, task }, MESSAGES[name]);
}
