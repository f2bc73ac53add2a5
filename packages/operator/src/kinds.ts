import { foreignKind, type KubeObject } from '@vmwright/runtime';

/* Kinds of Kubernetes that the operator uses, with the fields that it uses. */

export type Namespace = KubeObject;
export const Namespace = foreignKind<Namespace>({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  scope: 'Cluster',
});
