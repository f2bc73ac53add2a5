import { expect, test } from 'vitest';
import { type MachineFacts, NO_VSPHERE } from './compute-facts.ts';
import { swapUuid } from './machine-uuid.ts';
import { normalizePciId } from './pci-id.ts';
import { PooledComputeFacts } from './pooled-compute-facts.ts';

const UUID = '420a1b2c-3d4e-5f60-7182-93a4b5c6d7e8';
const SWAPPED = '2c1b0a42-4e3d-605f-7182-93a4b5c6d7e8';
const OTHER = '52fdfc07-2182-654f-163f-5f0f9a621d72';

function machine(id: string, more: Partial<MachineFacts> = {}): MachineFacts {
  return {
    id,
    name: id,
    uuid: UUID,
    instanceUuid: OTHER,
    isPoweredOn: true,
    hostId: undefined,
    gpus: [],
    cpuDemandMhz: 0,
    memoryUsageMb: 0,
    ...more,
  };
}

function facts(...vcenters: MachineFacts[][]): PooledComputeFacts {
  return new PooledComputeFacts(
    vcenters.map((machines, index) => ({
      name: `vcenter-${index}`,
      isStale: index > 0,
      host: () => undefined,
      machinesBy: (key, value) => machines.filter((each) => each[key] === value),
      subscribe: () => () => undefined,
      synced: () => Promise.resolve(),
    })),
  );
}

test('a machine is found by BIOS UUID, byte-swapped BIOS UUID or instance UUID, in upper or lower case', () => {
  const found = facts([], [machine('a')]);
  expect(swapUuid(UUID)).toBe(SWAPPED);
  for (const uuid of [UUID, UUID.toUpperCase(), OTHER, SWAPPED.toUpperCase(), ` ${UUID}\n`])
    expect(found.machineByUuid(uuid)?.id).toBe('a');
  for (const uuid of ['', 'a', swapUuid(OTHER), `${UUID}0`])
    expect(found.machineByUuid(uuid)).toBe(undefined);
});

test('the BIOS UUID of a machine has precedence over the instance UUID of another machine', () => {
  const others = [machine('b', { uuid: swapUuid(UUID) }), machine('c', { uuid: OTHER, instanceUuid: UUID })];
  expect(facts(others, [machine('a')]).machineByUuid(UUID)?.id).toBe('a');
});

test('of several machines with the same UUID, the only one that is powered on is found', () => {
  const off = { isPoweredOn: false };
  expect(facts([machine('a', off)], [machine('b')]).machineByUuid(UUID)?.id).toBe('b');
  expect(facts([machine('a')], [machine('b')]).machineByUuid(UUID)).toBe(undefined);
  expect(facts([machine('a', off), machine('b', off)]).machineByUuid(UUID)).toBe(undefined);
});

test('a machine is found by its name if no other machine in any vCenter has the same name', () => {
  const found = facts([machine('a'), machine('b')], [machine('b'), machine('c')]);
  expect(['a', 'b', 'c', 'd'].map((name) => found.machineByName(name)?.id)).toEqual([
    'a',
    undefined,
    'c',
    undefined,
  ]);
});

test('stale vCenters are reported by name', async () => {
  expect(facts([], [], []).staleVcenters).toEqual(['vcenter-1', 'vcenter-2']);
});

test('without a vCenter nothing is found and nothing is stale', async () => {
  await NO_VSPHERE.synced(new AbortController().signal);
  NO_VSPHERE.subscribe(() => undefined)();
  expect([NO_VSPHERE.staleVcenters, NO_VSPHERE.host('a'), NO_VSPHERE.machineByName('a')]).toEqual([
    [],
    undefined,
    undefined,
  ]);
  expect(NO_VSPHERE.machineByUuid(UUID)).toBe(undefined);
});

test.each([
  ['0000:3b:00.0', '0000:3b:00.0'],
  ['0000:3B:00.0', '0000:3b:00.0'],
  ['3b:00.0', '0000:3b:00.0'],
  ['00000:059:00.0', '0000:3b:00.0'],
  ['00001:175:31.7', '0001:af:1f.7'],
  ['PF_0.59.0', 'pf_0.59.0'],
  ['', ''],
])('the PCI id %s is normalized to %s', (id, expected) => {
  expect(normalizePciId(id)).toBe(expected);
});
