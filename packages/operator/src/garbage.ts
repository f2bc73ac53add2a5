import type { CollectorOptions, ExternalResources, Kind, Logger } from '@vmwright/runtime';
import { deletesMachines } from './annotations.ts';
import { type AuditedAct, audit } from './audit.ts';

/** Options of garbage collection that come from the settings. */
export type GarbageOptions = Pick<CollectorOptions<unknown>, 'world' | 'everyMs' | 'graceMs' | 'namespaces'>;

/** Options of garbage collection that are the same for every kind. */
export const GARBAGE = { deletesExternal: deletesMachines, hint: 'List them with: vmwright orphans' };

/** External resources of a kind whose deletion without an owner is audited. */
export interface AuditedResources<T> extends ExternalResources<T> {
  /** Returns type, id and name of a resource for the audit log. */
  auditOf(item: T): Pick<AuditedAct, 'resource' | 'machine' | 'machineName'>;
}

/** Logs that a resource without an owner was deleted. */
export function auditOrphan<T>(
  log: Logger,
  { kind }: Kind,
  external: Pick<AuditedResources<T>, 'auditOf' | 'ownerOf'>,
  item: T,
  act: Pick<AuditedAct, 'act' | 'reason'>,
): void {
  const { uid = '', namespace = '', name } = external.ownerOf(item) ?? {};
  const metadata = { namespace, name: name || '-', uid }; // some backends do not store the name
  audit(log, { kind, metadata }, { ...act, ...external.auditOf(item) });
}

/** Returns the option of garbage collection that audits deletions. */
export function onCollected<T>(kind: Kind, external: AuditedResources<T>): (item: T, log: Logger) => void {
  const act = { act: 'collect', reason: `it was created after its ${kind.kind} was deleted` } as const;
  return (item, log) => auditOrphan(log, kind, external, item, act);
}
