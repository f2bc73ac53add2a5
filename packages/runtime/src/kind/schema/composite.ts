import type { ObjectMeta } from '../object.ts';
import { type Common, node, type Optional, type Schema, type SchemaNode, type ValueOf } from './schema.ts';

/** Fields of an object schema. */
export type Fields = Readonly<Record<string, Schema | Optional>>;

/** Type of an object with these fields. */
export type ObjectWith<F extends Fields> = Flat<
  { readonly [K in keyof F as F[K] extends Optional ? never : K]: FieldOf<F[K]> } & {
    readonly [K in keyof F as F[K] extends Optional ? K : never]?: FieldOf<F[K]>;
  }
>;

/** Type of a field's values. */
export type FieldOf<F> = F extends Optional<infer T> ? T : F extends Schema ? ValueOf<F> : never;

/** Flattens an intersection to one object type, for readable compiler messages. */
export type Flat<T> = { readonly [K in keyof T]: T[K] };

/** A default value; fields that it omits get their own defaults. */
export type DefaultValue<T> = T extends readonly (infer I)[]
  ? readonly DefaultValue<I>[]
  : T extends object
    ? { readonly [K in keyof T]?: DefaultValue<T[K]> }
    : T;

export interface ObjectOptions<T> extends Common<DefaultValue<T>> {
  /** Server-side apply tracks one owner for the whole object instead of one per field. @default false */
  readonly atomic?: boolean;
  /** Keeps unknown fields instead of dropping them. @default false */
  readonly preserveUnknown?: boolean;
}

/**
 * Schema of an object with these fields. All fields are required except those in `optional(…)` and those with a
 * default, which the API server sets.
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
    ...(required.length > 0 && { required }), // the API server rejects an empty `required`
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
  /** Server-side apply tracks one owner for the whole map instead of one per key. @default false */
  readonly atomic?: boolean;
}

/** Schema of a map from strings to values of this schema. */
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

/** Options of an array. */
export type ArrayOptions<T> = Common<readonly DefaultValue<T>[]> & {
  readonly minItems?: number;
  readonly maxItems?: number;
} & (
    | {
        /** `set` means unique items, each with its own owner in server-side apply. @default 'atomic' */
        readonly list?: 'atomic' | 'set';
        readonly keys?: never;
      }
    | {
        /** List map: server-side apply identifies and merges items by the values of `keys`. */
        readonly list: 'map';
        readonly keys: readonly [RequiredKey<T>, ...RequiredKey<T>[]];
      }
  );

/** Names of the required fields, the only fields that the API server accepts as keys of a list map. */
export type RequiredKey<T> = {
  [K in keyof T & string]-?: Partial<Pick<T, K>> extends Pick<T, K> ? never : K;
}[keyof T & string];

/** Schema of an array with items of this schema. */
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

/** Schema of any JSON value, which is stored unchanged. */
export function anything(options: Common<unknown> = {}): Schema<unknown> {
  return node({ 'x-kubernetes-preserve-unknown-fields': true }, options);
}

/** A Kubernetes object inside another one, such as a template. */
export interface EmbeddedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata?: Partial<ObjectMeta>;
  readonly [field: string]: unknown;
}

/** Schema of an embedded Kubernetes object with any fields. */
export function embedded(options: Common<EmbeddedObject> = {}): Schema<EmbeddedObject> {
  const own: SchemaNode = {
    type: 'object',
    'x-kubernetes-embedded-resource': true,
    'x-kubernetes-preserve-unknown-fields': true,
  };
  return node(own, options);
}
