import type { Resource } from './resource.ts';
import { fieldSelector, labelSelector, type Selector } from './selectors.ts';

/** Selects the objects of a list or watch. */
export interface Selection {
  readonly resource: Resource;
  readonly namespace: string | undefined;
  readonly matches: Selector;
  /** Whether the client requested `PartialObjectMetadata`. */
  readonly metadataOnly: boolean;
}

export function selectionOf(
  resource: Resource,
  namespace: string | undefined,
  query: URLSearchParams,
  metadataOnly: boolean,
): Selection {
  const selectors: Selector[] = [];
  if (namespace !== undefined) selectors.push(({ metadata }) => metadata.namespace === namespace);
  const labels = query.get('labelSelector');
  const fields = query.get('fieldSelector');
  if (labels !== null && labels !== '') selectors.push(labelSelector(labels));
  if (fields !== null && fields !== '') selectors.push(fieldSelector(resource, fields));
  return {
    resource,
    namespace,
    matches: (object) => selectors.every((selects) => selects(object)),
    metadataOnly,
  };
}
