import { isJsonObject, type JsonObject } from '../kind/schema/json.ts';
import { RequestError } from '../server/http-response.ts';
import type { Denied, Mutation, Operation, RequestInfo, User, Verdict } from './verdict.ts';

const ADMISSION_API = 'admission.k8s.io/v1';

/** Request of an AdmissionReview. */
export interface AdmissionReview {
  readonly operation: Operation;
  readonly info: Omit<RequestInfo, 'signal'>;
  /** Object of the request. Not validated yet: it may be of any kind. */
  readonly object: unknown;
  readonly oldObject: unknown;
  /** Propagation policy of a deletion. */
  readonly propagation: string | undefined;
}

/** Parses an AdmissionReview. @throws RequestError if it is invalid */
export function admissionReviewOf(body: unknown): AdmissionReview {
  const { uid, request } = requestIn(body, ADMISSION_API, 'AdmissionReview');
  const { operation, object, oldObject, dryRun } = request;
  if (operation !== 'CREATE' && operation !== 'UPDATE' && operation !== 'DELETE')
    throw new RequestError(400, `request.operation must be CREATE, UPDATE or DELETE, not ${operation}\n`);
  return {
    operation,
    object,
    oldObject,
    propagation: propagationIn(request.options),
    info: {
      uid,
      name: textOf(request.name),
      namespace: textOf(request.namespace),
      subresource: textOf(request.subResource),
      user: userIn(request.userInfo),
      dryRun: dryRun === true,
    },
  };
}

/** Returns the request of an AdmissionReview or ConversionReview. @throws RequestError if it is invalid */
export function requestIn(body: unknown, api: string, kind: string): { uid: string; request: JsonObject } {
  if (!isJsonObject(body) || body.apiVersion !== api || body.kind !== kind)
    throw new RequestError(400, `the body must have kind ${kind} and apiVersion ${api}\n`);
  const { request } = body;
  if (!isJsonObject(request)) throw new RequestError(400, `the ${kind} has no request\n`);
  if (typeof request.uid !== 'string' || request.uid === '')
    throw new RequestError(400, `the ${kind} has no request.uid\n`);
  return { uid: request.uid, request };
}

export function validationResponse({ info }: AdmissionReview, verdict: Verdict): object {
  return reviewWith(info.uid, verdict, {});
}

export function mutationResponse({ info }: AdmissionReview, mutation: Mutation): object {
  const patch = mutation.allowed ? mutation.patch : [];
  // The API server rejects an empty patch with a patchType, and a patchType without a patch.
  const changes = patch.length > 0 && {
    patchType: 'JSONPatch',
    patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
  };
  return reviewWith(info.uid, mutation, { ...changes });
}

function reviewWith(uid: string, verdict: Verdict, more: object): object {
  const { allowed, warnings = [], audit } = verdict;
  return {
    apiVersion: ADMISSION_API,
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed,
      ...(!allowed && { status: statusOf(verdict) }),
      ...(warnings.length > 0 && { warnings }),
      ...(audit && { auditAnnotations: audit }),
      ...more,
    },
  };
}

/** Kubernetes status reasons, by which clients distinguish errors. */
const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
};

function statusOf({ message, code = 403, causes = [] }: Denied): object {
  const reason = REASONS[code];
  return {
    status: 'Failure',
    message,
    code,
    ...(reason !== undefined && { reason }),
    ...(causes.length > 0 && { details: { causes } }),
  };
}

function userIn(value: unknown): User {
  const { username, uid, groups, extra } = isJsonObject(value) ? value : {};
  return {
    username: textOf(username),
    ...(typeof uid === 'string' && { uid }),
    groups: textsIn(groups),
    extra: isJsonObject(extra)
      ? Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, textsIn(values)]))
      : {},
  };
}

function propagationIn(options: unknown): string | undefined {
  const { propagationPolicy } = isJsonObject(options) ? options : {};
  return typeof propagationPolicy === 'string' ? propagationPolicy : undefined;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
