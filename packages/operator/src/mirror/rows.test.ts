import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { describes, type Match, type Row, RowIndex, vappOf, vappUuid } from './rows.ts';
import { VAPP_LABEL, type VirtualMachine } from './virtual-machine.ts';

const VAPP = '5f1c0a52-0d0e-4d0b-9c5e-0a1b2c3d4e5f';
const OTHER_VAPP = '00000000-0d0e-4d0b-9c5e-0a1b2c3d4e5f';

function row(id: string, fields: Partial<Row> = {}): Row {
  return { id, vmName: 'web', namespace: 'tenant', vapp: VAPP, status: '', createdAt: 0, ...fields };
}

function vm(label?: string, name = 'web', namespace = 'tenant'): VirtualMachine {
  return { metadata: { namespace, name, ...(label !== undefined && { labels: { [VAPP_LABEL]: label } }) } };
}

function indexOf(...rows: readonly Row[]): RowIndex {
  const index = new RowIndex();
  for (const each of rows) index.put(each);
  return index;
}

describe('vApps', () => {
  test.each([
    [VAPP, VAPP],
    [`urn:vcloud:vapp:${VAPP}`, VAPP],
    [VAPP.toUpperCase(), VAPP],
    ['', undefined],
    [undefined, undefined],
  ])('the vApp of a VM with the label %s is %s', (label, expected) => {
    expect(vappOf(vm(label))).toBe(expected);
  });

  test('the vApp of a row is the UUID part of the URN in the table', () => {
    expect(vappUuid(`urn:vcloud:vapp:${VAPP.toUpperCase()}`)).toBe(VAPP);
  });
});

describe('which rows describe a VM', () => {
  test('a row describes a VM with the same namespace, name and vApp, whether the VM is labelled with a UUID or a URN', () => {
    for (const label of [VAPP, `urn:vcloud:vapp:${VAPP}`])
      expect(indexOf(row('r')).match(vm(label))?.row.id).toBe('r');
  });

  test('a row describes a VM without a vApp label if both have the same namespace and name', () => {
    expect(indexOf(row('r')).match(vm())?.row.id).toBe('r');
    expect(indexOf(row('r', { vapp: OTHER_VAPP })).match(vm())?.row.id).toBe('r');
  });

  test('a row without a namespace describes a VM in any namespace if both have the same vApp and name', () => {
    const index = indexOf(row('r', { namespace: '' }));
    expect(index.match(vm(VAPP))?.row.id).toBe('r');
    expect(index.match(vm(VAPP, 'web', 'elsewhere'))?.row.id).toBe('r');
    expect(index.match(vm())).toBeUndefined();
    expect(index.match(vm(OTHER_VAPP))).toBeUndefined();
  });

  test('a row does not describe a VM if the vApp label of the VM names another vApp', () => {
    const index = indexOf(row('other', { vapp: OTHER_VAPP, createdAt: 9 }), row('own', { createdAt: 1 }));
    expect(index.match(vm(VAPP))).toEqual({ row: row('own', { createdAt: 1 }), older: [] });
    expect(indexOf(row('other', { vapp: OTHER_VAPP })).match(vm(VAPP))).toBeUndefined();
  });

  test('a row does not describe a copy of its VM in another namespace', () => {
    expect(indexOf(row('r')).match(vm(VAPP, 'web', 'elsewhere'))).toBeUndefined();
  });

  test('a row does not describe a VM if only the beginning of their names is equal', () => {
    const index = indexOf(row('r', { vmName: 'web-2' }), row('s', { vmName: 'we' }));
    expect(index.match(vm())).toBeUndefined();
  });
});

describe('several rows that describe a VM', () => {
  const rows = [row('a', { createdAt: 1 }), row('c', { createdAt: 3 }), row('b', { createdAt: 2 })];

  test('the newest of several rows that describe a VM is matched', () => {
    const match = indexOf(...rows).match(vm());
    expect(match?.row.id).toBe('c');
    expect(match?.older.map(({ id }) => id)).toEqual(['a', 'b']);
  });

  test('rows with the same creation time are ordered by id, whatever the order of insertion', () => {
    const same = rows.map((each) => ({ ...each, createdAt: 5 }));
    expect(indexOf(...same).match(vm())?.row.id).toBe('c');
    expect(indexOf(...same.toReversed()).match(vm())?.row.id).toBe('c');
  });

  test('the newer of two rows that describe a VM is matched, even if only the older row has a namespace', () => {
    const index = indexOf(row('a', { createdAt: 1 }), row('b', { namespace: '', createdAt: 2 }));
    expect(index.match(vm(VAPP))?.row.id).toBe('b');
    expect(index.match(vm())?.row.id).toBe('a');
  });

  test('the second newest row is matched after the newest was deleted', () => {
    const index = indexOf(...rows);
    index.delete('c');
    expect(index.match(vm())?.row.id).toBe('b');
    index.delete('b');
    expect(index.match(vm())).toEqual({ row: row('a', { createdAt: 1 }), older: [] });
    index.delete('a');
    expect(index.match(vm())).toBeUndefined();
  });
});

describe('the index of rows', () => {
  test('the index finds a row under its new name after the row was replaced', () => {
    const index = indexOf(row('r'));
    index.put(row('r', { vmName: 'db' }));
    expect(index.match(vm())).toBeUndefined();
    expect(index.match(vm(VAPP, 'db'))?.row.id).toBe('r');
    index.put(row('r', { namespace: '' }));
    expect(index.match(vm(VAPP, 'db'))).toBeUndefined();
    expect(index.match(vm(VAPP))?.row.id).toBe('r');
    expect(index.size).toBe(1);
  });

  test('the index keeps one entry for a row that is put twice', () => {
    const index = indexOf(row('r'), row('r', { status: 'POWERED_ON' }));
    expect(index.match(vm())).toEqual({ row: row('r', { status: 'POWERED_ON' }), older: [] });
    expect([...index.rows()]).toHaveLength(1);
  });

  test('the index ignores a changed status of a row that it does not contain', () => {
    const index = indexOf(row('r'));
    index.setStatus('r', 'POWERED_OFF');
    index.setStatus('unknown', 'POWERED_OFF');
    index.delete('unknown');
    expect(index.get('r')?.status).toBe('POWERED_OFF');
    expect(index.get('unknown')).toBeUndefined();
    index.clear();
    expect([index.size, index.match(vm())]).toEqual([0, undefined]);
  });
});

test('after any sequence of changes, `match` finds the same rows as a linear search', () => {
  // Chooses from few values, so that names, namespaces, vApps and times often coincide. One name contains a slash,
  // which is also the separator in keys.
  const vapp = fc.constantFrom('v', 'w');
  const namespace = fc.constantFrom('n', 'm', 'v');
  const name = fc.constantFrom('a', 'b', 'v/a');
  const id = fc.constantFrom('1', '2', '3', '4', '5', '6');
  const arbitraryRow = fc.record({
    id,
    vmName: name,
    vapp,
    status: fc.constant(''),
    namespace: fc.oneof(namespace, fc.constant('')),
    createdAt: fc.nat(2),
  });
  const change = fc.oneof({ weight: 4, arbitrary: arbitraryRow }, { weight: 1, arbitrary: id });
  const label = fc.option(vapp, { nil: undefined });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 20 }), name, namespace, label, (changes, ofName, of, by) => {
      const index = new RowIndex();
      const rows = new Map<string, Row>();
      for (const each of changes) {
        if (typeof each === 'string') {
          index.delete(each);
          rows.delete(each);
        } else {
          index.put(each);
          rows.set(each.id, each);
        }
      }
      const object = vm(by, ofName, of);
      expect(idsOf(index.match(object))).toEqual(idsOf(linearMatch([...rows.values()], object)));
      expect(index.size).toBe(rows.size);
    }),
    { numRuns: 2_000 },
  );
});

function linearMatch(rows: readonly Row[], object: VirtualMachine): Match | undefined {
  const [newest, ...older] = rows
    .filter((each) => describes(each, object))
    .sort((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1));
  return newest && { row: newest, older };
}

function idsOf(match: Match | undefined) {
  return match && { row: match.row.id, older: match.older.map(({ id }) => id).sort() };
}
