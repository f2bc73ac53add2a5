import type { Logger } from '@vmwright/core';
import type { Kind } from '../kind/kind.ts';
import { keyOf } from '../kind/object.ts';
import { DeclarationError } from '../kind/schema/schema.ts';
import { RequestError } from '../server/http-response.ts';
import { type Admission, admissionPath } from './admission.ts';
import {
  type AdmissionReview,
  admissionReviewOf,
  mutationResponse,
  validationResponse,
} from './admission-review.ts';
import type { Conversion } from './conversion.ts';
import { convertReview } from './conversion-review.ts';
import { type Denied, deny } from './verdict.ts';

export type Webhook = Admission | Conversion;

/** Path that accepts reviews. */
export interface Endpoint {
  readonly path: string;
  /** Maximum size of a review in bytes. */
  readonly maxBytes: number;
  /**
   * Whether a client certificate is required, if the server checks client certificates. False for conversions: the API
   * server sends no certificate with them. This is safe, because the response to a conversion reveals nothing that the
   * request does not contain.
   */
  readonly authenticated: boolean;
  /** Handles a review. @throws RequestError if the body is not a valid review */
  review(body: unknown, signal: AbortSignal): Promise<object>;
}

export const CONVERT_PATH = '/convert';

/**
 * Maximum size of an AdmissionReview in bytes. It contains at most two objects, and the API server limits a request to
 * 3 MiB.
 */
const MAX_ADMISSION_BYTES = 8 * 1024 * 1024;
/** Maximum size of a ConversionReview in bytes. It contains all objects of one page of a list. */
const MAX_CONVERSION_BYTES = 32 * 1024 * 1024;

/** Returns the endpoints of all webhooks. @throws DeclarationError for a kind that is declared twice */
export function endpointsOf(webhooks: readonly Webhook[], logger: Logger): Endpoint[] {
  const endpoints: Endpoint[] = [];
  const conversions: Conversion[] = [];
  for (const webhook of webhooks) {
    if (webhook.type === 'admission') endpoints.push(...admissionEndpoints(webhook, logger));
    else conversions.push(webhook);
  }
  if (conversions.length > 0)
    endpoints.push({
      path: CONVERT_PATH,
      maxBytes: MAX_CONVERSION_BYTES,
      authenticated: false,
      review: async (body) => convertReview(body, conversions, logger),
    });
  const keys = [
    ...endpoints.map(({ path }) => path),
    ...conversions.map(({ kind: { group, kind } }) => `the conversion of ${kind}.${group}`),
  ];
  const duplicate = keys.find((key, index) => keys.indexOf(key) < index);
  if (duplicate !== undefined) throw new DeclarationError(`${duplicate} is declared twice`);
  return endpoints;
}

const ADMISSION = { maxBytes: MAX_ADMISSION_BYTES, authenticated: true } as const;

function* admissionEndpoints({ kind, validate, mutate }: Admission, logger: Logger): Generator<Endpoint> {
  if (validate !== undefined)
    yield {
      path: admissionPath('validate', kind),
      ...ADMISSION,
      review: async (body, signal) => {
        const review = admissionReviewOf(body);
        return validationResponse(
          review,
          await decided(kind, review, logger, () => validate(review, signal)),
        );
      },
    };
  if (mutate !== undefined)
    yield {
      path: admissionPath('mutate', kind),
      ...ADMISSION,
      review: async (body, signal) => {
        const review = admissionReviewOf(body);
        return mutationResponse(review, await decided(kind, review, logger, () => mutate(review, signal)));
      },
    };
}

/**
 * Logs an error of a handler and denies the request. The denial omits the error message, which may contain confidential
 * data.
 */
async function decided<T>(
  kind: Kind,
  { info, operation }: AdmissionReview,
  logger: Logger,
  decide: () => Promise<T>,
): Promise<T | Denied> {
  try {
    return await decide();
  } catch (error) {
    if (error instanceof RequestError) throw error;
    const object = keyOf(info);
    logger.error(
      { kind: kind.kind, object, operation, request: info.uid, error },
      'Admission handler failed',
    );
    return deny(
      `the admission of ${kind.kind} ${object} failed; see the log of its webhook (request ${info.uid})`,
      { code: 500 },
    );
  }
}
