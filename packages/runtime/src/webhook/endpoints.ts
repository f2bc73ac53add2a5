import type { Logger } from '@vmwright/core';
import type { Kind } from '../kind/kind.ts';
import { keyOf } from '../kind/object.ts';
import { DeclarationError } from '../kind/schema/schema.ts';
import { RequestError } from '../server/http-response.ts';
import { type Admission, admissionPath } from './admission.ts';
import {
  type AdmissionReview,
  admissionReviewOf,
  mutationAnswer,
  validationAnswer,
} from './admission-review.ts';
import type { Conversion } from './conversion.ts';
import { convertReview } from './conversion-review.ts';
import { type Denied, deny } from './verdict.ts';

export type Webhook = Admission | Conversion;

/** A path at which reviews are answered. */
export interface Endpoint {
  readonly path: string;
  /** Maximum size of a review in bytes. */
  readonly maxBytes: number;
  /**
   * Whether only clients with an accepted certificate may ask, where the server checks certificates. Not conversions: the
   * API server sends no certificate with them, and they reveal nothing beyond what they are given.
   */
  readonly authenticated: boolean;
  /** @throws RequestError for a body that is no review for it */
  answer(body: unknown, signal: AbortSignal): Promise<object>;
}

export const CONVERT_PATH = '/convert';

/** An admission review holds two objects at most, and the API server limits a request to 3 MiB. */
const MAX_ADMISSION_BYTES = 8 * 1024 * 1024;
/** A conversion review holds all objects of a page. */
const MAX_CONVERSION_BYTES = 32 * 1024 * 1024;

/** @throws DeclarationError for a kind that is declared twice */
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
      answer: async (body) => convertReview(body, conversions, logger),
    });
  const keys = [
    ...endpoints.map(({ path }) => path),
    ...conversions.map(({ kind: { group, kind } }) => `the conversion of ${kind}.${group}`),
  ];
  const twice = keys.find((key, index) => keys.indexOf(key) < index);
  if (twice !== undefined) throw new DeclarationError(`${twice} is declared twice`);
  return endpoints;
}

const ADMISSION = { maxBytes: MAX_ADMISSION_BYTES, authenticated: true } as const;

function* admissionEndpoints({ kind, validate, mutate }: Admission, logger: Logger): Generator<Endpoint> {
  if (validate !== undefined)
    yield {
      path: admissionPath('validate', kind),
      ...ADMISSION,
      answer: async (body, signal) => {
        const review = admissionReviewOf(body);
        return validationAnswer(review, await decided(kind, review, logger, () => validate(review, signal)));
      },
    };
  if (mutate !== undefined)
    yield {
      path: admissionPath('mutate', kind),
      ...ADMISSION,
      answer: async (body, signal) => {
        const review = admissionReviewOf(body);
        return mutationAnswer(review, await decided(kind, review, logger, () => mutate(review, signal)));
      },
    };
}

/** What a handler throws is for the log: it may hold what the one who asks must not read. */
async function decided<T>(
  kind: Kind,
  { about, operation }: AdmissionReview,
  logger: Logger,
  decide: () => Promise<T>,
): Promise<T | Denied> {
  try {
    return await decide();
  } catch (error) {
    if (error instanceof RequestError) throw error;
    const object = keyOf(about);
    logger.error(
      { kind: kind.kind, object, operation, request: about.uid, error },
      'the admission of an object has failed',
    );
    return deny(
      `the admission of ${kind.kind} ${object} has failed; the log of its webhook tells why (request ${about.uid})`,
      { code: 500 },
    );
  }
}
