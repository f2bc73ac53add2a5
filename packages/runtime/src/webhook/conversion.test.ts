import { collectingLogger } from '@vmwright/core';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { defineKind } from '../kind/define.ts';
import { integer, object, string } from '../kind/schema/index.ts';
import { type ConversionRules, conversion } from './conversion.ts';
import { convertReview } from './conversion-review.ts';

const versions = [
  { name: 'v1', storage: true, spec: object({ meters: integer() }) },
  { name: 'v1beta1', spec: object({ length: string() }) },
  { name: 'v1alpha1', spec: object({ feet: string() }) },
] as const;
const Rope = defineKind({ group: 'ropes.dev', kind: 'Rope', plural: 'ropes', versions });

const rules: ConversionRules<typeof versions> = {
  v1beta1: {
    toStored: ({ spec }) => {
      expectTypeOf(spec.length).toBeString();
      if (!spec.length.endsWith('m')) throw new Error(`a length ends in m, unlike ${spec.length}`);
      return { spec: { meters: Number.parseInt(spec.length, 10) } };
    },
    fromStored: ({ spec }) => ({ spec: { length: `${spec.meters}m` }, metadata: { labels: { old: 'yes' } } }),
  },
  v1alpha1: {
    toStored: ({ spec }) => ({ spec: { meters: Number(spec.feet) * 3 } }),
    fromStored: ({ spec }) => ({ spec: { feet: String(spec.meters / 3) } }),
  },
};

function rope(version: string, spec: object, name = 'r') {
  const metadata = { name, namespace: 'n', uid: 'u', labels: { a: 'b' }, finalizers: ['f'] };
  return { apiVersion: `ropes.dev/${version}`, kind: 'Rope', metadata, spec };
}

function convert(desiredAPIVersion: unknown, objects: unknown) {
  const { logger, lines } = collectingLogger();
  const body = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'ConversionReview',
    request: { uid: 'u1', desiredAPIVersion, objects },
  };
  const review = convertReview(body, [conversion(Rope, rules)], logger);
  return { review: JSON.parse(JSON.stringify(review)), lines };
}

describe('objects of a ConversionReview', () => {
  test('objects of a ConversionReview are converted between any two versions through the storage version', () => {
    const { review } = convert('ropes.dev/v1beta1', [
      rope('v1', { meters: 6 }),
      rope('v1alpha1', { feet: '3' }),
      rope('v1beta1', { length: '7m' }),
    ]);
    expect(review.response.uid).toBe('u1');
    expect(review.response.result).toEqual({ status: 'Success' });
    expect(review.response.convertedObjects).toMatchObject([
      { apiVersion: 'ropes.dev/v1beta1', kind: 'Rope', spec: { length: '6m' } },
      { apiVersion: 'ropes.dev/v1beta1', kind: 'Rope', spec: { length: '9m' } },
      { apiVersion: 'ropes.dev/v1beta1', kind: 'Rope', spec: { length: '7m' } },
    ]);
  });

  test('objects of a ConversionReview keep all metadata except labels and annotations that the conversion sets', () => {
    const { review } = convert('ropes.dev/v1beta1', [rope('v1', { meters: 6 })]);
    const [{ metadata }] = review.response.convertedObjects;
    expect(metadata).toEqual({
      name: 'r',
      namespace: 'n',
      uid: 'u',
      labels: { old: 'yes' },
      finalizers: ['f'],
    });
    const back = convert('ropes.dev/v1alpha1', [rope('v1', { meters: 6 })]);
    expect(back.review.response.convertedObjects[0].metadata.labels).toEqual({ a: 'b' });
  });

  test.for([
    [
      'that a conversion function rejects',
      rope('v1beta1', { length: '6 yards' }, 'bad'),
      'a length ends in m, unlike 6 yards',
    ],
    [
      'that make a conversion function throw',
      rope('v1beta1', {}, 'bad'),
      'Rope n/bad cannot be converted from ropes.dev/v1beta1 to ropes.dev/v1: ',
    ],
    ['of an unknown version', rope('v9', {}, 'bad'), 'Rope has no version ropes.dev/v9'],
    [
      'of an unknown kind',
      { ...rope('v1', {}), kind: 'Chain' },
      'no conversion is registered for kind Chain',
    ],
    ['that are null', null, 'no conversion is registered for kind undefined'],
  ] as const)('objects %s make the whole review fail with a message', ([, object, message]) => {
    const { review, lines } = convert('ropes.dev/v1', [rope('v1beta1', { length: '6m' }), object]);
    expect(review.response).toMatchObject({ uid: 'u1', convertedObjects: [], result: { status: 'Failure' } });
    expect(review.response.result.message).toContain(message);
    expect(lines).toMatchObject([{ level: 'error', to: 'ropes.dev/v1' }]);
  });
});

test('a review without desiredAPIVersion or objects is rejected', () => {
  expect(() => convert(undefined, [])).toThrow('has no request.desiredAPIVersion');
  expect(() => convert('ropes.dev/v1', 'x')).toThrow('or request.objects');
});

test('conversion requires rules for every version except the stored one', () => {
  // @ts-expect-error: also a compile-time error
  expect(() => conversion(Rope, { v1beta1: rules.v1beta1 })).toThrow(
    'the conversion of Rope has no rules for v1alpha1',
  );
});
