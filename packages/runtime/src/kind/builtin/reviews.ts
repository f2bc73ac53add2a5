import { foreignKind } from '../kind.ts';

/* Reviews: the API server returns the result in the response to the create and stores nothing. */

/** Asks the API server for the user of a token. */
export const TokenReview = foreignKind({
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenReview',
  plural: 'tokenreviews',
  scope: 'Cluster',
});

/** Asks the API server whether the user of the request has a permission. Every user may create this review. */
export const SelfSubjectAccessReview = foreignKind({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  scope: 'Cluster',
});

/** Asks the API server whether a user has a permission. */
export const SubjectAccessReview = foreignKind({
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  scope: 'Cluster',
});
