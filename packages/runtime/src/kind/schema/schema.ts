import type { Format } from './format.ts';

declare const valueType: unique symbol;

/**
 * A structural OpenAPI v3 schema, as in a CustomResourceDefinition. `T` is the type of its values. Created by `object`,
 * `string`, `integer` and the other schema functions.
 */
export interface Schema<T = unknown> extends SchemaNode {
  readonly [valueType]?: T;
}

/** The fields of an OpenAPI v3 schema that this library uses. */
export interface SchemaNode {
  readonly description?: string;
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly format?: Format | IntegerFormat | NumberFormat;
  readonly nullable?: boolean;
  readonly enum?: readonly string[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly default?: unknown;
  readonly 'x-kubernetes-int-or-string'?: true;
  readonly 'x-kubernetes-preserve-unknown-fields'?: true;
  readonly 'x-kubernetes-embedded-resource'?: true;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: 'atomic';
  readonly 'x-kubernetes-validations'?: readonly Rule[];
}

/** Formats of integers, for code generators only. The API server does not enforce them: use `minimum` and `maximum`. */
export type IntegerFormat = 'int32' | 'int64';
/** Formats of numbers, for code generators only. The API server does not enforce them. */
export type NumberFormat = 'float' | 'double';

/** A CEL rule. The API server evaluates it; the validator does not. */
export interface Rule {
  /** Expression that is true for valid values: `self.min <= self.max`. */
  readonly rule: string;
  /** Message for a value that violates the rule. */
  readonly message?: string;
  /** CEL expression that returns the message. */
  readonly messageExpression?: string;
  readonly reason?:
    | 'FieldValueInvalid'
    | 'FieldValueForbidden'
    | 'FieldValueRequired'
    | 'FieldValueDuplicate';
  /** Relative path of the field that the error names: `.min`. @default the field with the rule */
  readonly fieldPath?: string;
  /** Evaluates a rule with `oldSelf` on create too; `oldSelf` is then a CEL optional. @default false */
  readonly optionalOldSelf?: boolean;
}

/** Options of every schema. */
export interface Common<T> {
  readonly description?: string;
  /** Value that the API server sets if the field is missing, so that readers always see a value. */
  readonly default?: T;
  readonly rules?: readonly Rule[];
}

/** Type of a schema's values. */
export type ValueOf<S extends Schema> = S extends Schema<infer T> ? T : never;

/** An optional field; created by `optional`. */
export interface Optional<T = unknown> {
  readonly optional: Schema<T>;
}

/** Makes a field of an object optional. */
export function optional<T>(schema: Schema<T>): Optional<T> {
  return { optional: schema };
}

/** Returns the schema with null as an additional value. @throws DeclarationError for an enum */
export function nullable<T>(schema: Schema<T>): Schema<T | null> {
  if (schema.enum !== undefined)
    throw new DeclarationError(
      `an enum of ${schema.enum.join(', ')} cannot be nullable: the API server rejects null for an enum`,
    );
  return { ...schema, nullable: true };
}

/** Thrown when the declaration of a kind or schema is invalid. */
export class DeclarationError extends Error {
  readonly code = 'DECLARATION';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'DeclarationError';
  }
}

/** Combines the fields of a schema with the options that all schemas have. */
export function node(own: SchemaNode, { description, default: value, rules }: Common<unknown>): SchemaNode {
  return {
    ...(description !== undefined && { description }),
    ...own,
    ...(value !== undefined && { default: value }),
    ...(rules !== undefined && { 'x-kubernetes-validations': rules }),
  };
}
