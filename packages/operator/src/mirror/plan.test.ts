import { describe, expect, test } from 'vitest';
import { DEFAULT_MAPPING } from './mapping.ts';
import { type Binding, isMirrored, type Observed, type Plan, plan, rowIdOf, rowKey } from './plan.ts';
import { type Row, RowIndex } from './rows.ts';
import type { VirtualMachine } from './virtual-machine.ts';

const NOW = Date.parse('2026-11-16T10:00:00Z');
const OPTIONS = { mapping: DEFAULT_MAPPING, settlingMs: 3_000, claimMs: 10_000 };

interface VmFields {
  readonly uid?: string;
  readonly printable?: string;
  readonly running?: boolean;
  readonly isDeleting?: boolean;
}

function vm({ uid = 'u-1', printable = 'Running', ...rest }: VmFields = {}): VirtualMachine {
  const { running = true, isDeleting = false } = rest;
  return {
    metadata: {
      namespace: 'tenant',
      name: 'web',
      uid,
      creationTimestamp: new Date(NOW - 3_600_000).toISOString(),
      ...(isDeleting && { deletionTimestamp: new Date(NOW).toISOString() }),
    },
    spec: { running },
    status: { printableStatus: printable },
  };
}

function row(status: string, id = 'r-1', createdAt = 1): Row {
  return { id, vmName: 'web', namespace: 'tenant', vapp: 'v', status, createdAt };
}

const bound = (rowId = 'r-1', uid = 'u-1'): Binding => ({ uid, rowId });

function planned(
  object: VirtualMachine | undefined,
  rows: readonly Row[],
  {
    binding,
    transientForMs = 0,
    waitedMs = 3_600_000,
  }: Partial<Pick<Observed, 'binding' | 'transientForMs' | 'waitedMs'>> = {},
) {
  const index = new RowIndex();
  for (const each of rows) index.put(each);
  const result = plan({ vm: object, binding, rows: index, transientForMs, waitedMs }, OPTIONS);
  return { ...result, ...summaryOf(result) };
}

/** Returns a plan with each write as the text `row-id status state uid`, and with ids instead of rows. */
function summaryOf({ writes, row: found, duplicates, againAfterMs }: Plan) {
  return {
    writes: writes.map(({ row: { id }, status, state, uid }) => `${id} ${status} ${state} ${uid}`),
    row: found?.id,
    duplicates: duplicates.map(({ id }) => id),
    againAfterMs,
  };
}

const NOTHING = { writes: [], row: undefined, duplicates: [], againAfterMs: undefined };

describe('a VM with its row', () => {
  test('a changed status of a VM is written to its row', () => {
    expect(planned(vm(), [row('POWERED_OFF')], { binding: bound() })).toEqual({
      ...NOTHING,
      writes: ['r-1 POWERED_ON Running u-1'],
      row: 'r-1',
    });
  });

  test('an unchanged status of a VM is not written again', () => {
    expect(planned(vm(), [row('POWERED_ON')], { binding: bound() })).toEqual({ ...NOTHING, row: 'r-1' });
    expect(planned(vm(), [row('POWERED_ON')])).toEqual({ ...NOTHING, row: 'r-1' });
  });

  test.each(['', 'INSTANTIATING', 'UNRESOLVED'])(
    'a status that the mirror never writes, "%s", is replaced',
    (status) => {
      expect(planned(vm(), [row(status)]).writes).toEqual(['r-1 POWERED_ON Running u-1']);
    },
  );

  test('the row of a VM with a deletionTimestamp becomes DELETING', () => {
    expect(planned(vm({ isDeleting: true }), [row('POWERED_ON')], { binding: bound() }).writes).toEqual([
      'r-1 DELETING Deleting u-1',
    ]);
  });

  test('an older row of a VM becomes DELETED if it has a status that the mirror writes for existing VMs', () => {
    const rows = [row('POWERED_OFF', 'r-1', 1), row('POWERED_OFF', 'r-2', 2)];
    expect(planned(vm(), rows)).toEqual({
      ...NOTHING,
      writes: ['r-1 DELETED Deleted undefined', 'r-2 POWERED_ON Running u-1'],
      row: 'r-2',
      duplicates: ['r-1'],
    });
    const after = [row('DELETED', 'r-1', 1), row('POWERED_ON', 'r-2', 2)];
    expect(planned(vm(), after)).toEqual({ ...NOTHING, row: 'r-2' });
  });

  test('an older row of a VM is not changed if it has a status that the mirror never writes', () => {
    const rows = [row('INSTANTIATING', 'r-1', 1), row('POWERED_ON', 'r-2', 2)];
    expect(planned(vm(), rows)).toEqual({ ...NOTHING, row: 'r-2', duplicates: ['r-1'] });
  });

  test('a VM keeps its row for a while when a newer row appears', () => {
    const rows = [row('POWERED_OFF', 'r-1', 1), row('INSTANTIATING', 'r-2', 2)];
    expect(planned(vm(), rows, { binding: bound(), waitedMs: 4_000 })).toEqual({
      ...NOTHING,
      writes: ['r-1 POWERED_ON Running u-1'],
      row: 'r-1',
      againAfterMs: 6_000,
      isWaiting: true,
    });
  });

  test('a newer row replaces the row of a VM after the waiting time', () => {
    const rows = [row('POWERED_ON', 'r-1', 1), row('', 'r-2', 2)];
    expect(planned(vm(), rows, { binding: bound() }).writes).toEqual([
      'r-1 DELETED Deleted undefined',
      'r-2 POWERED_ON Running u-1',
    ]);
  });
});

describe('a VM without a row', () => {
  test('nothing is written for a VM without a known row', () => {
    expect(planned(vm(), [])).toEqual(NOTHING);
  });

  test('nothing is written to a row that was soft-deleted after it was bound to its VM', () => {
    expect(planned(vm(), [], { binding: bound() })).toEqual(NOTHING);
    expect(planned(undefined, [], { binding: bound() })).toEqual(NOTHING);
  });
});

describe('a VM that no longer exists', () => {
  test('the row of a VM that no longer exists becomes DELETED', () => {
    expect(planned(undefined, [row('POWERED_ON')], { binding: bound() })).toEqual({
      ...NOTHING,
      writes: ['r-1 DELETED Deleted undefined'],
    });
  });

  test('a row that is DELETED already is not written again', () => {
    expect(planned(undefined, [row('DELETED')], { binding: bound() })).toEqual(NOTHING);
  });

  test('nothing is written for a VM that no longer exists if no row was bound to it', () => {
    expect(planned(undefined, [row('POWERED_ON')])).toEqual(NOTHING);
  });
});

describe('a VM that was re-created under the same name', () => {
  const successor = vm({ uid: 'u-2' });

  test('a re-created VM with its own row: the old row becomes DELETED, and the new row shows the new VM', () => {
    const rows = [row('POWERED_ON', 'r-1', 1), row('INSTANTIATING', 'r-2', 2)];
    expect(planned(successor, rows, { binding: bound(), waitedMs: 0 })).toEqual({
      ...NOTHING,
      writes: ['r-1 DELETED Deleted undefined', 'r-2 POWERED_ON Running u-2'],
      row: 'r-2',
      duplicates: ['r-1'],
    });
  });

  test('only the old row is written if the new row of a re-created VM already has the right status', () => {
    const rows = [row('POWERED_ON', 'r-1', 1), row('POWERED_ON', 'r-2', 2)];
    expect(planned(successor, rows, { binding: bound(), waitedMs: 0 }).writes).toEqual([
      'r-1 DELETED Deleted undefined',
    ]);
  });

  test('a re-created VM without its own row waits for one, and the old row becomes DELETED', () => {
    expect(planned(successor, [row('POWERED_ON')], { binding: bound(), waitedMs: 4_000 })).toEqual({
      ...NOTHING,
      writes: ['r-1 DELETED Deleted undefined'],
      againAfterMs: 6_000,
      isWaiting: true,
    });
  });

  test('a re-created VM without its own row waits for one, even if the old row is already DELETED', () => {
    for (const binding of [undefined, bound()])
      expect(planned(successor, [row('DELETED')], { binding, waitedMs: 4_000 })).toEqual({
        ...NOTHING,
        againAfterMs: 6_000,
        isWaiting: true,
      });
  });

  test.each([10_000, 3_600_000])(
    'a re-created VM without its own row takes over the old row after a wait of %i ms',
    (waitedMs) => {
      const rows = [row('DELETED')];
      const writes = ['r-1 POWERED_ON Running u-2'];
      const expected = { ...NOTHING, writes, row: 'r-1', isTakeOver: true };
      expect(planned(successor, rows, { waitedMs })).toEqual(expected);
      expect(planned(successor, rows, { binding: bound(), waitedMs })).toEqual(expected);
    },
  );

  test('a re-created VM can take over an old row that was never marked as DELETED', () => {
    expect(planned(successor, [row('POWERED_OFF')], { binding: bound(), waitedMs: 10_000 })).toEqual({
      ...NOTHING,
      writes: ['r-1 POWERED_ON Running u-2'],
      row: 'r-1',
      isTakeOver: true,
    });
    expect(planned(successor, [row('POWERED_ON')], { binding: bound(), waitedMs: 10_000 }).writes).toEqual(
      [],
    );
  });

  test('the row of a new VM is not changed when the deletion of the old VM is reported late', () => {
    // The new VM is in the cache, and its row is bound to it, before the deletion of the old VM is reported.
    const rows = [row('DELETED', 'r-1', 1), row('POWERED_ON', 'r-2', 2)];
    expect(planned(successor, rows, { binding: bound('r-2', 'u-2'), waitedMs: 0 })).toEqual({
      ...NOTHING,
      row: 'r-2',
    });
  });

  test('a re-created VM waits for its own row, and uses the row as soon as it appears', () => {
    const rows = [row('DELETED', 'r-1', 1), row('INSTANTIATING', 'r-2', 2)];
    expect(planned(successor, rows, { waitedMs: 4_000 }).writes).toEqual(['r-2 POWERED_ON Running u-2']);
  });

  test('the row of the old VM becomes DELETED even if no row describes the new VM', () => {
    const moved: Row = { ...row('POWERED_ON'), vmName: 'renamed' };
    expect(planned(successor, [moved], { binding: bound(), waitedMs: 0 })).toEqual({
      ...NOTHING,
      writes: ['r-1 DELETED Deleted undefined'],
    });
  });
});

describe('transient Stopped', () => {
  const stopped = (fields: VmFields = {}) => vm({ printable: 'Stopped', ...fields });

  test.each(['POWERED_ON', 'POWERING_OFF', 'ERROR'])(
    'the row keeps the status %s while the state Stopped may be transient',
    (status) => {
      expect(planned(stopped(), [row(status)], { binding: bound(), transientForMs: 1_000 })).toEqual({
        ...NOTHING,
        row: 'r-1',
        againAfterMs: 2_000,
      });
    },
  );

  test('Stopped is written after the settling time', () => {
    for (const transientForMs of [3_000, 60_000])
      expect(planned(stopped(), [row('POWERED_ON')], { binding: bound(), transientForMs })).toEqual({
        ...NOTHING,
        writes: ['r-1 POWERED_OFF Stopped u-1'],
        row: 'r-1',
      });
  });

  test.each(['', 'INSTANTIATING'])(
    'for a new VM in the state Stopped, STARTING is written to a row with the status "%s"',
    (status) => {
      expect(planned(stopped(), [row(status)])).toEqual({
        ...NOTHING,
        writes: ['r-1 STARTING NewRunning u-1'],
        row: 'r-1',
        againAfterMs: 3_000,
      });
    },
  );

  test('nothing is written for a VM in the state Stopped if its row is POWERED_OFF already', () => {
    expect(planned(stopped(), [row('POWERED_OFF')])).toEqual({ ...NOTHING, row: 'r-1', againAfterMs: 3_000 });
  });

  test('the row of a new VM stays STARTING while the state Stopped may be transient', () => {
    expect(planned(stopped(), [row('STARTING')])).toEqual({
      ...NOTHING,
      row: 'r-1',
      againAfterMs: 3_000,
    });
  });

  test('the new row of a re-created VM in the state Stopped becomes STARTING', () => {
    const rows = [row('POWERED_ON', 'r-1', 1), row('', 'r-2', 2)];
    expect(planned(stopped({ uid: 'u-2' }), rows, { binding: bound() }).writes).toEqual([
      'r-1 DELETED Deleted undefined',
      'r-2 STARTING NewRunning u-2',
    ]);
  });

  test('an old row becomes STARTING when a VM in the state Stopped takes it over', () => {
    expect(planned(stopped({ uid: 'u-2' }), [row('DELETED')]).writes).toEqual([
      'r-1 STARTING NewRunning u-2',
    ]);
  });

  test('the state Stopped is not transient if the VM should not run or is being deleted', () => {
    const binding = bound();
    expect(planned(stopped({ running: false }), [row('POWERED_ON')], { binding }).writes).toEqual([
      'r-1 POWERED_OFF Stopped u-1',
    ]);
    expect(planned(stopped({ isDeleting: true }), [row('POWERED_ON')], { binding }).writes).toEqual([
      'r-1 DELETING Deleting u-1',
    ]);
  });
});

test('a row counts as mirrored if it has a status that the mirror writes for an existing VM', () => {
  const statuses = ['POWERED_ON', 'STOPPED', 'DELETING', 'UNKNOWN', 'DELETED', 'INSTANTIATING', ''];
  expect(statuses.filter((status) => isMirrored(row(status), DEFAULT_MAPPING))).toEqual([
    'POWERED_ON',
    'STOPPED',
    'DELETING',
    'UNKNOWN',
  ]);
});

test('the key of a row in the work queue is never the key of a VM', () => {
  expect(rowIdOf(rowKey({ id: 'urn:vcloud:vm:1' }))).toBe('urn:vcloud:vm:1');
  expect(rowIdOf('tenant/web')).toBeUndefined();
});
