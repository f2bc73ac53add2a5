import { type Draft, type KubeObject, parseQuantity } from '@vmwright/runtime';
import { PREFIX } from './metadata.ts';

/** Fields that the API server may store in another notation of the same quantity. */
const QUANTITIES: ReadonlySet<string> = new Set(['guest']);
/** Metadata that is compared. Owner references are not compared, because another program may add its own. */
const METADATA = ['labels', 'annotations'] as const;

/**
 * Whether an object differs from its draft. It differs if it lacks a value that the draft sets. It also differs if it
 * has a label or annotation of the operator that the draft does not set. Other fields that the draft does not set
 * belong to other programs and are ignored.
 */
export function differs<T extends KubeObject>(actual: T, draft: Draft<T>): boolean {
  const { metadata, ...fields } = draft;
  if (!contains(actual, fields)) return true;
  const places = [
    ...METADATA.map((part) => [actual.metadata[part], metadata[part]] as const),
    ...METADATA.map((part) => [templatePart(actual, part), templatePart(draft, part)] as const),
  ];
  return places.some(([has, wanted]) => !contains(has ?? {}, wanted ?? {}) || hasStaleKey(has, wanted));
}

/** Whether every field that is set in `wanted` has the same value in `actual`. Lists must have the same length. */
function contains(actual: unknown, wanted: unknown, field = ''): boolean {
  if (wanted === undefined || wanted === actual) return true;
  if (Array.isArray(wanted))
    return (
      Array.isArray(actual) &&
      actual.length === wanted.length &&
      wanted.every((item, i) => contains(actual[i], item))
    );
  if (isRecord(wanted))
    return (
      isRecord(actual) && Object.entries(wanted).every(([name, value]) => contains(actual[name], value, name))
    );
  if (!QUANTITIES.has(field) || typeof wanted !== 'string' || typeof actual !== 'string') return false;
  return parseQuantity(actual) === parseQuantity(wanted);
}

function hasStaleKey(has: unknown, wanted: unknown): boolean {
  if (!isRecord(has)) return false;
  const kept = isRecord(wanted) ? wanted : {};
  return Object.keys(has).some((key) => key.startsWith(PREFIX) && !Object.hasOwn(kept, key));
}

/** Returns the labels or annotations of an object's template, if the object has a template. */
function templatePart(object: object, part: string): unknown {
  let value: unknown = object;
  for (const field of ['spec', 'template', 'metadata', part])
    value = isRecord(value) ? value[field] : undefined;
  return value;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
