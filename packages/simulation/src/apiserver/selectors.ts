import { byFields, byLabels, type Selects } from '@vmwright/runtime';
import { UnmodelledError } from './errors.ts';
import type { Resource } from './resource.ts';

export type Selector = Selects;

export function labelSelector(text: string): Selector {
  try {
    return byLabels(text);
  } catch {
    throw new UnmodelledError(`the label selector ${text}`);
  }
}

/** Parses a field selector on `metadata.name`, `metadata.namespace` and the kind's selectable fields. */
export function fieldSelector({ kind, selectable = [] }: Resource, text: string): Selector {
  for (const term of text.split(',')) {
    const [field = ''] = term.split(/[=!]/, 1);
    const isName =
      field === 'metadata.name' || (field === 'metadata.namespace' && kind.scope === 'Namespaced');
    if (!(isName || selectable.includes(field))) throw new UnmodelledError(`the field selector ${term}`);
  }
  return byFields(text);
}
