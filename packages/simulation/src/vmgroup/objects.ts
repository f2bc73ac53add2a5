import { VmGroup } from '@vmwright/operator';
import { fieldAt } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { declaredResource } from '../apiserver/resource.ts';
import type { Truth } from '../invariants/invariant.ts';

/* Accessors for VmGroups as stored in the API server. */

/**
 * VmGroup as the model serves it, with the kind's CEL rule in TypeScript. Shared by all runs, so that the
 * server compiles the resource only once.
 */
export const SERVED_VMGROUP = declaredResource(VmGroup, (object) => {
  const most = fieldAt(object, ['spec', 'update', 'maxUnavailable']);
  const isFine =
    most === undefined || (typeof most === 'number' ? most >= 1 : /^([1-9][0-9]?|100)%$/.test(String(most)));
  if (isFine) return [];
  const message = 'maxUnavailable must be a number of at least 1, or a percentage from 1% to 100%';
  return [{ field: 'spec.update.maxUnavailable', reason: 'FieldValueInvalid', message }];
});

/** A replica of a group as the status of the group describes it. */
export interface Slot {
  readonly slot: number;
  readonly name: string;
  readonly instanceUuid: string;
  readonly attempts: number;
  readonly isTerminating: boolean;
  readonly power: string | undefined;
  readonly task: string | undefined;
}

const SLOTS = new WeakMap<object, readonly Slot[]>();

export function slotsOf({ status }: StoredObject): readonly Slot[] {
  if (typeof status !== 'object' || status === null) return [];
  const known = SLOTS.get(status);
  if (known !== undefined) return known;
  const replicas = fieldAt(status, ['replicas']);
  const slots = (Array.isArray(replicas) ? replicas : []).map((each) => ({
    slot: numberAt(each, 'slot') ?? -1,
    name: textAt(each, 'name') ?? '',
    instanceUuid: textAt(each, 'instanceUuid') ?? '',
    attempts: numberAt(each, 'attempts') ?? 0,
    isTerminating: fieldAt(each, ['terminating']) === true,
    power: textAt(each, 'power'),
    task: textAt(each, 'task'),
  }));
  SLOTS.set(status, slots);
  return slots;
}

export function slotOf(object: StoredObject, slot: number): Slot | undefined {
  return slotsOf(object).find((each) => each.slot === slot);
}

export interface Wanted {
  readonly replicas: number;
  readonly cpus: number;
  readonly memoryMb: number;
  readonly template: string;
  readonly isRolling: boolean;
  /** Maximum number of unavailable machines during an update. */
  readonly maxUnavailable: number;
}

export function wantedIn({ spec }: StoredObject): Wanted {
  const replicas = numberAt(spec, 'replicas') ?? 0;
  const most = fieldAt(spec, ['update', 'maxUnavailable']) ?? 1;
  const share = Math.floor((Number.parseInt(String(most), 10) * replicas) / 100);
  return {
    replicas,
    maxUnavailable: typeof most === 'number' ? most : Math.max(1, share),
    cpus: numberAt(spec, 'cpu') ?? 0,
    memoryMb: (numberAt(spec, 'memory') ?? 0) * 1_024,
    template: textAt(spec, 'template') ?? '',
    isRolling: fieldAt(spec, ['update', 'strategy']) !== 'OnDelete',
  };
}

export interface Ready {
  readonly status: string | undefined;
  readonly reason: string | undefined;
  readonly observedGeneration: number;
}

export function readyOf({ status }: StoredObject): Ready {
  const conditions = fieldAt(status, ['conditions']);
  const ready = (Array.isArray(conditions) ? conditions : []).find(
    (each) => textAt(each, 'type') === 'Ready',
  );
  return {
    status: textAt(ready, 'status'),
    reason: textAt(ready, 'reason'),
    observedGeneration: numberAt(ready, 'observedGeneration') ?? 0,
  };
}

export function countIn({ status }: StoredObject, name: string): number | undefined {
  return numberAt(status, name);
}

export function phaseOf({ status }: StoredObject): string | undefined {
  return textAt(status, 'phase');
}

export const PAUSED = 'vmwright.dev/paused';
const DELETION_POLICY = 'vmwright.dev/deletion-policy';

export function isPaused({ metadata }: StoredObject): boolean {
  return metadata.annotations?.[PAUSED] === 'true';
}

export function isOrphaned({ metadata }: StoredObject): boolean {
  return metadata.annotations?.[DELETION_POLICY] === 'Orphan';
}

export function isDeleted({ metadata }: StoredObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** Returns `namespace/name (UID)`. */
export function nameOf({ metadata: { namespace, name, uid } }: StoredObject): string {
  return `${namespace}/${name} (${uid})`;
}

/**
 * Calls the listener on each change of a group. `before` is undefined for a creation, `after` for a removal.
 */
export function onGroupChange(
  { server }: Pick<Truth, 'server'>,
  listener: (before: StoredObject | undefined, after: StoredObject | undefined) => void,
): void {
  server.listen(({ resource, before, after }) => {
    if (resource.kind.kind === VmGroup.kind) listener(before?.object, after?.object);
  });
}

function textAt(value: unknown, name: string): string | undefined {
  const found = fieldAt(value, [name]);
  return typeof found === 'string' ? found : undefined;
}

function numberAt(value: unknown, name: string): number | undefined {
  const found = fieldAt(value, [name]);
  return typeof found === 'number' ? found : undefined;
}
