import type { Sent } from '../scenario/traffic.ts';
import { methodIn } from '../vcenter/request.ts';
import { VCENTER } from '../vcenter/simulated.ts';
import type { Owner } from './external-resources.ts';

/** vCenter methods that change something. */
const CHANGES: ReadonlySet<string> = new Set([
  'CloneVM_Task',
  'ReconfigVM_Task',
  'PowerOnVM_Task',
  'PowerOffVM_Task',
  'ShutdownGuest',
  'Destroy_Task',
  'UnregisterAndDestroy_Task',
  'CreateFolder',
  'Rename_Task',
  'AddCustomFieldDef',
  'SetField',
]);

const METHODS = new WeakMap<Sent, string>();

/** Returns the vCenter method of a request; empty for requests to other servers. */
export function methodOf(sent: Sent): string {
  if (sent.origin !== VCENTER) return '';
  const known = METHODS.get(sent);
  if (known !== undefined) return known;
  const method = methodIn(sent.body ?? '');
  METHODS.set(sent, method);
  return method;
}

export function isChange(sent: Sent): boolean {
  return CHANGES.has(methodOf(sent));
}

/** Whether the request clones a machine. */
export function isClone(sent: Sent): boolean {
  return methodOf(sent) === 'CloneVM_Task';
}

/** Returns the group and slot in a clone request. */
export function requestedOwner({ body = '' }: Sent): Owner {
  return { uid: optionIn(body, 'vmwright.uid'), slot: Number(optionIn(body, 'vmwright.slot')) };
}

function optionIn(body: string, key: string): string {
  const from = body.indexOf(`<key>${key}</key>`);
  const start = body.indexOf('>', body.indexOf('<value', from)) + 1;
  return from === -1 ? '' : body.slice(start, body.indexOf('<', start));
}
