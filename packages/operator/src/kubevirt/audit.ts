import { type Kind, type KubeObject, keyOf, type Logger } from '@vmwright/runtime';
import { type Act, audit } from '../audit.ts';

/** An operation on an object of KubeVirt or CDI, as the audit log reports it. */
export interface ChildAct {
  readonly act: Act;
  readonly kind: Kind;
  readonly child: KubeObject;
  readonly reason: string;
}

/**
 * Writes the audit line of an operation on an object of KubeVirt or CDI. The line has the UID of the object as machine
 * id.
 */
export function auditChild(
  log: Logger,
  owner: Kind,
  { metadata }: KubeObject,
  { act, kind, child, reason }: ChildAct,
): void {
  const { uid: machine = '' } = child.metadata;
  const machineName = keyOf(child.metadata);
  audit(log, { kind: owner.kind, metadata }, { act, resource: kind.kind, machine, machineName, reason });
}
