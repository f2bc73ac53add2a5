import { ApiError, type FieldError, UnmodelledError } from './errors.ts';
import { fieldAt, isJson, type Json, withFieldAt } from './json.ts';
import type { StoredObject } from './object.ts';

/** Paths of the fields behind the scale subresource. */
export interface ScalePaths {
  readonly spec: readonly string[];
  readonly status: readonly string[];
  readonly selector: readonly string[] | undefined;
}

export function scaleOf(object: StoredObject, { spec, status, selector }: ScalePaths): Json {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const selected = selector && fieldAt(object, selector);
  const wanted = fieldAt(object, spec);
  if (wanted === undefined)
    throw new ApiError(
      500,
      'InternalError',
      `Internal error occurred: the spec replicas field "${spec.join('.')}" does not exist`,
    );
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      uid,
      resourceVersion,
      creationTimestamp,
    },
    spec: { ...(wanted !== 0 && { replicas: wanted }) },
    status: {
      replicas: fieldAt(object, status) ?? 0,
      ...(typeof selected === 'string' && selected !== '' && { selector: selected }),
    },
  };
}

/** Returns the object with a changed `Scale` applied. */
export function scaled(object: Json, changed: unknown, { spec }: ScalePaths): Json {
  const { metadata, spec: wanted } = isJson(changed) ? changed : {};
  const { resourceVersion } = isJson(metadata) ? metadata : {};
  const { replicas = 0 } = isJson(wanted) ? wanted : {};
  if (typeof replicas !== 'number' || !Number.isInteger(replicas))
    throw new UnmodelledError('replicas that are not an integer');
  return withFieldAt(withFieldAt(object, ['metadata', 'resourceVersion'], resourceVersion), spec, replicas);
}

/** Returns the validation errors of the replica counts, beyond the schema. */
export function scaleProblems(object: Json, { spec, status }: ScalePaths): FieldError[] {
  return [spec, status].flatMap((path) => {
    const value = fieldAt(object, path);
    const field = `.${path.join('.')}`;
    const reason = 'FieldValueInvalid';
    if (value === undefined || value === null) return [];
    if (typeof value !== 'number') {
      const why = `${field} accessor error: ${value} is of the type ${typeof value}, expected int64`;
      return [{ field, reason, message: `Invalid value: 0: ${why}` }];
    }
    if (value >= 0) return [];
    return [{ field, reason, message: `Invalid value: ${value}: should be a non-negative integer` }];
  });
}
