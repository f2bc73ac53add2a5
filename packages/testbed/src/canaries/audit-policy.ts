/**
 * Audit policy of the API server in a test run: records what our programs write, except Secrets, so that the log can be searched for
 * credentials. It contains every event and every status, also those that were replaced or deleted before the end of a test.
 *
 * Our programs run as service accounts, in different namespaces; those of Kubernetes and KubeVirt are left out, as are Leases, which are
 * renewed all the time.
 */
export const AUDIT_POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [
    {
      level: 'None',
      userGroups: ['kube-system', 'kubevirt', 'cdi'].map((each) => `system:serviceaccounts:${each}`),
    },
    {
      level: 'None',
      resources: [
        { group: '', resources: ['secrets', 'serviceaccounts/token'] },
        { group: 'coordination.k8s.io', resources: ['leases'] },
        { group: 'authentication.k8s.io' },
        { group: 'authorization.k8s.io' },
      ],
    },
    { level: 'Request', userGroups: ['system:serviceaccounts'], verbs: ['create', 'update', 'patch'] },
    { level: 'None' },
  ],
} as const;
