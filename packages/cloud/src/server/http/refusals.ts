import { systemCode } from '@vmwright/core';
import type { FastifyError, FastifyRequest } from 'fastify';
import { isRecord } from '../../api/record.ts';
import { Problem, type ProblemCode } from './problems.ts';

/** Seconds that a client is asked to wait. */
const RETRY_AFTER = { 'retry-after': '5' };

/** What fastify itself refuses, and how we say it. */
const BY_CODE: Readonly<Record<string, readonly [ProblemCode, string]>> = {
  FST_ERR_BAD_URL: [
    'MALFORMED_REQUEST',
    'The path cannot be decoded. Percent-encode what is no plain character.',
  ],
  FST_ERR_MAX_PARAM_LENGTH: ['PATH_TOO_LONG', 'A part of the path is too long: no id and no name is.'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['BODY_TOO_LARGE', 'The body is too large: no server needs more than 64 KiB.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'UNSUPPORTED_MEDIA_TYPE',
    'The body must be JSON, sent as application/json.',
  ],
  FST_ERR_CTP_EMPTY_TYPE: ['UNSUPPORTED_MEDIA_TYPE', 'The body must be JSON, sent as application/json.'],
  FST_ERR_CTP_EMPTY_JSON_BODY: ['MALFORMED_REQUEST', 'There is no body, though one is announced as JSON.'],
  FST_ERR_CTP_INVALID_JSON_BODY: ['MALFORMED_REQUEST', 'The body is no JSON.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [
    'MALFORMED_REQUEST',
    'The body has not the length that it was announced with.',
  ],
};

/** The problem in whatever was thrown while a request was answered; undefined for a mistake of our own. */
export function problemIn(error: unknown, request: FastifyRequest): Problem | undefined {
  if (error instanceof Problem) return error;
  if (!(error instanceof Error)) return undefined;
  const known = BY_CODE[systemCode(error) ?? ''];
  if (known !== undefined) return new Problem(...known);
  if (isFastifyError(error) && error.validation !== undefined) return invalid(error, request);
  if (systemCode(error) === 'ERR_SQLITE_ERROR')
    return new Problem('UNAVAILABLE', 'The cloud cannot get at its data right now. Try again later.', {
      headers: RETRY_AFTER,
    });
  // Parsers of bodies say 400 of what they cannot read; it has no code of fastify's.
  return isFastifyError(error) && error.statusCode === 400
    ? new Problem('MALFORMED_REQUEST', 'The body is no JSON that can be taken.')
    : undefined;
}

function isFastifyError(error: Error): error is FastifyError {
  return 'statusCode' in error;
}

const PLACES: Readonly<Record<string, string>> = {
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
    return new Problem('INVALID_NAME', notAName(request, validationContext));
  const place = PLACES[validationContext] ?? 'The request';
  const where = instancePath === '' ? place : `${place}: ${instancePath.slice(1).replaceAll('/', '.')}`;
  const what =
    keyword === 'additionalProperties'
      ? `has "${params.additionalProperty}", which means nothing here`
      : message;
  return new Problem('INVALID_REQUEST', `${where} ${what}. GET /openapi.json says what is expected.`);
}

const A_NAME = 'a name has 1 to 63 letters, digits, hyphens, underscores and dots';
const LONGEST_SHOWN = 100;

function notAName({ body, params, query }: FastifyRequest, context: string): string {
  const place = { body, params, querystring: query }[context];
  const name = isRecord(place) ? String(place.name) : '';
  const shown = name.length > LONGEST_SHOWN ? `${name.slice(0, LONGEST_SHOWN)}…` : name;
  return `${JSON.stringify(shown)} is no name for a server: ${A_NAME}.`;
}
