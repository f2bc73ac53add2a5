import type { Condition } from '@vmwright/runtime';
import { expect, test } from 'vitest';
import { keepsAddress } from './address-holder.ts';
import type { VirtualMachine } from './resource.ts';

const ADDRESS = '10.0.0.2';
const conflict: Condition = {
  type: 'Stalled',
  status: 'True',
  reason: 'AddressConflict',
  message: '',
  lastTransitionTime: '2026-11-17T10:00:00Z',
};

interface Facts {
  readonly uid: string;
  readonly at?: string;
  readonly isIgnored?: boolean;
  readonly status?: VirtualMachine['status'];
}

function vm({ uid, at = '10:00:00', isIgnored = false, status }: Facts): VirtualMachine {
  return {
    metadata: { namespace: 'a', name: uid, uid, creationTimestamp: `2026-11-17T${at}Z` },
    spec: {
      resources: { cpu: 1, memory: '1Gi', diskSize: '1Gi' },
      vmDiskImageRef: { name: 'base' },
      interfaces: [{ network: 'net', ipAddress: `${ADDRESS}/24` }],
      ...(isIgnored && { ignoreOnDeploy: true }),
    },
    ...(status && { status }),
  };
}

const disk = { dataVolume: 'root' };
const older = { uid: 'a', at: '09:00:00', status: disk };
const younger = { uid: 'b', at: '10:00:00', status: disk };

test.for<readonly [string, Facts, Facts]>([
  ['uses the address, even if the other is older', { ...younger, status: { ...disk, ip: ADDRESS } }, older],
  [
    'uses the address, even if the other machine is older and uses another address',
    { ...younger, status: { ...disk, ip: ADDRESS } },
    { ...older, status: { ...disk, ip: '10.0.0.1' } },
  ],
  [
    'uses the address and is about to stop, even if the other machine waits for the address',
    { ...younger, isIgnored: true, status: { ...disk, ip: ADDRESS } },
    { ...older, status: { ...disk, conditions: [conflict] } },
  ],
  ['should run, if the other machine is older but should not run', younger, { ...older, isIgnored: true }],
  ['should run but has no disk, if the other should not run', { uid: 'b' }, { ...older, isIgnored: true }],
  [
    'restarts, if the other machine is older but waits for the address',
    younger,
    { ...older, status: { ...disk, conditions: [conflict] } },
  ],
  ['has a disk, if the other machine is older but has no disk', younger, { uid: 'a', at: '09:00:00' }],
  ['was created first', older, younger],
  [
    'was created first, if both machines use the address',
    { ...older, status: { ip: ADDRESS } },
    { ...younger, status: { ip: ADDRESS } },
  ],
  ['has the lower UID, if both machines were created in the same second', { uid: 'a' }, { uid: 'b' }],
])('the address is kept by the machine that %s', ([, winner, loser]) => {
  const [a, b] = [vm(winner), vm(loser)];
  expect([keepsAddress(a, b, ADDRESS), keepsAddress(b, a, ADDRESS)]).toEqual([true, false]);
});

test('exactly one of any two machines with the same address keeps it, and the decisions for all pairs form no cycle', () => {
  const statuses = [{}, disk, { ip: ADDRESS }, { ...disk, ip: ADDRESS }, { ...disk, conditions: [conflict] }];
  const machines = statuses.flatMap((status, i) =>
    [true, false].flatMap((isIgnored) =>
      ['09:00:00', '10:00:00'].map((at) => vm({ uid: `${i} ${isIgnored} ${at}`, at, isIgnored, status })),
    ),
  );
  const wins = machines.map((a) => machines.filter((b) => a !== b && keepsAddress(a, b, ADDRESS)).length);
  for (const a of machines)
    for (const b of machines)
      if (a !== b) expect(keepsAddress(a, b, ADDRESS)).toBe(!keepsAddress(b, a, ADDRESS));
  expect(wins.toSorted((x, y) => x - y)).toEqual(machines.map((_, i) => i));
});
