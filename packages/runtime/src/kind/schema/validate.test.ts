import { condition } from '@vmwright/testbed';
import { test } from '@vmwright/testbed/vitest';
import { describe, expect, expectTypeOf } from 'vitest';
import { connect } from '../../../test/connect.ts';
import { CustomResourceDefinition, crdOf, crdYaml } from '../crd.ts';
import { defineKind } from '../define.ts';
import { array, integer, literals, map, nullable, object, optional, quantity, string } from './index.ts';
import { sentenceOf } from './problem.ts';
import { admit, validate } from './validate.ts';

const spec = object({
  name: string({ minLength: 1 }),
  power: literals(['High', 'Low'], { default: 'Low' }),
  note: optional(nullable(string())),
  disks: array(object({ name: string(), size: quantity({ default: '1Gi' }) }), {
    default: [{ name: 'root' }],
  }),
  labels: optional(map(string())),
});

describe('admit', () => {
  test('admit returns the value as the API server would store it, with an inferred type', () => {
    const admission = admit(spec, {
      name: 'a',
      unknown: 1,
      note: null,
      labels: null,
      disks: [{ name: 'x', y: 1 }],
    });
    if (!admission.ok) expect.unreachable();
    else {
      expectTypeOf(admission.value.power).toEqualTypeOf<'High' | 'Low'>();
      expect(admission.value).toEqual({
        name: 'a',
        power: 'Low',
        note: null,
        disks: [{ name: 'x', size: '1Gi' }],
      });
    }
  });

  test('admit modifies neither the value nor the defaults of the schema', () => {
    const value = { name: 'a', labels: { a: null, b: 'c' } };
    const [one, other] = [admit(spec, value), admit(spec, value)];
    expect(value).toEqual({ name: 'a', labels: { a: null, b: 'c' } });
    expect(one).toEqual(other);
    if (one.ok && other.ok) expect(one.value.disks).not.toBe(other.value.disks);
  });

  test('admit returns every problem with its path', () => {
    const admission = admit(spec, { power: 'Full', disks: [{ size: true }] }, 'spec');
    expect(admission.ok ? [] : admission.problems.map(sentenceOf).toSorted()).toEqual([
      'spec.disks[0].name: Required value',
      'spec.disks[0].size: Invalid value: "boolean": spec.disks[0].size in body must be of type integer,string: "boolean"',
      'spec.name: Required value',
      'spec.power: Unsupported value: "Full": supported values: "High", "Low"',
    ]);
    expect(validate(spec, { name: '' }).map(({ field, reason }) => ({ field, reason }))).toEqual([
      { field: 'name', reason: 'FieldValueInvalid' },
    ]);
  });

  test('admit treats __proto__ and constructor as ordinary fields', () => {
    const labels: unknown = JSON.parse('{ "__proto__": "x", "constructor": "y" }');
    const admission = admit(spec, { name: 'a', labels, constructor: { prototype: 1 } });
    expect(admission).toMatchObject({ ok: true });
    if (!admission.ok) return;
    expect(JSON.stringify(admission.value.labels)).toBe(JSON.stringify(labels));
    expect(Object.hasOwn(admission.value, 'constructor')).toBe(false);
  });
});

test('the validator rejects an array for a formatted string and a fraction for an integer, unlike the API server', async ({
  cluster,
  namespace,
}) => {
  await using client = await connect(cluster.kubeconfig);
  const Lax = defineKind({
    group: 'lax.kind-test.vmwright.dev',
    version: 'v1',
    kind: 'Lax',
    plural: 'laxes',
    spec: object({ when: string({ format: 'date' }), count: integer() }),
  });
  await cluster.apply(await crdYaml(Lax));
  await using _ = {
    [Symbol.asyncDispose]: () => client.delete(CustomResourceDefinition, crdOf(Lax).metadata),
  };
  await cluster.waitFor(
    `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/laxes.${Lax.group}`,
    (crd) => condition(crd, 'Established') === 'True',
  );
  const odd = { when: ['2024-02-29'], count: 1234567890.5 };
  const manifest = { apiVersion: `${Lax.group}/v1`, kind: 'Lax', metadata: { name: 'odd' }, spec: odd };
  const path = `/apis/${Lax.group}/v1/namespaces/${namespace}/laxes`;
  expect(await cluster.api.create(path, manifest)).toMatchObject({ spec: odd });
  expect(validate(Lax.schema, { spec: odd }).map(({ field }) => field)).toEqual(['spec.when', 'spec.count']);
});
