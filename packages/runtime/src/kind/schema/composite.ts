import type { ObjectMeta } from '../object.ts';
import { type Common, node, type Optional, type Schema, type SchemaNode, type ValueOf } from './schema.ts';

export type Fields = Readonly<Record<string, Schema | Optional>>;

/** The type of an object with these fields. */
export type ObjectWith<F extends Fields> = Flat<
  { readonly [K in keyof F as F[K] extends Optional ? never : K]: FieldOf<F[K]> } & {
    readonly [K in keyof F as F[K] extends Optional ? K : never]?: FieldOf<F[K]>;
  }
>;

type FieldOf<F> = F extends Optional<infer T> ? T : F extends Schema ? ValueOf<F> : never;

/** One object type instead of an intersection, for the messages of the compiler. */
export type Flat<T> = { readonly [K in keyof T]: T[K] };

/** A default: what it leaves out, the defaults of its own fields fill in. */
type DefaultValue<T> = T extends readonly (infer I)[]
  ? readonly DefaultValue<I>[]
  : T extends object
    ? { readonly [K in keyof T]?: DefaultValue<T[K]> }
    : T;

export interface ObjectOptions<T> extends Common<DefaultValue<T>> {
  /** Has one owner in server-side apply, instead of one a field. @default false */
  readonly atomic?: boolean;
  /** Fields that are not named here are kept, not dropped. @default false */
  readonly preserveUnknown?: boolean;
}

/**
 * An object with these fields. All must be there but those in `optional(…)` and those with a default, which the API
 * server fills in.
 */
export function object<const F extends Fields>(
  fields: F,
  options: ObjectOptions<ObjectWith<F>> = {},
): Schema<ObjectWith<F>> {
  const properties: Record<string, Schema> = {};
  const required: string[] = [];
  for (const [name, field] of Object.entries(fields)) {
    const schema = isOptional(field) ? field.optional : field;
    properties[name] = schema;
    if (!isOptional(field) && schema.default === undefined) required.push(name);
  }
  const own: SchemaNode = {
    type: 'object',
    ...(required.length > 0 && { required }), // an empty list is no valid schema
    properties,
    ...(options.atomic && { 'x-kubernetes-map-type': 'atomic' }),
    ...(options.preserveUnknown && { 'x-kubernetes-preserve-unknown-fields': true }),
  };
  return node(own, options);
}

function isOptional(field: Schema | Optional): field is Optional {
  return 'optional' in field;
}

export interface MapOptions<T> extends Common<Readonly<Record<string, DefaultValue<T>>>> {
  readonly minProperties?: number;
  readonly maxProperties?: number;
  /** Has one owner in server-side apply, instead of one a key. @default false */
  readonly atomic?: boolean;
}

/** From any string to such values. */
export function map<T>(
  values: Schema<T>,
  options: MapOptions<NoInfer<T>> = {},
): Schema<Readonly<Record<string, T>>> {
  const { description, default: value, rules, atomic, ...constraints } = options;
  const own: SchemaNode = {
    type: 'object',
    additionalProperties: values,
    ...constraints,
    ...(atomic && { 'x-kubernetes-map-type': 'atomic' }),
  };
  return node(own, options);
}

export type ArrayOptions<T> = Common<readonly DefaultValue<T>[]> & {
  readonly minItems?: number;
  readonly maxItems?: number;
} & (
    | {
        /** `set`: no item twice, each with an owner of its own in server-side apply. @default 'atomic' */
        readonly list?: 'atomic' | 'set';
        readonly keys?: never;
      }
    | {
        /** Items are known, and merged by server-side apply, by the values of these fields. */
        readonly list: 'map';
        readonly keys: readonly [RequiredKey<T>, ...RequiredKey<T>[]];
      }
  );

/** Fields that are always there: the API server wants no others for the keys of a list. */
type RequiredKey<T> = {
  [K in keyof T & string]-?: Partial<Pick<T, K>> extends Pick<T, K> ? never : K;
}[keyof T & string];

export function array<T>(items: Schema<T>, options: ArrayOptions<NoInfer<T>> = {}): Schema<readonly T[]> {
  const { description, default: value, rules, list, keys, ...constraints } = options;
  const own: SchemaNode = {
    type: 'array',
    items,
    ...constraints,
    ...(list !== undefined && { 'x-kubernetes-list-type': list }),
    ...(keys !== undefined && { 'x-kubernetes-list-map-keys': keys }),
  };
  return node(own, options);
}

/** Whatever JSON there is, kept as it came. */
export function anything(options: Common<unknown> = {}): Schema<unknown> {
  return node({ 'x-kubernetes-preserve-unknown-fields': true }, options);
}

/** A Kubernetes object within another, such as a template. */
export interface EmbeddedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata?: Partial<ObjectMeta>;
  readonly [field: string]: unknown;
}

export function embedded(options: Common<EmbeddedObject> = {}): Schema<EmbeddedObject> {
  const own: SchemaNode = {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    'x-kubernetes-preserve-unknown-fields': true,
  };
  return node(own, options);
}
