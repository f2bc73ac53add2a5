import { apiVersionOf, type Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import { isJsonObject } from '../kind/schema/json.ts';
import { RequestError } from '../server/http-response.ts';

/**
 * An object of a kind out of a review. That it is one in every field is the API server's to know: it has decoded it.
 * @throws RequestError when it is of another kind, version or no object at all
 */
export function objectIn<T extends KubeObject>(kind: Kind<T>, value: unknown, field: string): T {
  if (isObjectOf(kind, value)) return value;
  const { apiVersion, kind: found } = isJsonObject(value) ? value : {};
  const what = found === undefined ? 'no object' : `a ${found} of ${apiVersion}`;
  throw new RequestError(
    400,
    `this is for objects of kind ${kind.kind} of ${apiVersionOf(kind)}, and request.${field} holds ${what}\n`,
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
