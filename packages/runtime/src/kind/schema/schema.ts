import type { Format } from './format.ts';

declare const valueType: unique symbol;

/**
 * A structural OpenAPI v3 schema, word for word as a CustomResourceDefinition wants it, which also tells the compiler
 * what its values look like. Made by the functions beside this file.
 */
export interface Schema<T = unknown> extends SchemaNode {
  readonly [valueType]?: T;
}

/** A schema as the API server sees it. Of all that it would take, what is made here. */
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

/** Told to those who generate code from the CRD. The API server does not hold values to it: say `maximum` for that. */
export type IntegerFormat = 'int32' | 'int64';
export type NumberFormat = 'float' | 'double';

/** A CEL rule, checked by the API server alone. */
export interface Rule {
  /** True for what is right: `self.min <= self.max`. */
  readonly rule: string;
  /** What the one who broke it reads. */
  readonly message?: string;
  /** The same, made from the object. */
  readonly messageExpression?: string;
  readonly reason?:
    | 'FieldValueInvalid'
    | 'FieldValueForbidden'
    | 'FieldValueRequired'
    | 'FieldValueDuplicate';
  /** The field to blame, from here: `.min`. @default this one */
  readonly fieldPath?: string;
  /** Whether a rule about `oldSelf` holds where there is none yet; `oldSelf` is then a CEL optional. */
  readonly optionalOldSelf?: boolean;
}

/** What can be said about any value. */
export interface Common<T> {
  readonly description?: string;
  /** Filled in by the API server where there is no value, so that readers always see one. */
  readonly default?: T;
  readonly rules?: readonly Rule[];
}

/** The type of a schema's values. */
export type ValueOf<S extends Schema> = S extends Schema<infer T> ? T : never;

/** A field that need not be there. */
export interface Optional<T = unknown> {
  readonly optional: Schema<T>;
}

export function optional<T>(schema: Schema<T>): Optional<T> {
  return { optional: schema };
}

export function nullable<T>(schema: Schema<T>): Schema<T | null> {
  if (schema.enum !== undefined)
    throw new DeclarationError(
      `a choice of ${schema.enum.join(', ')} cannot be nullable: the API server refuses null where there is an enum`,
    );
  return { ...schema, nullable: true };
}

/** A kind or schema is declared in a way that cannot work. */
export class DeclarationError extends Error {
  readonly code = 'DECLARATION';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'DeclarationError';
  }
}

/** A schema's node: what is its own, between what all have. */
export function node(own: SchemaNode, { description, default: value, rules }: Common<unknown>): SchemaNode {
  return {
    ...(description !== undefined && { description }),
    ...own,
    ...(value !== undefined && { default: value }),
    ...(rules !== undefined && { 'x-kubernetes-validations': rules }),
  };
}
