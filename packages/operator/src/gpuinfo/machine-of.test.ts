import { expect, test } from 'vitest';
import { type MachineFacts, NO_VSPHERE } from '../vcenter/compute-facts.ts';
import type { Node } from './kinds.ts';
import { machineOf } from './machine-of.ts';

const vm = (name: string, uuid: string, vcenter = 'default'): MachineFacts => ({
  id: `${vcenter}/vm-${uuid}`,
  name,
  uuid,
  instanceUuid: `i-${uuid}`,
  hostId: `${vcenter}/host-1`,
  isPoweredOn: true,
  gpus: [],
  cpuDemandMhz: 0,
  memoryUsageMb: 0,
});
const MACHINES = [
  vm('by-provider-id', 'a'),
  vm('by-system-uuid', 'b'),
  vm('by-name', 'c'),
  vm('far', 'd', 'second'),
];
const compute = (staleVcenters: readonly string[] = []) => ({
  staleVcenters,
  machineByUuid: (uuid: string) => MACHINES.find((each) => each.uuid === uuid),
  machineByName: (name: string) => MACHINES.find((each) => each.name === name),
});
const node = (name: string, providerID?: string, systemUUID?: string): Node => ({
  metadata: { name },
  spec: { ...(providerID !== undefined && { providerID }) },
  status: { ...(systemUUID !== undefined && { nodeInfo: { systemUUID } }) },
});

test.each<[string, Node, readonly string[], string | undefined, string | undefined]>([
  ['by provider id', node('by-name', 'vsphere://a', 'b'), [], 'by-provider-id', undefined],
  ['by system UUID', node('by-name', 'vsphere://unknown', 'b'), [], 'by-system-uuid', undefined],
  ['by system UUID without a provider id', node('by-name', undefined, 'b'), [], 'by-system-uuid', undefined],
  ['by name', node('by-name', undefined, 'unknown'), [], 'by-name', undefined],
  ['by system UUID with the provider id of K3s', node('x', 'k3s://x', 'b'), [], 'by-system-uuid', undefined],
  ['by name with the provider id of RKE2', node('by-name', 'rke2://by-name'), [], 'by-name', undefined],
  [
    'never, if the node runs K3s on bare metal',
    node('metal', 'k3s://metal', 'unknown'),
    [],
    undefined,
    undefined,
  ],
  [
    'never, if the node belongs to another cloud',
    node('by-name', 'aws:///eu/i-1', 'b'),
    [],
    undefined,
    undefined,
  ],
  ['never, if the node is bare metal', node('metal', undefined, 'unknown'), [], undefined, undefined],
  [
    'never, if no vCenter has the VM of a node on vSphere',
    node('lost', 'vsphere://unknown'),
    [],
    undefined,
    'no vCenter has the VM of spec.providerID vsphere://unknown',
  ],
  [
    'in a vCenter with stale facts',
    node('by-name', 'vsphere://a'),
    ['default'],
    'by-provider-id',
    "the facts of vCenter 'default' are not current",
  ],
  [
    'in a vCenter with current facts, even if the facts of another vCenter are stale',
    node('far', 'vsphere://d'),
    ['default'],
    'far',
    undefined,
  ],
  [
    'perhaps later, if the facts of a vCenter are stale',
    node('metal'),
    ['default'],
    undefined,
    "the VM of the node is not known, and the facts of vCenter 'default' are not current",
  ],
  [
    'never, if the node belongs to a kind cluster, even while a vCenter is stale',
    node('kind', 'kind://docker/kind/kind'),
    ['default'],
    undefined,
    undefined,
  ],
])('the VM of a node is found %s', (_title, given, stale, machine, blocker) => {
  const found = machineOf(given, compute(stale));
  expect([found.machine?.name, found.blocker?.message]).toEqual([machine, blocker]);
  expect(found.blocker?.reason).toBe(blocker && 'FactsUnknown');
});

test('a VM that appears later can change a match by name, but not a match by UUID', () => {
  expect(machineOf(node('by-name'), compute()).isProvisional).toBe(true);
  expect(machineOf(node('x', 'vsphere://a'), compute()).isProvisional).toBe(false);
  expect(machineOf(node('x', 'aws:///x'), compute()).isProvisional).toBe(false);
});

test('without a vCenter, nodes on vSphere are judged by the facts from Kubernetes', () => {
  expect(machineOf(node('x', 'vsphere://a'), NO_VSPHERE)).toEqual({
    machine: undefined,
    blocker: undefined,
    isProvisional: false,
  });
});
