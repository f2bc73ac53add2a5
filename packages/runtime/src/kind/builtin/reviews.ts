import { foreignKind } from '../kind.ts';

/* Questions to the API server. They are created, answered in the same response and never stored. */

/** Whose token is this? */
export const TokenReview = foreignKind({
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenReview',
  plural: 'tokenreviews',
  scope: 'Cluster',
});

/** May this user do that? */
export const SubjectAccessReview = foreignKind({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  scope: 'Cluster',
});
