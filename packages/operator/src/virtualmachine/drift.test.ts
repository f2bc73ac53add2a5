import { expect, test } from 'vitest';
import { machineDraft } from './children.ts';
import { differs } from './drift.ts';
import type { VirtualMachine } from './resource.ts';

const vm: VirtualMachine = {
  metadata: { namespace: 'work', name: 'demo', uid: 'u-1' },
  spec: {
    baseVm: 'ubuntu',
    version: 'not a label',
    resources: { cpu: '2', memory: '2048Mi', diskSize: '1Gi' },
    interfaces: [{ network: 'net', ipAddress: '10.0.0.1/24' }],
    vmDiskImageRef: { name: 'base' },
  },
};
const draft = machineDraft(vm, 'disk');
type Template = NonNullable<NonNullable<NonNullable<typeof draft.spec>['template']>['spec']>;

/** Returns the draft with a changed spec of its template, as if it were read from the API server. */
function stored(change: (spec: Template) => Template) {
  const { spec } = draft;
  const template = spec?.template?.spec;
  if (template === undefined) throw new Error('the draft has no template');
  return { ...draft, spec: { ...spec, template: { ...spec?.template, spec: change(template) } } };
}

test('defaults of virt-api and another notation of the memory are no difference', () => {
  const defaulted = stored((spec) => ({
    ...spec,
    architecture: 'amd64',
    domain: { ...spec.domain, memory: { guest: '2Gi' }, machine: { type: 'q35' } },
  }));
  expect(differs(defaulted, draft)).toBe(false);
});

test.for<readonly [string, (spec: Template) => Template]>([
  ['cpu', (spec) => ({ ...spec, domain: { ...spec.domain, cpu: { cores: 4 } } })],
  ['memory', (spec) => ({ ...spec, domain: { ...spec.domain, memory: { guest: '3Gi' } } })],
  ['an additional volume', (spec) => ({ ...spec, volumes: [...(spec.volumes ?? []), { name: 'extra' }] })],
  ['a missing network', (spec) => ({ ...spec, networks: [] })],
  ['another disk', (spec) => ({ ...spec, volumes: [{ name: 'root', dataVolume: { name: 'x' } }] })],
])('a manual change of the KubeVirt VirtualMachine is a difference: %s', ([, change]) => {
  expect(differs(stored(change), draft)).toBe(true);
});

test('missing annotations are no difference if the spec has no descriptive fields and no addresses', () => {
  const { baseVm: _, version: __, interfaces: ___, ...spec } = vm.spec;
  const plain = machineDraft({ ...vm, spec }, 'disk');
  expect(plain.metadata.annotations).toBeUndefined();
  expect(differs(plain, plain)).toBe(false);
});

test('labels of the operator must match exactly, and those of other programs are ignored', () => {
  const { metadata } = draft;
  const labels = { ...metadata.labels };
  expect(labels).toMatchObject({ 'vmwright.dev/base-vm': 'ubuntu' });
  expect(labels).not.toHaveProperty(['vmwright.dev/version']);
  expect(metadata.annotations).toMatchObject({ 'vmwright.dev/version': 'not a label' });
  const labelled = (more: Record<string, string>) => ({
    ...draft,
    metadata: { ...metadata, labels: { ...labels, ...more } },
  });
  expect(differs(labelled({ team: 'a', 'testbed.vmwright.dev/x': 'y' }), draft)).toBe(false);
  expect(differs(labelled({ 'vmwright.dev/old': 'a' }), draft)).toBe(true);
  expect(differs(labelled({ 'vmwright.dev/base-vm': 'b' }), draft)).toBe(true);
});
