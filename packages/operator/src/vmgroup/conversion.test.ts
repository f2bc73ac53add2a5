import { conversion } from '@vmwright/runtime';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CONVERSION } from './conversion.ts';
import { VmGroup } from './resource.ts';

const [OLD, NEW] = ['vm.codeconnect.vmworld.com/v1alpha1', 'vm.codeconnect.vmworld.com/v1beta1'];
const { convert } = conversion(VmGroup, CONVERSION);

const word = fc.stringMatching(/^[a-z]{1,8}$/);
const common = {
  replicas: fc.nat(9),
  cpu: fc.integer({ min: 1, max: 9 }),
  memory: fc.integer({ min: 1, max: 9 }),
  template: word,
};
const more = {
  linked: fc.boolean(),
  scaleIn: fc.constantFrom('NotReadyFirst', 'Newest', 'Oldest'),
  shutdownSeconds: fc.nat(99),
};
const place = {
  vcenter: word,
  datacenter: word,
  folder: word,
  cluster: word,
  resourcePool: word,
  datastore: word,
  storagePolicy: word,
};
const maxUnavailable = fc.oneof(fc.integer({ min: 1, max: 9 }), fc.constant('25%'));
const strategy = fc.constantFrom('RollingUpdate', 'OnDelete');
const requiredKeys = ['replicas', 'cpu', 'memory', 'template'] as const;

const flat = fc.record(
  { ...common, ...more, ...place, updateStrategy: strategy, maxUnavailable },
  { requiredKeys: [...requiredKeys] },
);
const nested = fc.record(
  {
    ...common,
    ...more,
    placement: fc.record(place, { requiredKeys: ['folder'] }),
    update: fc.record({ strategy, maxUnavailable }, { requiredKeys: ['strategy'] }),
  },
  { requiredKeys: [...requiredKeys] },
);
const status = { phase: 'RUNNING', currentReplicas: 1, replicas: [] };

function object(apiVersion: string, spec: object) {
  const metadata = { name: 'g', namespace: 'n', labels: { a: 'b' }, finalizers: ['f'] };
  return { apiVersion, kind: 'VmGroup', metadata, spec, status };
}

test('a conversion to the other version and back changes nothing', () => {
  fc.assert(
    fc.property(flat, (spec) => {
      const original = object(OLD, spec);
      expect(convert(convert(original, NEW), OLD)).toEqual(original);
    }),
  );
  fc.assert(
    fc.property(nested, (spec) => {
      const original = object(NEW, spec);
      expect(convert(convert(original, OLD), NEW)).toEqual(original);
    }),
  );
});

test('the flat fields of v1alpha1 become placement and update in v1beta1', () => {
  const spec = { replicas: 1, cpu: 1, memory: 1, template: 't' };
  expect(convert(object(OLD, spec), NEW)).toMatchObject({ spec });
  const placed = { ...spec, datacenter: 'DC1', updateStrategy: 'OnDelete', maxUnavailable: '25%' };
  expect(convert(object(OLD, placed), NEW)).toEqual(
    object(NEW, {
      ...spec,
      placement: { datacenter: 'DC1' },
      update: { strategy: 'OnDelete', maxUnavailable: '25%' },
    }),
  );
});
