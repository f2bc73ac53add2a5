export * from './composite.ts';
export { conditions } from './conditions.ts';
export type { Format } from './format.ts';
export { type Problem, type ProblemReason, sentenceOf } from './problem.ts';
export * from './scalar.ts';
export {
  type Common,
  DeclarationError,
  type IntegerFormat,
  type NumberFormat,
  nullable,
  type Optional,
  optional,
  type Rule,
  type Schema,
  type SchemaNode,
  type ValueOf,
} from './schema.ts';
export { unknownFields } from './unknown-fields.ts';
export { type Admission, admit, validate } from './validate.ts';
