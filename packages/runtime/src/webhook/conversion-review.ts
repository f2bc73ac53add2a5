import { type Logger, messageOf } from '@vmwright/core';
import { isJsonObject } from '../kind/schema/json.ts';
import { RequestError } from '../server/http-response.ts';
import { requestIn } from './admission-review.ts';
import type { Conversion } from './conversion.ts';

const CONVERSION_API = 'apiextensions.k8s.io/v1';

/**
 * Converts the objects of a ConversionReview. If one object cannot be converted, the response names this object and
 * contains no converted objects, as the API server requires.
 * @throws RequestError if the review is invalid
 */
export function convertReview(body: unknown, conversions: readonly Conversion[], logger: Logger): object {
  const { uid, request } = requestIn(body, CONVERSION_API, 'ConversionReview');
  const { desiredAPIVersion, objects } = request;
  if (typeof desiredAPIVersion !== 'string' || !Array.isArray(objects))
    throw new RequestError(400, 'the ConversionReview has no request.desiredAPIVersion or request.objects\n');
  const reviewWith = (response: object) => ({
    apiVersion: CONVERSION_API,
    kind: 'ConversionReview',
    response: { uid, ...response },
  });
  const convertedObjects: unknown[] = [];
  for (const object of objects) {
    try {
      convertedObjects.push(conversionOf(object, conversions).convert(object, desiredAPIVersion));
    } catch (error) {
      const { name, from } = identityOf(object);
      logger.error({ object: name, from, to: desiredAPIVersion, error }, 'Conversion failed');
      const reason = error instanceof RequestError ? error.message.trimEnd() : messageOf(error);
      const message = `${name} cannot be converted from ${from} to ${desiredAPIVersion}: ${reason}`;
      return reviewWith({ convertedObjects: [], result: { status: 'Failure', message } });
    }
  }
  return reviewWith({ convertedObjects, result: { status: 'Success' } });
}

function conversionOf(object: unknown, conversions: readonly Conversion[]): Conversion {
  const { apiVersion, kind } = isJsonObject(object) ? object : {};
  const [group] = String(apiVersion).split('/');
  const found = conversions.find((each) => each.kind.kind === kind && each.kind.group === group);
  if (found === undefined) throw new RequestError(400, `no conversion is registered for kind ${kind}\n`);
  return found;
}

function identityOf(object: unknown): { name: string; from: string } {
  const { apiVersion, kind, metadata } = isJsonObject(object) ? object : {};
  const { namespace, name } = isJsonObject(metadata) ? metadata : {};
  const path = [namespace, name].filter((part) => typeof part === 'string').join('/');
  return { name: `${kind} ${path}`, from: String(apiVersion) };
}
