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
  const answer = convertReview(body, [conversion(Rope, rules)], logger);
  return { answer: JSON.parse(JSON.stringify(answer)), lines };
}

describe('objects of a review', () => {
  test('are converted one by one, from any version to any other, by way of the stored one', () => {
    const { answer } = convert('ropes.dev/v1beta1', [
      rope('v1', { meters: 6 }),
      rope('v1alpha1', { feet: '3' }),
      rope('v1beta1', { length: '7m' }),
    ]);
    expect(answer.response.uid).toBe('u1');
    expect(answer.response.result).toEqual({ status: 'Success' });
    expect(answer.response.convertedObjects).toMatchObject([
      { apiVersion: 'ropes.dev/v1beta1', kind: 'Rope', spec: { length: '6m' } },
      { apiVersion: 'ropes.dev/v1beta1', kind: 'Rope', spec: { length: '9m' } },
      { apiVersion: 'ropes.dev/v1beta1', kind: 'Rope', spec: { length: '7m' } },
    ]);
  });

  test('keep their metadata but for labels and annotations that are given', () => {
    const { answer } = convert('ropes.dev/v1beta1', [rope('v1', { meters: 6 })]);
    const [{ metadata }] = answer.response.convertedObjects;
    expect(metadata).toEqual({
      name: 'r',
      namespace: 'n',
      uid: 'u',
      labels: { old: 'yes' },
      finalizers: ['f'],
    });
    const back = convert('ropes.dev/v1alpha1', [rope('v1', { meters: 6 })]);
    expect(back.answer.response.convertedObjects[0].metadata.labels).toEqual({ a: 'b' });
  });

  test.for([
    [
      'that a rule refuses',
      rope('v1beta1', { length: '6 yards' }, 'bad'),
      'a length ends in m, unlike 6 yards',
    ],
    [
      'that break a rule',
      rope('v1beta1', {}, 'bad'),
      'Rope n/bad cannot be converted from ropes.dev/v1beta1 to ropes.dev/v1: ',
    ],
    ['of an unknown version', rope('v9', {}, 'bad'), 'Rope has no version ropes.dev/v9 to convert'],
    [
      'of an unknown kind',
      { ...rope('v1', {}), kind: 'Chain' },
      'objects of kind Chain are not converted here',
    ],
    ['that are none', null, 'objects of kind undefined are not converted here'],
  ] as const)('%s give a failure with a sentence and none of the others', ([, object, sentence]) => {
    const { answer, lines } = convert('ropes.dev/v1', [rope('v1beta1', { length: '6m' }), object]);
    expect(answer.response).toMatchObject({ uid: 'u1', convertedObjects: [], result: { status: 'Failure' } });
    expect(answer.response.result.message).toContain(sentence);
    expect(lines).toMatchObject([{ level: 'error', to: 'ropes.dev/v1' }]);
  });
});

test('a review without what it is about is no review', () => {
  expect(() => convert(undefined, [])).toThrow('has no request.desiredAPIVersion');
  expect(() => convert('ropes.dev/v1', 'x')).toThrow('or request.objects');
});

test('rules must be there for every version', () => {
  // @ts-expect-error: the compiler says so, too
  expect(() => conversion(Rope, { v1beta1: rules.v1beta1 })).toThrow(
    'the conversion of Rope has no rules for v1alpha1',
  );
});
