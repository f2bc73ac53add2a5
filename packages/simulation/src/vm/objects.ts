import { VM } from '@vmwright/operator';
import { fieldAt } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { declaredResource } from '../apiserver/resource.ts';
import type { Truth } from '../invariants/invariant.ts';

/* Accessors for VMs as stored in the API server. */

const NAME = /^(?!\.\.?$)[A-Za-z0-9._-]{1,63}$/;

/**
 * VM as the API server model serves it, with the kind's CEL rules in TypeScript. All runs share this resource, so that
 * the model compiles it only once.
 */
export const SERVED_VM = declaredResource(VM, (object, before) => {
  const vmname = fieldAt(object, ['spec', 'vmname']);
  const field = 'spec.vmname';
  const reason = 'FieldValueInvalid';
  if (typeof vmname !== 'string' || !NAME.test(vmname))
    return [{ field, reason, message: 'vmname must have 1 to 63 characters' }];
  if (before === undefined) return [];
  if (fieldAt(before, ['spec', 'vmname']) !== vmname)
    return [{ field, reason, message: 'vmname is immutable' }];
  const [was, is] = [fieldAt(before, ['status', 'vmId']), fieldAt(object, ['status', 'vmId'])];
  const grows = (counter: string) =>
    numberAt(fieldAt(object, ['status', counter])) > numberAt(fieldAt(before, ['status', counter]));
  if (
    was === undefined ||
    was === '' ||
    was === is ||
    grows('recreations') ||
    (is !== undefined && grows('repairs'))
  )
    return [];
  return [{ field: 'status.vmId', reason, message: 'vmId cannot be changed or removed' }];
});

function numberAt(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

export function vmnameOf({ spec }: StoredObject): string {
  return String(fieldAt(spec, ['vmname']));
}

export function vmIdOf({ status }: StoredObject): string | undefined {
  return textAt(status, 'vmId');
}

export function opStatusOf({ status }: StoredObject): string | undefined {
  return textAt(status, 'opStatus');
}

export function msgOf({ status }: StoredObject): string | undefined {
  return textAt(status, 'msg');
}

/** Returns a counter of the status; 0 if it is not set. */
export function countOf({ status }: StoredObject, name: 'attempts' | 'recreations' | 'repairs'): number {
  return numberAt(fieldAt(status, [name]));
}

/**
 * Amount that a third party adds to `repairs` when it changes a vmId. Without an increase, the API server rejects the
 * change. The operator adds only 1, so invariants can recognise a change by a third party.
 */
export const EDITED = 1_000;

/** Whether a third party changed the vmId after the state `before`, or at any time if `before` is undefined. */
export function isEdited(before: StoredObject | undefined, after: StoredObject): boolean {
  return countOf(after, 'repairs') - (before === undefined ? 0 : countOf(before, 'repairs')) >= EDITED;
}

/** Returns the time of the last re-creation in milliseconds since 1970; NaN if there was none. */
export function recreatedAtOf({ status }: StoredObject): number {
  return Date.parse(textAt(status, 'recreatedAt') ?? '');
}

export interface ConditionSeen {
  readonly status: string | undefined;
  readonly reason: string | undefined;
  readonly observedGeneration: number;
}

export function conditionsOf({ status }: StoredObject): ReadonlyMap<string, ConditionSeen> {
  const conditions = fieldAt(status, ['conditions']);
  const found = new Map<string, ConditionSeen>();
  for (const each of Array.isArray(conditions) ? conditions : []) {
    const generation = fieldAt(each, ['observedGeneration']);
    found.set(textAt(each, 'type') ?? '', {
      status: textAt(each, 'status'),
      reason: textAt(each, 'reason'),
      observedGeneration: typeof generation === 'number' ? generation : 0,
    });
  }
  return found;
}

/** Whether the status reports that the cloud is available. */
export function isCloudAvailable(object: StoredObject): boolean {
  return conditionsOf(object).get('CloudAvailable')?.status === 'True';
}

export const PAUSED = 'vmwright.dev/paused';
export const RECREATE = 'vmwright.dev/recreate';
const DELETION_POLICY = 'vmwright.dev/deletion-policy';

export function isPaused({ metadata }: StoredObject): boolean {
  return metadata.annotations?.[PAUSED] === 'true';
}

export function mayRecreate({ metadata }: StoredObject): boolean {
  return metadata.annotations?.[RECREATE] === 'true';
}

export function isOrphaned({ metadata }: StoredObject): boolean {
  return metadata.annotations?.[DELETION_POLICY] === 'Orphan';
}

/** Calls the listener on each change of a VM. `before` is undefined for a creation, `after` for a removal. */
export function onVmChange(
  { server }: Pick<Truth, 'server'>,
  listener: (before: StoredObject | undefined, after: StoredObject | undefined) => void,
): void {
  server.listen(({ resource, before, after }) => {
    if (resource.kind.kind === VM.kind) listener(before?.object, after?.object);
  });
}

function textAt(value: unknown, name: string): string | undefined {
  const found = fieldAt(value, [name]);
  return typeof found === 'string' ? found : undefined;
}
