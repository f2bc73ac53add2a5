import type { Kind } from '@vmwright/runtime';
import type { BufferedResponse } from '../world/server.ts';
import type { Json } from './json.ts';
import type { OwnerConflict } from './ownership/managers.ts';

/** Validation error of one field. Like `schema.Problem`, but with any reason that the API server uses. */
export interface FieldError {
  readonly field: string;
  readonly reason: string;
  readonly message: string;
}

interface Details {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly Json[];
  readonly retryAfterSeconds?: number;
}

/** Error response of the API server, sent as a `Status` object. */
export class ApiError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly details: Details | undefined;

  constructor(code: number, reason: string, message: string, details?: Details) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  get status(): Json {
    const { code, reason, message, details } = this;
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      ...(reason !== '' && { reason }),
      ...(details && { details }),
      code,
    };
  }

  get response(): BufferedResponse {
    const seconds = this.details?.retryAfterSeconds;
    return {
      status: this.code,
      ...(seconds !== undefined && { headers: { 'retry-after': String(seconds) } }),
      body: JSON.stringify(this.status),
    };
  }
}

/** Returns the name under which error responses with this status code are counted. */
export function errorCount(code: number): string {
  return `the API server returned ${code}`;
}

/** Thrown for a request that the model does not support. */
export class UnmodelledError extends ApiError {
  constructor(request: string) {
    super(501, 'NotImplemented', `the API server model does not support ${request}`);
    this.name = 'UnmodelledError';
  }
}

/** Returns the qualified resource name, such as `things.example.org`. */
function resourceName({ plural, group }: Kind): string {
  return group === '' ? plural : `${plural}.${group}`;
}

function kindName({ kind, group }: Kind): string {
  return group === '' ? kind : `${kind}.${group}`;
}

/** Returns the details of a `Status`; its `kind` holds the plural name, as in the real API server. */
function detailsOf(kind: Kind, name: string): Details {
  return { name, ...(kind.group !== '' && { group: kind.group }), kind: kind.plural };
}

export function notFound(kind: Kind, name: string): ApiError {
  return new ApiError(404, 'NotFound', `${resourceName(kind)} "${name}" not found`, detailsOf(kind, name));
}

export function alreadyExists(kind: Kind, name: string, beingDeleted: boolean): ApiError {
  const message = `${resourceName(kind)} "${name}" already exists`;
  const full = beingDeleted ? `object is being deleted: ${message}` : message;
  return new ApiError(409, 'AlreadyExists', full, detailsOf(kind, name));
}

export function conflict(kind: Kind, name: string, why: string): ApiError {
  const message = `Operation cannot be fulfilled on ${resourceName(kind)} "${name}": ${why}`;
  return new ApiError(409, 'Conflict', message, detailsOf(kind, name));
}

/** Conflict on a precondition of a delete. The API server names the kind here instead of the resource. */
export function preconditionFailed(kind: Kind, name: string, why: string): ApiError {
  const message = `Operation cannot be fulfilled on ${kindName(kind)} "${name}": ${why}`;
  return new ApiError(409, 'Conflict', message, detailsOf(kind, name));
}

export const OBJECT_MODIFIED =
  'the object has been modified; please apply your changes to the latest version and try again';

export function invalid(kind: Kind, name: string, problems: readonly FieldError[]): ApiError {
  const texts = [...new Set(problems.map(({ field, message }) => `${field}: ${message}`))];
  const list = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
  return new ApiError(422, 'Invalid', `${kindName(kind)} "${name}" is invalid: ${list}`, {
    ...detailsOf(kind, name),
    kind: kind.kind,
    causes: problems.map(({ field, reason, message }) => ({ reason, message, field })),
  });
}

export function badRequest(message: string): ApiError {
  return new ApiError(400, 'BadRequest', message);
}

export function expired(message: string): ApiError {
  return new ApiError(410, 'Expired', message);
}

/** Conflict of an apply with fields that other managers own. */
export function applyConflict(conflicts: readonly OwnerConflict[], apiVersion: string): ApiError {
  const by = ({ manager: { name, subresource, operation } }: OwnerConflict) =>
    JSON.stringify(name) +
    (subresource === '' ? '' : ` with subresource "${subresource}"`) +
    (operation === 'Update' ? ` using ${apiVersion}` : '');
  const causes = conflicts.map((each) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${by(each)}`,
    field: each.path,
  }));
  return new ApiError(409, 'Conflict', sentenceOf(conflicts, by), { causes });
}

function sentenceOf(conflicts: readonly OwnerConflict[], by: (conflict: OwnerConflict) => string): string {
  const [first] = conflicts;
  if (first !== undefined && conflicts.length === 1)
    return `Apply failed with 1 conflict: conflict with ${by(first)}: ${first.path}`;
  const lines: string[] = [];
  for (const [manager, theirs] of Map.groupBy(conflicts, by))
    lines.push(`conflicts with ${manager}:`, ...theirs.map(({ path }) => `- ${path}`));
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`;
}
