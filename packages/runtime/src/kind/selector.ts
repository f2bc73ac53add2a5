import { isRecord } from '../client/record.ts';
import type { KubeObject } from './object.ts';

/** Returns whether a selector matches an object. */
export type Selects = (object: KubeObject) => boolean;

/**
 * Compiles a label selector with the API server's syntax: `a=b`, `a==b`, `a!=b`, `a`, `!a`, `a in (b,c)` and
 * `a notin (b,c)`, separated by commas.
 * @throws Error if the selector is invalid
 */
export function byLabels(selector: string): Selects {
  const terms = selector
    .split(/,(?![^(]*\))/)
    .filter((term) => term.trim() !== '')
    .map((term) => labelTerm(term.trim()));
  return ({ metadata: { labels = {} } }) => terms.every((holds) => holds(labels));
}

/**
 * Compiles a field selector: `metadata.name=a`, `spec.nodeName!=b`, separated by commas.
 * @throws Error if the selector is invalid
 */
export function byFields(selector: string): Selects {
  const terms = selector
    .split(',')
    .filter((term) => term.trim() !== '')
    .map((term) => {
      const [, field, how, value = ''] = /^\s*([^=!\s]+)(==|!=|=)(.*)$/.exec(term) ?? [];
      if (field === undefined)
        throw new Error(`invalid field selector "${term}": use field=value or field!=value`);
      const path = field.split('.');
      return (object: KubeObject) => (fieldAt(object, path) === value) === (how !== '!=');
    });
  return (object) => terms.every((holds) => holds(object));
}

type Labels = Readonly<Record<string, string>>;

function labelTerm(text: string): (labels: Labels) => boolean {
  const set = /^(\S+)\s+(in|notin)\s+\(([^)]*)\)$/.exec(text);
  if (set !== null) {
    const [, key = '', how, list = ''] = set;
    const values = new Set(list.split(',').map((each) => each.trim()));
    const wanted = how === 'in';
    return (labels) => {
      const value = own(labels, key);
      return value === undefined ? !wanted : values.has(value) === wanted;
    };
  }
  const pair = /^([^=!\s]+)\s*(==|!=|=)\s*([^=!\s]*)$/.exec(text);
  if (pair !== null) {
    const [, key = '', how, value = ''] = pair;
    return how === '!=' ? (labels) => own(labels, key) !== value : (labels) => own(labels, key) === value;
  }
  const presence = /^(!?)\s*([-./\w]+)$/.exec(text);
  if (presence === null)
    throw new Error(`invalid label selector "${text}": use a=b, a!=b, a, !a, a in (b,c) or a notin (b,c)`);
  const [, not, key = ''] = presence;
  return (labels) => Object.hasOwn(labels, key) === (not === '');
}

/** Returns a field's value as the API server compares it: a missing field is empty. */
function fieldAt(object: KubeObject, path: readonly string[]): string {
  let value: unknown = object;
  for (const part of path) value = isRecord(value) ? own(value, part) : undefined;
  return String(value ?? '');
}

/** Returns a field, not an inherited property: keys come from users and may be `toString`. */
function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
