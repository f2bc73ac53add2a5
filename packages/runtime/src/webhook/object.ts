import { apiVersionOf, type Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { isJsonObject } from '../kind/schema/json.ts';
import { RequestError } from '../server/http-response.ts';

/**
 * Returns the object of a review, typed by its kind. Its fields are not checked, because the API server has decoded it.
 * @throws RequestError if it is of another kind or version, or not an object
 */
export function objectIn<T extends KubeObject>(kind: Kind<T>, value: unknown, field: string): T {
  if (isObjectOf(kind, value)) return value;
  const { apiVersion, kind: found } = isJsonObject(value) ? value : {};
  const actual = found === undefined ? 'no object' : `a ${found} of ${apiVersion}`;
  throw new RequestError(
    400,
    `request.${field} must be of kind ${kind.kind} (${apiVersionOf(kind)}), but contains ${actual}\n`,
  );
}

function isObjectOf<T extends KubeObject>(kind: Kind<T>, value: unknown): value is T {
  return (
    isJsonObject(value) &&
    value.kind === kind.kind &&
    value.apiVersion === apiVersionOf(kind) &&
    isJsonObject(value.metadata)
  );
}
