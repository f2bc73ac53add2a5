import { expect, test } from 'vitest';
import type { HostFacts, MachineFacts } from '../vcenter/compute-facts.ts';
import { machineBlocker, nodeBlocker } from './blocker.ts';
import type { Node } from './kinds.ts';

const READY = { type: 'Ready', status: 'True', reason: 'KubeletReady' };
const node = (spec: Node['spec'] = {}, ready: object | undefined = READY, more = {}): Node => ({
  metadata: { name: 'n', ...more },
  spec,
  status: { conditions: ready === undefined ? [] : [{ ...READY, ...ready }] },
});
const taint = (key: string, effect: string, value?: string) => ({ key, effect, ...(value && { value }) });

test.each<[string, Node, string | undefined, string | undefined]>([
  ['ready', node(), undefined, undefined],
  [
    'not ready',
    node({}, { status: 'False', reason: 'KubeletNotReady' }),
    undefined,
    'NotReady: condition Ready is False (KubeletNotReady)',
  ],
  [
    'without contact to its kubelet',
    node({}, { status: 'Unknown', reason: 'NodeStatusUnknown' }),
    undefined,
    'NotReady: condition Ready is Unknown (NodeStatusUnknown)',
  ],
  [
    'without the condition Ready',
    { metadata: { name: 'n' } },
    undefined,
    'NotReady: condition Ready is missing',
  ],
  [
    'cordoned, which also taints it',
    node({ unschedulable: true, taints: [taint('node.kubernetes.io/unschedulable', 'NoSchedule')] }),
    undefined,
    'Unschedulable: the node is cordoned (kubectl uncordon)',
  ],
  [
    'tainted with NoSchedule',
    node({ taints: [taint('dedicated', 'NoSchedule', 'ml')] }),
    undefined,
    'Tainted: taint dedicated=ml:NoSchedule',
  ],
  [
    'tainted with NoExecute',
    node({ taints: [taint('broken', 'NoExecute')] }),
    undefined,
    'Tainted: taint broken:NoExecute',
  ],
  [
    'tainted with PreferNoSchedule',
    node({ taints: [taint('busy', 'PreferNoSchedule')] }),
    undefined,
    undefined,
  ],
  [
    'tainted with the unschedulable taint alone',
    node({ taints: [taint('node.kubernetes.io/unschedulable', 'NoSchedule')] }),
    undefined,
    'Tainted: taint node.kubernetes.io/unschedulable:NoSchedule',
  ],
  [
    'tainted with its own resource, which keeps other pods off it',
    node({ taints: [taint('nvidia.com/gpu', 'NoSchedule', 'present')] }),
    'nvidia.com/gpu',
    undefined,
  ],
  [
    'tainted with the resource of another vendor',
    node({ taints: [taint('nvidia.com/gpu', 'NoSchedule')] }),
    'amd.com/gpu',
    'Tainted: taint nvidia.com/gpu:NoSchedule',
  ],
  [
    'tainted with its own resource and NoExecute',
    node({ taints: [taint('nvidia.com/gpu', 'NoExecute')] }),
    'nvidia.com/gpu',
    'Tainted: taint nvidia.com/gpu:NoExecute',
  ],
  [
    'being deleted',
    node({}, READY, { deletionTimestamp: '2026-11-01T00:00:00Z' }),
    undefined,
    'Unschedulable: the node is being deleted',
  ],
])('nodeBlocker returns the expected blocker for a node that is %s', (_title, given, resource, expected) => {
  const blocker = nodeBlocker(given, resource);
  expect(blocker && `${blocker.reason}: ${blocker.message}`).toBe(expected);
});

const machine: MachineFacts = {
  id: 'default/vm-1',
  name: 'worker-1',
  uuid: 'u',
  instanceUuid: 'i',
  hostId: 'default/host-1',
  isPoweredOn: true,
  gpus: [],
  cpuDemandMhz: 10,
  memoryUsageMb: 20,
};
const host: HostFacts = {
  id: 'default/host-1',
  name: 'esx-1',
  isConnected: true,
  isInMaintenance: false,
  gpus: [],
  maintenance: [],
  warnings: [],
};

test.each<[string, Partial<MachineFacts>, Partial<HostFacts> | undefined, string | undefined]>([
  ['on a connected host', {}, {}, undefined],
  ['powered off', { isPoweredOn: false }, {}, "PoweredOff: the VM 'worker-1' is powered off"],
  [
    'on a disconnected host',
    {},
    { isConnected: false, isInMaintenance: true },
    'HostUnavailable: vCenter has no connection to the host esx-1',
  ],
  [
    'on a host in maintenance',
    {},
    { isInMaintenance: true },
    'HostInMaintenance: the host esx-1 is in maintenance mode',
  ],
  [
    'on an unknown host',
    {},
    undefined,
    "FactsUnknown: vCenter does not report the host of the VM 'worker-1'",
  ],
])(
  'machineBlocker returns the expected blocker for a VM that is %s',
  (_title, ofMachine, ofHost, expected) => {
    const blocker = machineBlocker({ ...machine, ...ofMachine }, ofHost && { ...host, ...ofHost });
    expect(blocker && `${blocker.reason}: ${blocker.message}`).toBe(expected);
  },
);
