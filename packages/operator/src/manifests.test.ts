import { expect, test } from 'vitest';
import { manifests } from './manifests.ts';

const namesIn = (objects: readonly { readonly metadata: { readonly name: string } }[]) =>
  objects.map(({ metadata }) => metadata.name).toSorted();

test('the manifests of one controller contain nothing that only other controllers need', () => {
  const { crds, webhooks, rbac } = manifests({ namespace: 'system', controllers: new Set(['kubevirt']) });
  expect(namesIn(crds)).toEqual(['virtualmachines.pelotech.ot', 'vmdiskimages.crd.pelotech.ot']);
  const text = JSON.stringify(webhooks);
  expect(text).toContain('validate.v1alpha1.vmdiskimages.crd.pelotech.ot');
  expect(text).not.toContain('samplecontroller');
  const roles = JSON.stringify(rbac);
  expect(roles).toContain('vmwright-image-syncs');
  expect(roles).not.toContain('samplecontroller');
});

test('without the controller kubevirt, the manifests allow no access to DataVolumes', () => {
  const { crds, rbac } = manifests({ namespace: 'system', controllers: new Set(['vm', 'vmgroup']) });
  expect(namesIn(crds)).toEqual(['vmgroups.vm.codeconnect.vmworld.com', 'vms.samplecontroller.k8s.io']);
  const roles = JSON.stringify(rbac);
  expect(roles).not.toContain('datavolumes');
  expect(roles).not.toContain('vmwright-image-syncs');
});

test('by default, the manifests contain the CRDs of all controllers', () => {
  expect(namesIn(manifests({ namespace: 'system' }).crds)).toHaveLength(5);
});

test('every kind is in the category vmwright, so that `kubectl get vmwright` lists all objects', () => {
  const { crds } = manifests({ namespace: 'system' });
  for (const crd of crds)
    expect(crd, crd.metadata.name).toMatchObject({ spec: { names: { categories: ['vmwright'] } } });
});
