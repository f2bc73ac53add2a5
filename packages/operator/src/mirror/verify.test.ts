import { expect, test } from 'vitest';
import { DEFAULT_MAPPING } from './mapping.ts';
import { type Row, RowIndex } from './rows.ts';
import { differences, differenceTable } from './verify.ts';
import { VAPP_LABEL, type VirtualMachine } from './virtual-machine.ts';

function row(id: string, status: string, fields: Partial<Row> = {}): Row {
  return { id, vmName: id, namespace: 'tenant', vapp: 'v', status, createdAt: 0, ...fields };
}

function vm(name: string, printableStatus: string, vapp?: string): VirtualMachine {
  const labels = vapp === undefined ? {} : { labels: { [VAPP_LABEL]: vapp } };
  return { metadata: { namespace: 'tenant', name, uid: name, ...labels }, status: { printableStatus } };
}

function compare(
  vms: readonly VirtualMachine[],
  rows: readonly Row[],
  isWatched: (row: Row) => boolean = () => true,
) {
  const index = new RowIndex();
  for (const each of rows) index.put(each);
  const byKey = new Map(vms.map((each) => [`tenant/${each.metadata.name}`, each]));
  return differences(byKey, index, DEFAULT_MAPPING, isWatched).map(
    ({ vm: name, rowId, actual, expected }) => `${name} ${rowId} ${actual} ${expected}`,
  );
}

test('a table that agrees with the cluster has no differences', () => {
  const rows = [row('a', 'POWERED_ON'), row('gone', 'DELETED'), row('new', 'INSTANTIATING')];
  expect(compare([vm('a', 'Running'), vm('without-row', 'Running')], rows)).toEqual([]);
});

test('a row is a difference if it has another status than its VM, or no VM', () => {
  const rows = [row('a', 'POWERED_OFF'), row('gone', 'POWERED_ON')];
  expect(compare([vm('a', 'Running')], rows)).toEqual([
    'tenant/a a POWERED_OFF POWERED_ON',
    'tenant/gone gone POWERED_ON DELETED',
  ]);
});

test('a row in a namespace that is not watched is never a difference', () => {
  const rows = [row('a', 'POWERED_ON'), row('far', 'POWERED_ON')];
  expect(compare([vm('a', 'Running')], rows, ({ id }) => id !== 'far')).toEqual([]);
});

test('an older row of a VM is a difference if it has a status that the mirror writes for existing VMs', () => {
  const old = row('old', 'POWERED_OFF', { vmName: 'a' });
  const never = row('never', 'INSTANTIATING', { vmName: 'a' });
  const rows = [row('a', 'POWERED_ON', { createdAt: 1 }), old, never];
  expect(compare([vm('a', 'Running')], rows)).toEqual(['tenant/a old POWERED_OFF DELETED']);
});

test('a row without a namespace belongs to the VM with the same name and vApp', () => {
  const rows = [
    row('a', 'POWERED_ON', { namespace: '' }),
    row('b', 'POWERED_ON', { namespace: '', vapp: 'w' }),
  ];
  expect(compare([vm('a', 'Running', 'v'), vm('b', 'Running', 'v')], rows)).toEqual([
    '/b b POWERED_ON DELETED',
  ]);
});

test('the differences are printed as a table', () => {
  expect(differenceTable([])).toBe('The table agrees with the cluster.');
  const found = { vm: 'tenant/a', rowId: 'r-1', actual: '', expected: 'POWERED_ON' };
  expect(differenceTable([found]).split('\n')).toEqual([
    'VM         ROW   IN THE TABLE   EXPECTED',
    'tenant/a   r-1   (empty)        POWERED_ON',
  ]);
});
