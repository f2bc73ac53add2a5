const NAME = 'testbed-clone-authorization';

/**
 * Returns a policy that imitates the admission webhook of CDI for clones across namespaces. The user that creates the
 * DataVolume needs the permission to create `datavolumes/source` in the namespace of the source.
 */
export function cloneAuthorization(): object[] {
  const admission = 'admissionregistration.k8s.io/v1';
  return [
    {
      apiVersion: admission,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: NAME },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: ['cdi.kubevirt.io'],
              apiVersions: ['v1beta1'],
              resources: ['datavolumes'],
              operations: ['CREATE'],
            },
          ],
        },
        variables: [
          {
            name: 'source',
            expression: '[?object.?spec.source.snapshot.namespace, ?object.?spec.source.pvc.namespace]',
          },
        ],
        validations: [
          {
            expression: `variables.source.all(each, each == '' || each == request.namespace
              || authorizer.group('cdi.kubevirt.io').resource('datavolumes').subresource('source').namespace(each).check('create').allowed())`,
            messageExpression: `'User ' + request.userInfo.username + ' has insufficient permissions in clone source namespace ' + variables.source[0]`,
            reason: 'Invalid', // CDI responds with the HTTP status 422, not 403
          },
        ],
      },
    },
    {
      apiVersion: admission,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: NAME },
      spec: { policyName: NAME, validationActions: ['Deny'] },
    },
  ];
}
