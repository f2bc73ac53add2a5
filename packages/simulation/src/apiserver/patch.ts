import { ApiError, UnmodelledError } from './errors.ts';
import { isJson, type Json, same } from './json.ts';

/** Applies a JSON merge patch (RFC 7386). */
export function mergePatched(target: unknown, patch: unknown): unknown {
  if (!isJson(patch)) return patch;
  const result: Record<string, unknown> = isJson(target) ? { ...target } : {};
  for (const name in patch) {
    const part = patch[name];
    if (part === null) delete result[name];
    else result[name] = mergePatched(result[name], part);
  }
  return result;
}

/** Applies a JSON patch (RFC 6902) with the operations add, remove, replace and test. */
export function jsonPatched(target: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations)) throw new UnmodelledError('a JSON patch that is not a list');
  let result = target;
  for (const operation of operations) {
    if (!isJson(operation) || typeof operation.path !== 'string')
      throw new UnmodelledError('a JSON patch operation without a path');
    const path = operation.path.split('/').slice(1).map(unescaped);
    result = changed(result, path, operation, operation.path);
  }
  return result;
}

function unescaped(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

function changed(value: unknown, path: readonly string[], operation: Json, whole: string): unknown {
  const [step, ...rest] = path;
  if (step === undefined) throw new UnmodelledError('a JSON patch of the whole object');
  if (Array.isArray(value)) return changedList(value, step, rest, operation, whole);
  const { op } = operation;
  if (!isJson(value)) throw failed(op, whole, 'missing path');
  const has = Object.hasOwn(value, step);
  if (rest.length > 0) {
    if (!has) throw failed(op, whole, 'missing path');
    return { ...value, [step]: changed(value[step], rest, operation, whole) };
  }
  switch (op) {
    case 'add':
    case 'replace': // the API server's library accepts a replace of a missing field
      return { ...value, [step]: operation.value };
    case 'remove': {
      if (!has) throw failed(op, whole, 'missing key');
      const { [step]: _, ...others } = value;
      return others;
    }
    case 'test':
      if (!same(value[step] ?? null, operation.value ?? null)) throw failed(op, whole, 'test failed');
      return value;
    default:
      throw new UnmodelledError(`the JSON patch operation ${op}`);
  }
}

function changedList(
  list: readonly unknown[],
  step: string,
  rest: readonly string[],
  operation: Json,
  whole: string,
): unknown {
  const { op, value } = operation;
  const index = step === '-' ? list.length : Number(step);
  const lastIndex = op === 'add' && rest.length === 0 ? list.length : list.length - 1;
  if (!Number.isInteger(index) || index < 0 || index > lastIndex) throw failed(op, whole, 'no such index');
  if (rest.length > 0) return list.with(index, changed(list[index], rest, operation, whole));
  switch (op) {
    case 'add':
      return list.toSpliced(index, 0, value);
    case 'replace':
      return list.with(index, value);
    case 'remove':
      return list.toSpliced(index, 1);
    case 'test':
      if (!same(list[index], value)) throw failed(op, whole, 'test failed');
      return list;
    default:
      throw new UnmodelledError(`the JSON patch operation ${op}`);
  }
}

/**
 * Returns the error of a failed JSON patch. The code and the reason match those of the API server. The text does not,
 * because the API server repeats the patch and the error of its patch library.
 */
function failed(op: unknown, path: string, why: string): ApiError {
  return new ApiError(
    422,
    'Invalid',
    `the server rejected our request due to an error in our request: ${op} of ${path}: ${why}`,
    {},
  );
}
