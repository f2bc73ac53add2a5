/** Resources whose content is not recorded: credentials, and Leases, which are renewed all the time. */
const NOT_RECORDED = [
  { group: '', resources: ['secrets', 'serviceaccounts/token'] },
  { group: 'coordination.k8s.io', resources: ['leases'] },
  { group: 'authentication.k8s.io' },
  { group: 'authorization.k8s.io' },
];

/**
 * Returns the audit policy of the API server in a test run. It records what our programs write, except Secrets, so that the log can be
 * searched for credentials: every event and every status, also those that were replaced or deleted before the end of a test. Our programs
 * run as service accounts, in different namespaces; those of Kubernetes and KubeVirt are left out.
 * @param user whose requests are all recorded, without content where they are not recorded otherwise
 */
export function auditPolicy(user: string | undefined): object {
  const metadata = user === undefined ? undefined : { level: 'Metadata', users: [user] };
  return {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'], // a watch completes only when it ends
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
