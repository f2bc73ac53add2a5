import { type Kind, type KubeObject, keyOf, type Logger } from '@vmwright/runtime';
import { type Act, audit } from '../audit.ts';

/** An act on an object of KubeVirt or CDI. */
export interface ChildAct {
  readonly act: Act;
  readonly kind: Kind;
  readonly child: KubeObject;
  readonly reason: string;
}

/** Logs an act on an object of KubeVirt or CDI. The audit line has the UID of that object as the id of the machine. */
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
