import type { Kind } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import { fieldAt } from '../apiserver/json.ts';
import type { StoredObject } from '../apiserver/object.ts';
import type { Change } from '../apiserver/store.ts';

/* Accessors for objects as stored in the API server. */

export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  const found = fieldAt(value, path);
  return typeof found === 'string' ? found : undefined;
}

export function numberAt(value: unknown, ...path: readonly string[]): number | undefined {
  const found = fieldAt(value, path);
  return typeof found === 'number' ? found : undefined;
}

export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = fieldAt(value, path);
  return Array.isArray(found) ? found : [];
}

export function keyOf({ metadata: { namespace, name } }: StoredObject): string {
  return `${namespace}/${name}`;
}

export function phaseIn(object: StoredObject | undefined): string | undefined {
  return textAt(object, 'status', 'phase');
}

export interface ConditionSeen {
  readonly status: string | undefined;
  readonly reason: string | undefined;
  readonly message: string | undefined;
}

export function conditionOf(object: StoredObject, type: string): ConditionSeen | undefined {
  const found = listAt(object, 'status', 'conditions').find((each) => textAt(each, 'type') === type);
  if (found === undefined) return undefined;
  return {
    status: textAt(found, 'status'),
    reason: textAt(found, 'reason'),
    message: textAt(found, 'message'),
  };
}

export function isTerminating({ metadata }: StoredObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

export const PAUSED = 'vmwright.dev/paused';

export function isPaused({ metadata }: StoredObject): boolean {
  return metadata.annotations?.[PAUSED] === 'true';
}

/** Returns the stored object with this name. */
export function find(
  server: ApiServer,
  kind: Kind,
  namespace: string | undefined,
  name: string,
): StoredObject | undefined {
  for (const each of server.objects(kind))
    if (each.metadata.name === name && each.metadata.namespace === namespace) return each;
  return undefined;
}

/**
 * Whether a change concerns an object of this kind. Compares the group, too, because two API groups have a kind
 * VirtualMachine.
 */
export function isOf(resource: { readonly kind: Kind }, { group, plural }: Kind): boolean {
  return resource.kind.group === group && resource.kind.plural === plural;
}

/** Returns the UID of the object's controller. */
export function controllerOf({ metadata }: StoredObject): string | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid;
}

/** Returns the stored object of a kind with this UID. */
export function byUid(server: ApiServer, kind: Kind, uid: string | undefined): StoredObject | undefined {
  return server.objects(kind).find(({ metadata }) => metadata.uid === uid);
}

/** Returns the stored object of a kind with this `namespace/name`. */
export function byKey(server: ApiServer, kind: Kind, key: string): StoredObject | undefined {
  const [namespace = '', name = ''] = key.split('/');
  return find(server, kind, namespace, name);
}

/** Calls the listener on each change of an object of a kind. */
export function onChange(
  server: ApiServer,
  kind: Kind,
  listener: (before: StoredObject | undefined, after: StoredObject | undefined, change: Change) => void,
): void {
  server.listen((change) => {
    if (isOf(change.resource, kind)) listener(change.before?.object, change.after?.object, change);
  });
}
