import type { Condition, KubeObject } from '@vmwright/runtime';

/* Functions that read fields of objects of any kind. A value of another type than requested counts as missing. */

/** Returns the value at a path, such as `at(vm, 'status', 'vmId')`; undefined if it does not exist. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const name of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = Object.getOwnPropertyDescriptor(found, name)?.value;
  }
  return found;
}

/** Returns the text or number at a path as text; empty if there is none. */
export function textAt(value: unknown, ...path: readonly string[]): string {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : typeof found === 'number' ? String(found) : '';
}

export function numberAt(value: unknown, ...path: readonly string[]): number | undefined {
  const found = at(value, ...path);
  return typeof found === 'number' ? found : undefined;
}

export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** Returns the time at a path in milliseconds since 1970; undefined if there is none. */
export function timeAt(value: unknown, ...path: readonly string[]): number | undefined {
  const time = Date.parse(textAt(value, ...path));
  return Number.isNaN(time) ? undefined : time;
}

/** A condition of an object of any kind, even a kind of another project. */
export type AnyCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message' | 'lastTransitionTime'>;

export function conditionsOf(object: KubeObject): readonly AnyCondition[] {
  return listAt(object, 'status', 'conditions').map((each) => {
    const status = textAt(each, 'status');
    return {
      type: textAt(each, 'type'),
      status: status === 'True' || status === 'False' ? status : 'Unknown',
      reason: textAt(each, 'reason'),
      message: textAt(each, 'message'),
      lastTransitionTime: textAt(each, 'lastTransitionTime'),
    };
  });
}

export function conditionAt(object: KubeObject, type: string): AnyCondition | undefined {
  return conditionsOf(object).find((each) => each.type === type);
}
