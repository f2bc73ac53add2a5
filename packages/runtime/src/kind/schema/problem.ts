/** One thing that is wrong with a value, in the API server's words. */
export interface Problem {
  /** Where: `spec.disks[0].size`. */
  readonly field: string;
  /** Stable, for programs. */
  readonly reason: ProblemReason;
  /** What: `Invalid value: 11: spec.level in body should be less than or equal to 10`. */
  readonly message: string;
}

export type ProblemReason =
  | 'FieldValueRequired'
  | 'FieldValueTypeInvalid'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueDuplicate';

/** The path of a field within another. */
export function joinPath(field: string, name: string): string {
  return field === '' ? name : `${field}.${name}`;
}

/** `spec.level: Invalid value: …` */
export function sentenceOf({ field, message }: Problem): string {
  return `${field}: ${message}`;
}

export function missing(field: string): Problem {
  return { field, reason: 'FieldValueRequired', message: 'Required value' };
}

export function wrongType(field: string, wanted: string, found: string): Problem {
  const message = `Invalid value: ${quote(found)}: ${field} in body must be of type ${wanted}: ${quote(found)}`;
  return { field, reason: 'FieldValueTypeInvalid', message };
}

/** `should`: what the value should be or have. */
export function invalid(field: string, value: unknown, should: string): Problem {
  return rejected(field, value, `${field} in body should ${should}`);
}

export function rejected(field: string, value: unknown, why: string): Problem {
  return { field, reason: 'FieldValueInvalid', message: `Invalid value: ${quote(value)}: ${why}` };
}

export function unsupported(field: string, value: unknown, supported: readonly string[]): Problem {
  const message = `Unsupported value: ${quote(value)}: supported values: ${supported.map(quote).join(', ')}`;
  return { field, reason: 'FieldValueNotSupported', message };
}

/** The API server counts characters and says bytes. */
export function tooLong(field: string, most: number): Problem {
  const message = `Too long: may not be more than ${most} ${most === 1 ? 'byte' : 'bytes'}`;
  return { field, reason: 'FieldValueTooLong', message };
}

export function tooMany(field: string, count: number, most: number): Problem {
  const message = `Too many: ${count}: must have at most ${most} ${most === 1 ? 'item' : 'items'}`;
  return { field, reason: 'FieldValueTooMany', message };
}

export function duplicate(field: string, value: unknown): Problem {
  return { field, reason: 'FieldValueDuplicate', message: `Duplicate value: ${quote(value)}` };
}

function quote(value: unknown): string {
  if (typeof value === 'number' && Math.abs(value) >= 2 ** 63) return value.toExponential(); // no longer an integer
  return JSON.stringify(value) ?? 'null';
}
