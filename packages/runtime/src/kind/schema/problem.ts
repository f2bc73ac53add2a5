/** A violation of a schema, with the API server's message. */
export interface Problem {
  /** Path of the field: `spec.disks[0].size`. */
  readonly field: string;
  /** Machine-readable reason. */
  readonly reason: ProblemReason;
  /**
   * Message in the API server's words, such as "Invalid value: 11: spec.level in body should be less than or equal to
   * 10".
   */
  readonly message: string;
}

/** Reasons of violations, as in the causes of the API server's `Status`. */
export type ProblemReason =
  | 'FieldValueRequired'
  | 'FieldValueTypeInvalid'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueDuplicate';

/** Appends a field name to a path. */
export function joinPath(field: string, name: string): string {
  return field === '' ? name : `${field}.${name}`;
}

/** Returns the path and message of a problem: `spec.level: Invalid value: …`. */
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

/** @param should completes the message: `be at least 1 chars long` */
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

/** The API server counts characters, although its message says bytes. */
export function tooLong(field: string, max: number): Problem {
  const message = `Too long: may not be more than ${max} ${max === 1 ? 'byte' : 'bytes'}`;
  return { field, reason: 'FieldValueTooLong', message };
}

export function tooMany(field: string, count: number, max: number): Problem {
  const message = `Too many: ${count}: must have at most ${max} ${max === 1 ? 'item' : 'items'}`;
  return { field, reason: 'FieldValueTooMany', message };
}

export function duplicate(field: string, value: unknown): Problem {
  return { field, reason: 'FieldValueDuplicate', message: `Duplicate value: ${quote(value)}` };
}

function quote(value: unknown): string {
  // The API server parses an integer beyond 64 bits as a floating-point number and prints it with an exponent.
  if (typeof value === 'number' && Math.abs(value) >= 2 ** 63) return value.toExponential();
  return JSON.stringify(value) ?? 'null';
}
