import type { CollectorOptions, ExternalChange, ExternalResources, Kind, Logger } from '@vmwright/runtime';
import { deletesMachines } from './annotations.ts';
import { type AuditedAct, audit } from './audit.ts';

/** Options of garbage collection that come from the settings. */
export type GarbageOptions = Pick<CollectorOptions<unknown>, 'world' | 'everyMs' | 'graceMs' | 'namespaces'>;

/** Options of garbage collection that are the same for every kind. */
export const GARBAGE = { deletesExternal: deletesMachines, hint: 'List them with: vmwright orphans' };

/** External resources of a kind. The audit log records the resources that garbage collection deletes. */
export interface AuditedResources<T> extends ExternalResources<T> {
  /** Returns type, id and name of a resource for the audit log. */
  auditOf(item: T): Pick<AuditedAct, 'resource' | 'machine' | 'machineName'>;
}

/**
 * Returns an observer that writes an audit line for each change of a resource without an owner. If the collector
 * stops a machine, the act in the line is `powerOff`. If it deletes the resource, the act is `deletion.act`.
 * @param deletion act of a deletion; `reason` is the reason in all lines
 */
export function auditOrphan<T>(
  { kind }: Kind,
  external: Pick<AuditedResources<T>, 'auditOf' | 'ownerOf'>,
  deletion: Pick<AuditedAct, 'act' | 'reason'>,
): (item: T, change: ExternalChange, log: Logger) => void {
  return (item, { type, task }, log) => {
    const { uid = '', namespace = '', name } = external.ownerOf(item) ?? {};
    const metadata = { namespace, name: name || '-', uid }; // some backends do not store the owner's name
    const act = type === 'stop' ? 'powerOff' : deletion.act;
    audit(log, { kind, metadata }, { ...external.auditOf(item), act, reason: deletion.reason, task });
  };
}

/** Returns a function for the option `onChange` of the garbage collector. It writes an audit line for each change. */
export function auditCollected<T>(
  kind: Kind,
  external: AuditedResources<T>,
): Required<CollectorOptions<T>>['onChange'] {
  const reason = `its ${kind.kind} no longer exists`;
  return auditOrphan(kind, external, { act: 'collect', reason });
}
