import { describe, expect, expectTypeOf, test } from 'vitest';
import { CustomResourceDefinition, crdOf } from './crd.ts';
import { type DeclaredKind, defineKind } from './define.ts';
import type { Kind, ObjectOf } from './kind.ts';
import type { ObjectMeta } from './object.ts';
import {
  anything,
  array,
  boolean,
  type EmbeddedObject,
  embedded,
  integer,
  intOrString,
  literals,
  map,
  nullable,
  number,
  object,
  optional,
  quantity,
  type Schema,
  string,
  type ValueOf,
} from './schema/index.ts';

const names = { group: 'kind-test.vmwright.dev', kind: 'Vm', plural: 'vms' };

describe('type inference', () => {
  test('the compiler infers the type of the values of a schema', () => {
    const disk = object({ name: string(), size: optional(quantity()) });
    expectTypeOf<ValueOf<typeof disk>>().toEqualTypeOf<{
      readonly name: string;
      readonly size?: number | string;
    }>();
    const all = object({
      text: string({ default: 'x' }),
      level: integer(),
      ratio: optional(number()),
      on: boolean(),
      colour: literals(['red', 'green']),
      disks: array(disk, { list: 'map', keys: ['name'] }),
      labels: map(string()),
      port: intOrString(),
      gone: nullable(string()),
      raw: anything(),
      template: embedded(),
      inner: optional(object({ deep: optional(nullable(integer())) })),
    });
    expectTypeOf<ValueOf<typeof all>>().toEqualTypeOf<{
      readonly text: string;
      readonly level: number;
      readonly ratio?: number;
      readonly on: boolean;
      readonly colour: 'red' | 'green';
      readonly disks: readonly { readonly name: string; readonly size?: number | string }[];
      readonly labels: Readonly<Record<string, string>>;
      readonly port: number | string;
      readonly gone: string | null;
      readonly raw: unknown;
      readonly template: EmbeddedObject;
      readonly inner?: { readonly deep?: number | null };
    }>();
  });

  test('the compiler infers the type of the objects of a kind, with and without a status', () => {
    const Bare = defineKind({ ...names, version: 'v1', spec: object({ a: string() }) });
    expectTypeOf<ObjectOf<typeof Bare>>().toEqualTypeOf<{
      readonly apiVersion?: string;
      readonly kind?: string;
      readonly metadata: ObjectMeta;
      readonly spec: { readonly a: string };
    }>();
    const Full = defineKind({
      ...names,
      version: 'v1',
      spec: object({ a: string() }),
      status: object({ b: optional(integer()) }),
    });
    expectTypeOf<ObjectOf<typeof Full>>().toEqualTypeOf<{
      readonly apiVersion?: string;
      readonly kind?: string;
      readonly metadata: ObjectMeta;
      readonly spec: { readonly a: string };
      readonly status?: { readonly b?: number };
    }>();
    expectTypeOf(Full).toExtend<Kind<ObjectOf<typeof Full>>>();
    expectTypeOf(Full).toExtend<DeclaredKind>();
  });

  test('the compiler infers the type of each version, and the type of the kind is that of the storage version', () => {
    const Vm = defineKind({
      ...names,
      versions: [
        { name: 'v1', storage: true, spec: object({ level: integer() }) },
        { name: 'v1beta1', spec: object({ level: string() }), status: object({}) },
      ],
    });
    expect(Vm.version).toBe('v1');
    expect(Vm.at('v1beta1').version).toBe('v1beta1');
    expectTypeOf<ObjectOf<typeof Vm>['spec']>().toEqualTypeOf<{ readonly level: number }>();
    const old = Vm.at('v1beta1');
    expectTypeOf<ObjectOf<typeof old>['spec']>().toEqualTypeOf<{ readonly level: string }>();
    // @ts-expect-error the version does not exist
    expect(() => Vm.at('v2')).toThrow('Vm has no version v2');
  });

  test('the compiler reports a misspelt field, an optional list key and a default of another type as errors', () => {
    // @ts-expect-error statsu
    defineKind({ ...names, version: 'v1', spec: object({}), statsu: object({}) });
    // @ts-expect-error colums
    defineKind({ ...names, versions: [{ name: 'v1', storage: true, spec: object({}), colums: [] }] });
    // @ts-expect-error name is optional
    array(object({ name: optional(string()) }), { list: 'map', keys: ['name'] });
    // @ts-expect-error not one of the choices
    literals(['a', 'b'], { default: 'c' });
    // @ts-expect-error a number
    expectTypeOf(string({ default: 1 })).toEqualTypeOf<Schema<string>>();
  });
});

describe('invalid declarations', () => {
  test.for<readonly [string, () => unknown, string]>([
    [
      'no storage version',
      () => defineKind({ ...names, versions: [{ name: 'v1', spec: object({}) }] }),
      'exactly one version of Vm must have storage: true',
    ],
    [
      'two storage versions',
      () =>
        defineKind({
          ...names,
          versions: [
            { name: 'v1', storage: true, spec: object({}) },
            { name: 'v2', storage: true, spec: object({}) },
          ],
        }),
      'exactly one version of Vm must have storage: true',
    ],
    [
      'a duplicate version',
      () =>
        defineKind({
          ...names,
          versions: [
            { name: 'v1', storage: true, spec: object({}) },
            { name: 'v1', spec: object({}) },
          ],
        }),
      'Vm has two versions named v1',
    ],
    [
      'a protected group without the approval annotation',
      () => defineKind({ ...names, group: 'vm.k8s.io', version: 'v1', spec: object({}) }),
      'Vm is in the protected group vm.k8s.io and needs the annotation api-approved.kubernetes.io',
    ],
    ['an invalid pattern', () => string({ pattern: '(' }), 'invalid pattern ('],
    ['a bound beyond 2^53', () => integer({ maximum: 2 ** 60 }), 'is not a valid bound'],
    ['a nullable enum', () => nullable(literals(['a', 'b'])), 'an enum of a, b cannot be nullable'],
  ])('a DeclarationError is thrown for %s', ([, declare, message]) => {
    expect(declare).toThrow(
      expect.objectContaining({ code: 'DECLARATION', message: expect.stringContaining(message) }),
    );
  });
});

test('names that a declaration omits are derived from the kind', () => {
  const crd = crdOf(defineKind({ ...names, version: 'v1', spec: object({}) }));
  expectTypeOf(crd).toEqualTypeOf<ObjectOf<typeof CustomResourceDefinition>>();
  expect(CustomResourceDefinition.plural).toBe('customresourcedefinitions');
  expect(crd.metadata).toEqual({ name: 'vms.kind-test.vmwright.dev' });
  expect(crd.spec.names).toEqual({ kind: 'Vm', listKind: 'VmList', plural: 'vms', singular: 'vm' });
  expect(crd.spec.scope).toBe('Namespaced');
  expect(crd.spec.versions.map(({ name, served, storage }) => ({ name, served, storage }))).toEqual([
    { name: 'v1', served: true, storage: true },
  ]);
  expect(crd.spec.versions[0]?.subresources).toBeUndefined();
});
