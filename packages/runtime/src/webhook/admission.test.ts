import { silentLogger } from '@vmwright/core';
import { expect, expectTypeOf, test } from 'vitest';
import { ConfigMap } from '../../test/kinds.ts';
import { applyPatch } from '../../test/webhook-patch.ts';
import { defineKind } from '../kind/define.ts';
import { integer, object } from '../kind/schema/index.ts';
import { type AdmissionRules, admission } from './admission.ts';
import { endpointsOf } from './endpoints.ts';
import { webhookManifests } from './manifests.ts';
import { allow, deny } from './verdict.ts';

const config: ConfigMap = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'x', namespace: 'y' },
  data: { a: '1' },
};

async function review(rules: AdmissionRules<ConfigMap>, request: object) {
  const [endpoint] = endpointsOf([admission(ConfigMap, rules)], silentLogger);
  const body = {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'u1', operation: 'CREATE', object: config, ...request },
  };
  const reviewed = await endpoint?.review(body, new AbortController().signal);
  return JSON.parse(JSON.stringify(reviewed)).response;
}

test('the response to a mutation has a patch only if the mutation returns an object that differs from the one in the request', async () => {
  const rules: AdmissionRules<ConfigMap> = {
    mutate: (each) => ({ ...each, data: { ...each.data, 'b/~': '2' } }),
  };
  const { patch, ...rest } = await review(rules, {});
  expect(rest).toEqual({ uid: 'u1', allowed: true, patchType: 'JSONPatch' });
  const operations = JSON.parse(Buffer.from(patch, 'base64').toString());
  expect(applyPatch(config, operations)).toEqual({ ...config, data: { a: '1', 'b/~': '2' } });
  expect(await review({ mutate: (each) => ({ ...each }) }, {})).toEqual({ uid: 'u1', allowed: true });
});

test('a mutation may modify its argument, and is not called for a deletion', async () => {
  const mutate = (each: ConfigMap) => Object.assign(each, { data: undefined });
  const { patch } = await review({ mutate }, {});
  expect(JSON.parse(Buffer.from(patch, 'base64').toString())).toEqual([{ op: 'remove', path: '/data' }]);
  const deleted = { operation: 'DELETE', object: null, oldObject: config };
  expect(await review({ mutate }, deleted)).toEqual({ uid: 'u1', allowed: true });
});

test('a denial has message, code, reason and causes; denials and approvals have warnings and audit annotations', async () => {
  const causes = [{ field: 'data', message: 'too little' }];
  const more = { code: 422, causes, warnings: ['w'], audit: { k: 'v' } };
  const failure = { status: 'Failure', message: 'no', code: 422, reason: 'Invalid', details: { causes } };
  for (const handler of ['validate', 'mutate'])
    expect(await review({ [handler]: () => deny('no', more) }, {})).toEqual({
      uid: 'u1',
      allowed: false,
      status: failure,
      warnings: ['w'],
      auditAnnotations: { k: 'v' },
    });
  expect(await review({ validate: () => ({ ...allow('w'), audit: { k: 'v' } }) }, {})).toEqual({
    uid: 'u1',
    allowed: true,
    warnings: ['w'],
    auditAnnotations: { k: 'v' },
  });
});

test('for an UPDATE, the validation gets the stored object, the user and the request options', async () => {
  const extra = { 'example.org/scopes': ['a'] };
  const request = {
    operation: 'UPDATE',
    oldObject: { ...config, data: {} },
    dryRun: true,
    subResource: 'status',
  };
  const userInfo = { username: 'jane', uid: '7', groups: ['g'], extra };
  const response = await review(
    {
      validate: (each, about) => {
        if (about.operation !== 'UPDATE') return deny('not an update');
        expectTypeOf(about.before).toEqualTypeOf<ConfigMap>();
        const { username, uid, groups } = about.user;
        return allow(
          JSON.stringify([
            each.data,
            about.before.data,
            about.dryRun,
            about.subresource,
            username,
            uid,
            groups,
            about.user.extra,
          ]),
        );
      },
    },
    { ...request, userInfo },
  );
  expect(JSON.parse(response.warnings[0])).toEqual([
    { a: '1' },
    {},
    true,
    'status',
    'jane',
    '7',
    ['g'],
    extra,
  ]);
});

test('invalid rules are rejected when they are declared', () => {
  expect(() => admission(ConfigMap, {})).toThrow('the admission of ConfigMap neither validates nor mutates');
  expect(() => admission(ConfigMap, { validate: () => allow(), timeoutSeconds: 31 })).toThrow('from 1 to 30');
  expect(() => admission(ConfigMap, { validate: () => allow(), operations: [] })).toThrow(
    'has no operations',
  );
  const declared = admission(ConfigMap, { validate: () => allow() });
  expect(() => endpointsOf([declared, declared], silentLogger)).toThrow(
    '/validate--v1-configmap is declared twice',
  );
});

test('webhookManifests returns validating and mutating configurations with the declared settings', () => {
  const Vm = defineKind({
    group: 'a.b.dev',
    version: 'v2',
    kind: 'Vm',
    plural: 'vms',
    scope: 'Cluster',
    spec: object({ n: integer() }),
  });
  const vm = admission(Vm, {
    mutate: (each) => each,
    validate: () => allow(),
    operations: ['UPDATE', 'DELETE'],
    status: true,
    failurePolicy: 'Ignore',
    reinvocationPolicy: 'IfNeeded',
  });
  const service = { namespace: 'system', name: 'hooks', port: 8443 };
  const [validating, mutating, ...none] = webhookManifests({
    name: 'x',
    webhooks: [vm],
    address: { service },
  });
  expect(none).toEqual([]);
  const common = {
    matchPolicy: 'Equivalent',
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    failurePolicy: 'Ignore',
    timeoutSeconds: 10,
  };
  const rule = {
    apiGroups: ['a.b.dev'],
    apiVersions: ['v2'],
    resources: ['vms', 'vms/status'],
    scope: 'Cluster',
  };
  expect(validating).toEqual({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'x' },
    webhooks: [
      {
        ...common,
        name: 'validate.v2.vms.a.b.dev',
        clientConfig: { service: { ...service, path: '/validate-a-b-dev-v2-vm' } },
        rules: [{ ...rule, operations: ['UPDATE', 'DELETE'] }],
      },
    ],
  });
  expect(mutating).toMatchObject({
    kind: 'MutatingWebhookConfiguration',
    webhooks: [
      {
        ...common,
        name: 'mutate.v2.vms.a.b.dev',
        rules: [{ ...rule, operations: ['UPDATE'] }],
        reinvocationPolicy: 'IfNeeded',
      },
    ],
  });
});
