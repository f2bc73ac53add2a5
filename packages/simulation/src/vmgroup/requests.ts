import type { Sent } from '../scenario/traffic.ts';
import { methodIn } from '../vcenter/request.ts';
import { VCENTER } from '../vcenter/simulated.ts';
import type { Owner } from './outside.ts';

/** What changes something in vCenter. */
const CHANGES: ReadonlySet<string> = new Set([
  'CloneVM_Task',
  'ReconfigVM_Task',
  'PowerOnVM_Task',
  'PowerOffVM_Task',
  'ShutdownGuest',
  'Destroy_Task',
  'UnregisterAndDestroy_Task',
  'CreateFolder',
  'AddCustomFieldDef',
  'SetField',
]);

const METHODS = new WeakMap<Sent, string>();

/** What is called in vCenter; empty for what goes elsewhere. */
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

/** Whether a machine is asked for. */
export function isClone(sent: Sent): boolean {
  return methodOf(sent) === 'CloneVM_Task';
}

/** The group and the slot for which a machine is asked for. */
export function ownerAsked({ body = '' }: Sent): Owner {
  return { uid: optionIn(body, 'vmwright.uid'), slot: Number(optionIn(body, 'vmwright.slot')) };
}

function optionIn(body: string, key: string): string {
  const from = body.indexOf(`<key>${key}</key>`);
  const start = body.indexOf('>', body.indexOf('<value', from)) + 1;
  return from === -1 ? '' : body.slice(start, body.indexOf('<', start));
}
