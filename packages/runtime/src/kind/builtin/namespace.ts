import { foreignKind } from '../kind.ts';
import type { KubeObject } from '../object.ts';

/** A Namespace (core/v1). */
export type Namespace = KubeObject;

export const Namespace = foreignKind<Namespace>({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  scope: 'Cluster',
});
