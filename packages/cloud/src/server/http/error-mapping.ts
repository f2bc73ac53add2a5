import { systemCode } from '@vmwright/core';
import type { FastifyError, FastifyRequest } from 'fastify';
import { isRecord } from '../../api/record.ts';
import { Problem, type ProblemCode } from './problems.ts';

/** Header that asks clients to wait 5 s before a retry while the database fails. */
const RETRY_AFTER = { 'retry-after': '5' };

/** Problems for the errors that fastify itself raises. */
const BY_CODE: Readonly<Record<string, readonly [ProblemCode, string]>> = {
  FST_ERR_BAD_URL: [
    'MALFORMED_REQUEST',
    'The path cannot be decoded. Percent-encode its special characters.',
  ],
  FST_ERR_MAX_PARAM_LENGTH: ['PATH_TOO_LONG', 'A path segment is longer than any server id or name.'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['BODY_TOO_LARGE', 'The body is too large; the maximum is 64 KiB.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'UNSUPPORTED_MEDIA_TYPE',
    'The body must be JSON, sent as application/json.',
  ],
  FST_ERR_CTP_EMPTY_TYPE: ['UNSUPPORTED_MEDIA_TYPE', 'The body must be JSON, sent as application/json.'],
  FST_ERR_CTP_EMPTY_JSON_BODY: [
    'MALFORMED_REQUEST',
    'The body is empty, but the Content-Type is application/json.',
  ],
  FST_ERR_CTP_INVALID_JSON_BODY: ['MALFORMED_REQUEST', 'The body is not valid JSON.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [
    'MALFORMED_REQUEST',
    'The length of the body differs from the Content-Length header.',
  ],
};

/** Returns the problem for an error that was thrown while a request was handled; undefined if the error is a bug. */
export function toProblem(error: unknown, request: FastifyRequest): Problem | undefined {
  if (error instanceof Problem) return error;
  if (!(error instanceof Error)) return undefined;
  const known = BY_CODE[systemCode(error) ?? ''];
  if (known !== undefined) return new Problem(...known);
  if (isFastifyError(error) && error.validation !== undefined) return invalid(error, request);
  if (systemCode(error) === 'ERR_SQLITE_ERROR')
    return new Problem('UNAVAILABLE', 'The cloud cannot access its database. Try again later.', {
      headers: RETRY_AFTER,
    });
  // Body parsers throw errors with status 400 and without a fastify code.
  return isFastifyError(error) && error.statusCode === 400
    ? new Problem('MALFORMED_REQUEST', 'The body is not acceptable JSON.')
    : undefined;
}

function isFastifyError(error: Error): error is FastifyError {
  return 'statusCode' in error;
}

const LOCATIONS: Readonly<Record<string, string>> = {
  body: 'The body',
  params: 'The path',
  querystring: 'The query',
  headers: 'The headers',
};

function invalid(
  { validation = [], validationContext = 'body' }: FastifyError,
  request: FastifyRequest,
): Problem {
  const [{ instancePath = '', keyword = '', message = '', params = {} } = {}] = validation;
  if (instancePath === '/name' && ['pattern', 'minLength', 'maxLength'].includes(keyword))
    return new Problem('INVALID_NAME', invalidName(request, validationContext));
  const location = LOCATIONS[validationContext] ?? 'The request';
  const where = instancePath === '' ? location : `${location}: ${instancePath.slice(1).replaceAll('/', '.')}`;
  const what =
    keyword === 'additionalProperties' ? `has the unknown property "${params.additionalProperty}"` : message;
  return new Problem('INVALID_REQUEST', `${where} ${what}. See GET /openapi.json for the schema.`);
}

const NAME_RULE = 'a name has 1 to 63 characters, each a letter, digit, hyphen, underscore or dot';
/** Maximum number of characters that a message quotes from an invalid name. */
const MAX_SHOWN_CHARS = 100;

function invalidName({ body, params, query }: FastifyRequest, context: string): string {
  const location = { body, params, querystring: query }[context];
  const name = isRecord(location) ? String(location.name) : '';
  const shown = name.length > MAX_SHOWN_CHARS ? `${name.slice(0, MAX_SHOWN_CHARS)}…` : name;
  return `${JSON.stringify(shown)} is not a valid server name: ${NAME_RULE}.`;
}
