/** Resources for which no content is recorded: those with credentials, and Leases, which are renewed all the time. */
const NOT_RECORDED = [
  { group: '', resources: ['secrets', 'serviceaccounts/token'] },
  { group: 'coordination.k8s.io', resources: ['leases'] },
  { group: 'authentication.k8s.io' },
  { group: 'authorization.k8s.io' },
];

/**
 * Returns the audit policy of the API server in a test run. The log contains every object that our programs write,
 * except Secrets, so that it can be searched for credentials. It has all versions of an object, even those that were
 * replaced or deleted before the end of a test. Our programs run as service accounts in various namespaces. Therefore
 * the policy covers all service accounts except those of Kubernetes, KubeVirt and CDI.
 * @param users all requests of these users are recorded too, including reads
 */
export function auditPolicy(users: readonly string[]): object {
  const metadata = users.length === 0 ? undefined : { level: 'Metadata', users };
  return {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'], // keeps ResponseStarted, which records a watch before it ends
    rules: [
      {
        level: 'None',
        userGroups: ['kube-system', 'kubevirt', 'cdi'].map((each) => `system:serviceaccounts:${each}`),
      },
      ...(metadata ? [{ ...metadata, resources: NOT_RECORDED }] : []),
      { level: 'None', resources: NOT_RECORDED },
      { level: 'Request', userGroups: ['system:serviceaccounts'], verbs: ['create', 'update', 'patch'] },
      ...(metadata ? [metadata] : []),
      { level: 'None' },
    ],
  };
}
