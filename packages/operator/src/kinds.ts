import { foreignKind, type KubeObject } from '@vmwright/runtime';

/* Kinds that others declare, as far as we use them. */

export type Namespace = KubeObject;
export const Namespace = foreignKind<Namespace>({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  scope: 'Cluster',
});
