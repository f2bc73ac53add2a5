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
  /** In characters, not bytes. */
  readonly minLength?: number;
  readonly maxLength?: number;
  /**
   * Found anywhere in the string unless anchored by `^` and `$`. Read by Go (RE2) in the API server and by JavaScript
   * here, so in what both have: no look-around, no back references, no `(?i)`, no `[[:alpha:]]`.
   */
  readonly pattern?: string;
  readonly format?: Format;
}

export function string(options: StringOptions = {}): Schema<string> {
  const { description, default: value, rules, ...constraints } = options;
  if (constraints.pattern !== undefined) checkPattern(constraints.pattern);
  return node({ type: 'string', ...constraints }, options);
}

/** One of these strings. */
export function literals<const T extends string>(
  choices: readonly [T, ...T[]],
  options: Common<NoInfer<T>> = {},
): Schema<T> {
  return node({ type: 'string', enum: choices }, options);
}

interface Bounds {
  /** Inclusive. */
  readonly minimum?: number;
  readonly maximum?: number;
}

export interface IntegerOptions extends Common<number>, Bounds {
  readonly format?: IntegerFormat;
}

export function integer(options: IntegerOptions = {}): Schema<number> {
  const { description, default: value, rules, ...constraints } = options;
  checkBounds(constraints);
  return node({ type: 'integer', ...constraints }, options);
}

export interface NumberOptions extends Common<number>, Bounds {
  readonly format?: NumberFormat;
}

export function number(options: NumberOptions = {}): Schema<number> {
  const { description, default: value, rules, ...constraints } = options;
  checkBounds(constraints);
  return node({ type: 'number', ...constraints }, options);
}

export function boolean(options: Common<boolean> = {}): Schema<boolean> {
  return node({ type: 'boolean' }, options);
}

/** A number, or a string that stands for one: `8080` or `http`, `1` or `25%`. */
export function intOrString(options: Common<number | string> = {}): Schema<number | string> {
  return node({ 'x-kubernetes-int-or-string': true }, options);
}

// A decimal number, and perhaps a binary unit, a decimal unit or an exponent, as Kubernetes reads quantities.
const DECIMAL = String.raw`([0-9]+(\.[0-9]*)?|\.[0-9]+)`;
const QUANTITY = `^[+-]?${DECIMAL}([KMGTPE]i|[numkMGTPE]|[eE][+-]?${DECIMAL})?$`;

/** An amount of something: `4`, `500m`, `16Gi`. */
export function quantity(options: Common<number | string> = {}): Schema<number | string> {
  return node({ pattern: QUANTITY, 'x-kubernetes-int-or-string': true }, options);
}

function checkPattern(pattern: string): void {
  try {
    new RegExp(pattern, 'u');
  } catch (cause) {
    throw new DeclarationError(`the pattern ${pattern} does not work: ${messageOf(cause)}`, { cause });
  }
}

/** The API server turns bounds into 64-bit integers, and what does not fit into nonsense, differently by processor. */
function checkBounds({ minimum, maximum }: Bounds): void {
  for (const bound of [minimum, maximum])
    if (bound !== undefined && !(Math.abs(bound) <= Number.MAX_SAFE_INTEGER))
      throw new DeclarationError(`${bound} cannot be the bound of a number: it is beyond 2^53`);
}
