import { fieldAt } from './json.ts';
import type { StoredObject } from './object.ts';
import { Unmodelled } from './refusal.ts';
import type { Resource } from './resource.ts';

export type Selector = (object: StoredObject) => boolean;

/** `a=b`, `a==b`, `a!=b`, `a`, `!a`, `a in (b,c)`, `a notin (b,c)`, with commas between. */
export function labelSelector(text: string): Selector {
  const terms = splitTerms(text).map(labelTerm);
  return ({ metadata: { labels = {} } }) => terms.every((term) => term(labels));
}

type Labels = Readonly<Record<string, string>>;

function labelTerm(text: string): (labels: Labels) => boolean {
  const set = /^(\S+) (in|notin) \(([^)]*)\)$/.exec(text);
  if (set !== null) {
    const [, key = '', how, list = ''] = set;
    const values = new Set(list.split(',').map((each) => each.trim()));
    const wanted = how === 'in';
    return (labels) => (labels[key] === undefined ? !wanted : values.has(labels[key]) === wanted);
  }
  const pair = /^([^=!\s]+)\s*(==|!=|=)\s*([^=!\s]*)$/.exec(text);
  if (pair !== null) {
    const [, key = '', how, value = ''] = pair;
    return how === '!=' ? (labels) => labels[key] !== value : (labels) => labels[key] === value;
  }
  const presence = /^(!?)\s*([-./\w]+)$/.exec(text);
  if (presence === null) throw new Unmodelled(`the label selector ${text}`);
  const [, not, key = ''] = presence;
  return (labels) => (labels[key] !== undefined) === (not === '');
}

function splitTerms(text: string): string[] {
  return text.split(/,(?![^(]*\))/).map((term) => term.trim());
}

/** `metadata.name=a,metadata.namespace=b`, and the fields that the kind declares selectable. */
export function fieldSelector({ kind, selectable = [] }: Resource, text: string): Selector {
  const terms = text.split(',').map((term) => {
    const [, field = '', how, value = ''] = /^([^=!]+)(==|!=|=)(.*)$/.exec(term) ?? [];
    const isName =
      field === 'metadata.name' || (field === 'metadata.namespace' && kind.scope === 'Namespaced');
    if (how === undefined || !(isName || selectable.includes(field)))
      throw new Unmodelled(`the field selector ${term}`);
    const path = field.split('.');
    return (object: StoredObject) => (String(fieldAt(object, path) ?? '') === value) === (how !== '!=');
  });
  return (object) => terms.every((term) => term(object));
}
