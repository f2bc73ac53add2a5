import { messageOf } from '@vmwright/core';
import type { Format } from './format.ts';
import {
  type Common,
  DeclarationError,
  type IntegerFormat,
  type NumberFormat,
  node,
  type Schema,
} from './schema.ts';

export interface StringOptions extends Common<string> {
  /** Minimum length in characters. */
  readonly minLength?: number;
  /** Maximum length in characters. */
  readonly maxLength?: number;
  /**
   * Regular expression that some part of the string must match. To match the whole string, anchor the expression with
   * `^` and `$`. The API server evaluates it in Go (RE2), and this library in JavaScript. So use only syntax that both
   * support: no look-around, no back references, no `(?i)`, no `[[:alpha:]]`.
   */
  readonly pattern?: string;
  readonly format?: Format;
}

/** Schema of a string. @throws DeclarationError if the pattern is invalid */
export function string(options: StringOptions = {}): Schema<string> {
  const { description, default: value, rules, ...constraints } = options;
  if (constraints.pattern !== undefined) checkPattern(constraints.pattern);
  return node({ type: 'string', ...constraints }, options);
}

/** Schema of an enum of strings. */
export function literals<const T extends string>(
  choices: readonly [T, ...T[]],
  options: Common<NoInfer<T>> = {},
): Schema<T> {
  return node({ type: 'string', enum: choices }, options);
}

/** Inclusive bounds of a number. */
export interface Bounds {
  readonly minimum?: number;
  readonly maximum?: number;
}

export interface IntegerOptions extends Common<number>, Bounds {
  readonly format?: IntegerFormat;
}

/** Schema of an integer. */
export function integer(options: IntegerOptions = {}): Schema<number> {
  const { description, default: value, rules, ...constraints } = options;
  checkBounds(constraints);
  return node({ type: 'integer', ...constraints }, options);
}

export interface NumberOptions extends Common<number>, Bounds {
  readonly format?: NumberFormat;
}

/** Schema of a number, with or without a fraction. */
export function number(options: NumberOptions = {}): Schema<number> {
  const { description, default: value, rules, ...constraints } = options;
  checkBounds(constraints);
  return node({ type: 'number', ...constraints }, options);
}

/** Schema of a boolean. */
export function boolean(options: Common<boolean> = {}): Schema<boolean> {
  return node({ type: 'boolean' }, options);
}

/** Schema of an integer or a string: `8080` or `http`, `1` or `25%`. */
export function intOrString(options: Common<number | string> = {}): Schema<number | string> {
  return node({ 'x-kubernetes-int-or-string': true }, options);
}

// Pattern of a quantity as Kubernetes parses it: a decimal number with an optional binary suffix, decimal suffix or
// exponent.
const DECIMAL = String.raw`([0-9]+(\.[0-9]*)?|\.[0-9]+)`;
const QUANTITY = `^[+-]?${DECIMAL}([KMGTPE]i|[numkMGTPE]|[eE][+-]?${DECIMAL})?$`;

/** Schema of a Kubernetes quantity: `4`, `500m`, `16Gi`. */
export function quantity(options: Common<number | string> = {}): Schema<number | string> {
  return node({ pattern: QUANTITY, 'x-kubernetes-int-or-string': true }, options);
}

function checkPattern(pattern: string): void {
  try {
    new RegExp(pattern, 'u');
  } catch (cause) {
    throw new DeclarationError(`invalid pattern ${pattern}: ${messageOf(cause)}`, { cause });
  }
}

/**
 * Rejects bounds beyond ±2^53: the API server converts bounds to 64-bit integers, and the result of an overflow depends
 * on its processor.
 */
function checkBounds({ minimum, maximum }: Bounds): void {
  for (const bound of [minimum, maximum])
    if (bound !== undefined && !(Math.abs(bound) <= Number.MAX_SAFE_INTEGER))
      throw new DeclarationError(`${bound} is not a valid bound: it must be within ±2^53`);
}
