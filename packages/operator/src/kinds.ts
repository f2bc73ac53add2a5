import { foreignKind, type KubeObject } from '@vmwright/runtime';

/* Built-in kinds of Kubernetes that the operator uses, with only the fields that it reads. */

export type Namespace = KubeObject;
export const Namespace = foreignKind<Namespace>({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  scope: 'Cluster',
});
