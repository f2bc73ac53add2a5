import { VirtualClock } from '@vmwright/core/testing';
import { nodeWorld, ObjectCache, type World } from '@vmwright/runtime';
import { describe, expect, test } from 'vitest';
import type { CacheAge } from './cache-age.ts';
import { compare } from './comparison.ts';
import { DEFAULT_MAPPING } from './mapping.ts';
import type { Row } from './rows.ts';
import { VAPP_LABEL, VirtualMachine } from './virtual-machine.ts';
import { indexByVapp, VAPP_INDEX, VmRows } from './vm-rows.ts';

const NEVER = new AbortController().signal;

interface VmFields {
  readonly uid?: string;
  readonly printable?: string;
  readonly namespace?: string;
  readonly vapp?: string;
}

function row(id: string, status: string, fields: Partial<Row> = {}): Row {
  return { id, vmName: id, namespace: 'tenant', vapp: 'v', status, createdAt: 0, ...fields };
}

async function* pagesOf(...pages: readonly (readonly Row[])[]) {
  yield* pages;
}

/** Starts with an empty cluster and an empty table. */
function start(namespaces?: readonly string[]) {
  const clock = new VirtualClock(Date.parse('2026-11-16T10:00:00Z'));
  const world: World = {
    ...nodeWorld,
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, callback) => clock.after(ms, callback),
  };
  const unused = () => {
    throw new Error('the test does not list or watch');
  };
  const vms = new ObjectCache({
    world,
    kind: VirtualMachine,
    client: { watch: unused, pages: unused },
    indexers: { [VAPP_INDEX]: indexByVapp },
  });
  let version = 0;
  /** Creates or changes a VM. */
  const put = (name: string, { uid = 'u-1', printable = 'Running', vapp, ...rest }: VmFields = {}) => {
    version += 1;
    const { namespace = 'tenant' } = rest;
    const vm: VirtualMachine = {
      metadata: {
        namespace,
        name,
        uid,
        resourceVersion: String(version),
        creationTimestamp: new Date(clock.now() - 3_600_000).toISOString(),
        ...(vapp !== undefined && { labels: { [VAPP_LABEL]: vapp } }),
      },
      spec: { running: true },
      status: { printableStatus: printable },
    };
    vms.onWrite(vm);
    return vm;
  };
  const duplicates: string[] = [];
  const unrecognized: string[] = [];
  const vmRows = new VmRows({
    world,
    vms,
    namespaces,
    mapping: DEFAULT_MAPPING,
    settlingMs: 3_000,
    claimMs: 10_000,
    onDuplicates: (key, newest, older) =>
      duplicates.push(`${key} ${newest?.id} ${older.map(({ id }) => id)}`),
    onUnrecognized: (key) => unrecognized.push(key),
  });
  /** Removes a VM from the cache and reports the deletion, as the watch does. */
  const remove = (vm: VirtualMachine) => {
    const { namespace = '', name, uid = '' } = vm.metadata;
    vms.onDelete({ namespace, name }, uid);
    vmRows.deleted(`${namespace}/${name}`, vm);
  };
  /** Plans the writes for a key, and stores the plan as if all its writes were committed. */
  const mirror = (key: string) => {
    const planned = vmRows.plan(key);
    vmRows.settle(key, planned);
    for (const write of planned.writes) vmRows.committed(key, write);
    return planned.writes.map(({ row: { id }, status }) => `${id} ${status}`);
  };
  /** Compares a table with the cluster. */
  const compareWith = (
    rows: readonly Row[],
    owns: (key: string) => boolean = () => true,
    refresh: () => Promise<void> = async () => undefined,
    cacheAge: CacheAge = 'stale',
  ) => {
    const options = { clock, session: { rows: () => pagesOf(rows) }, vmRows, owns, refresh, cacheAge };
    const onSettled = vmRows.settle.bind(vmRows);
    return compare({ ...options, keys: () => vms.keys(), onSettled }, NEVER);
  };
  return { clock, vms, vmRows, put, remove, mirror, compareWith, duplicates, unrecognized };
}

describe('comparisons of the table with the cluster', () => {
  test('a comparison of the table with the cluster lists the VMs after it has read the table', async () => {
    const { put, compareWith } = start();
    const refresh = async () => void put('new');
    expect(await compareWith([row('new', 'POWERED_ON')], undefined, refresh)).toEqual([]);
  });

  // The row has the status of the VM `same` and differs from the VM `other`. The VM `gone` does not exist.
  test.each<[CacheAge, string, number]>([
    ['stale', 'same', 1],
    ['late', 'same', 0],
    ['late', 'other', 1],
    ['listed', 'same', 0],
    ['listed', 'other', 0],
    ['listed', 'gone', 1],
  ])(
    'with a cache that is "%s", a comparison with a row of the VM "%s" lists the VMs %i times',
    async (cacheAge, name, times) => {
      const { put, compareWith } = start();
      put('same');
      put('other', { printable: 'Paused' });
      let lists = 0;
      const refresh = async () => {
        lists += 1;
      };
      await compareWith([row(name, 'POWERED_ON')], undefined, refresh, cacheAge);
      expect(lists).toBe(times);
    },
  );

  test.each<CacheAge>(['late', 'listed'])(
    'a comparison does not report a row that is corrected while the VMs are being listed (cache: %s)',
    async (cacheAge) => {
      const { put, compareWith } = start();
      put('web', { printable: 'Paused' });
      const rows = [row('web', 'POWERED_ON'), row('gone', 'POWERED_ON')];
      const refresh = async () => {
        rows[0] = row('web', 'SUSPENDED');
      };
      expect(await compareWith(rows, undefined, refresh, cacheAge)).toEqual(['/gone']);
    },
  );

  test('a comparison of the table with the cluster finds rows with the wrong status and rows of deleted VMs', async () => {
    const { put, compareWith, mirror } = start();
    for (const name of ['same', 'other', 'new']) put(name);
    const found = await compareWith([
      row('same', 'POWERED_ON'),
      row('other', 'POWERED_OFF'),
      row('new', 'INSTANTIATING'),
      row('gone', 'POWERED_ON'),
      row('deleting', 'DELETING'),
    ]);
    expect([...found].sort()).toEqual(['/deleting', '/gone', 'tenant/new', 'tenant/other']);
    expect(found.flatMap(mirror).sort()).toEqual([
      'deleting DELETED',
      'gone DELETED',
      'new POWERED_ON',
      'other POWERED_ON',
    ]);
    expect(found.flatMap(mirror)).toEqual([]);
  });

  test('a comparison of the table with the cluster ignores a row without a VM if the row has a status that the mirror never writes for existing VMs', async () => {
    const { compareWith } = start();
    const rows = [row('a', 'INSTANTIATING'), row('b', ''), row('c', 'DELETED'), row('d', 'RESOLVED')];
    expect(await compareWith(rows)).toEqual([]);
  });

  test('a comparison of the table with the cluster ignores rows of unwatched namespaces and of other replicas', async () => {
    const { compareWith } = start(['tenant']);
    const far = row('far', 'POWERED_ON', { namespace: 'elsewhere' });
    const unknown = row('unknown', 'POWERED_ON', { namespace: '' });
    expect(await compareWith([row('gone', 'POWERED_ON'), far, unknown])).toEqual(['/gone']);
    expect(await compareWith([row('gone', 'POWERED_ON')], () => false)).toEqual([]);
  });

  test('a comparison of the table with the cluster matches rows without a namespace to VMs by vApp and name', async () => {
    const { put, compareWith } = start();
    put('kept', { vapp: 'v', namespace: 'anywhere' });
    put('gone', { vapp: 'w' });
    const rows = ['kept', 'gone'].map((name) => row(name, 'POWERED_ON', { namespace: '' }));
    expect(await compareWith(rows)).toEqual(['/gone']);
  });

  test('a comparison of the table with the cluster finds that a row has no VM if the VM of that name belongs to another vApp', async () => {
    const { put, compareWith, mirror } = start();
    put('web', { vapp: 'w' });
    const rows = [
      row('old', 'POWERED_ON', { vmName: 'web', vapp: 'v' }),
      row('new', 'POWERED_ON', { vmName: 'web', vapp: 'w' }),
    ];
    expect(await compareWith(rows)).toEqual(['/old']);
    expect(mirror('/old')).toEqual(['old DELETED']);
  });

  test('a comparison of many rows with many VMs is done in slices, so that other work can run in between', async () => {
    const { clock, put, compareWith } = start();
    const names = Array.from({ length: 5_000 }, (_, at) => `vm-${at}`);
    for (const name of names) put(name);
    const comparing = compareWith(names.map((name) => row(name, 'POWERED_OFF')));
    expect(await clock.runUntilSettled(comparing)).toHaveLength(5_000);
  });
});

describe('rows without a VM', () => {
  test('a row without a VM is not changed in its first minute, because the VM may still be created', async () => {
    const { clock, vmRows, compareWith, mirror } = start();
    const fresh = row('web', 'STOPPED', { createdAt: clock.now() - 20_000 });
    expect(await compareWith([fresh])).toEqual(['/web']);
    expect(vmRows.plan('/web')).toMatchObject({ writes: [], againAfterMs: 40_000 });
    clock.advance(40_000);
    expect(mirror('/web')).toEqual(['web DELETED']);
  });

  test('a row without a VM is not written if a VM of the row appears, or the row is deleted, before the write', async () => {
    const { put, vmRows, compareWith, mirror } = start();
    expect(await compareWith([row('web', 'POWERED_ON'), row('db', 'POWERED_ON')])).toEqual(['/web', '/db']);
    put('web');
    expect(mirror('/web')).toEqual([]);
    vmRows.gone('/db', row('db', 'POWERED_ON'));
    expect(mirror('/db')).toEqual([]);
  });
});

describe('reads of the table', () => {
  test('after the table is read, the known rows are the rows of the table', async () => {
    const { vmRows } = start();
    await vmRows.read(pagesOf([row('a', ''), row('b', '')], [row('c', '')]));
    await vmRows.read(pagesOf([row('a', 'POWERED_ON')], [row('d', '')]));
    expect([...vmRows.rows.rows()].map(({ id, status }) => `${id} ${status}`)).toEqual([
      'a POWERED_ON',
      'd ',
    ]);
  });

  test('reading the table keeps rows that are written or found while the table is read', async () => {
    const { vmRows, put, mirror } = start();
    await vmRows.read(pagesOf([row('web', 'POWERED_OFF')]));
    const pages = async function* () {
      yield [];
      put('web');
      expect(mirror('tenant/web')).toEqual(['web POWERED_ON']);
      vmRows.found(row('late', 'INSTANTIATING'));
      yield [row('web', 'POWERED_OFF')]; // as it was before the write
    };
    await vmRows.read(pages());
    expect([...vmRows.rows.rows()].map(({ id, status }) => `${id} ${status}`)).toEqual([
      'web POWERED_ON',
      'late INSTANTIATING',
    ]);
  });

  test('a failed read of the table keeps all rows', async () => {
    const { vmRows } = start();
    await vmRows.read(pagesOf([row('a', ''), row('b', '')]));
    const failing = async function* () {
      yield [row('a', 'POWERED_ON')];
      throw new Error('connection terminated');
    };
    await expect(vmRows.read(failing())).rejects.toThrow('connection terminated');
    expect(vmRows.rows.size).toBe(2);
  });

  test('a known row is not replaced by the result of a search, because a write to the row may be in flight', async () => {
    const { vmRows } = start();
    await vmRows.read(pagesOf([row('a', 'POWERED_ON')]));
    vmRows.found(row('a', 'POWERED_OFF'));
    expect(vmRows.rows.get('a')?.status).toBe('POWERED_ON');
  });
});

describe('searches for the row of a VM', () => {
  test('the row of a VM must be searched for if the VM was created after the read of the table began', async () => {
    const { put, vmRows } = start();
    const create = (name: string) => {
      put(name);
      vmRows.created(`tenant/${name}`);
    };
    create('old');
    await vmRows.read(
      (async function* () {
        yield [row('old', 'POWERED_OFF')];
        create('new');
      })(),
    );
    expect(['tenant/old', 'tenant/new'].map((key) => vmRows.needsSearch(key))).toEqual([false, true]);
    vmRows.searching(['tenant/new']);
    expect(vmRows.needsSearch('tenant/new')).toBe(false);
  });

  test('the row of a new VM must still be searched for after a failed read of the table', async () => {
    const { put, vmRows } = start();
    put('web');
    vmRows.created('tenant/web');
    const failing = async function* () {
      yield [];
      throw new Error('connection terminated');
    };
    await expect(vmRows.read(failing())).rejects.toThrow('connection terminated');
    expect(vmRows.needsSearch('tenant/web')).toBe(true);
  });

  test('after the row of a VM was soft-deleted, the table must be searched for another row of the VM', async () => {
    const { put, vmRows, mirror } = start();
    await vmRows.read(pagesOf([row('web', 'POWERED_OFF')]));
    put('web');
    vmRows.created('tenant/web');
    mirror('tenant/web');
    expect(vmRows.needsSearch('tenant/web')).toBe(false);
    vmRows.gone('tenant/web', row('web', 'POWERED_ON'));
    expect(vmRows.needsSearch('tenant/web')).toBe(true);
  });
});

test('a printableStatus that the mapping lacks is reported each time a VM changes to it', async () => {
  const { put, vmRows, mirror, unrecognized } = start();
  await vmRows.read(pagesOf([row('web', 'UNKNOWN')]));
  put('without-row', { printable: 'Hibernating' });
  mirror('tenant/without-row');
  for (const printable of ['Hibernating', 'Hibernating', 'Running', 'Hibernating']) {
    put('web', { printable });
    mirror('tenant/web');
  }
  expect(unrecognized).toEqual(['tenant/web', 'tenant/web']);
});

describe('transient Stopped', () => {
  test('a VM must report Stopped for 3 s without interruption before its row becomes POWERED_OFF', async () => {
    const { clock, put, vmRows, mirror } = start();
    await vmRows.read(pagesOf([row('web', 'POWERED_ON')]));
    put('web');
    mirror('tenant/web');
    put('web', { printable: 'Stopped' });
    expect(vmRows.plan('tenant/web').againAfterMs).toBe(3_000);
    clock.advance(2_000);
    expect(vmRows.plan('tenant/web').againAfterMs).toBe(1_000);
    put('web', { printable: 'Running' });
    expect(mirror('tenant/web')).toEqual([]);
    put('web', { printable: 'Stopped' });
    expect(vmRows.plan('tenant/web').againAfterMs).toBe(3_000);
    clock.advance(3_000);
    expect(mirror('tenant/web')).toEqual(['web POWERED_OFF']);
  });
});

describe('VMs without a row', () => {
  test('a VM without a row is unmatched until its row is found', () => {
    const { put, vmRows, mirror } = start();
    put('web');
    expect(mirror('tenant/web')).toEqual([]);
    expect([vmRows.unmatched.size, vmRows.isMatched('tenant/web')]).toEqual([1, false]);
    vmRows.found(row('web', 'INSTANTIATING'));
    expect(vmRows.isMatched('tenant/web')).toBe(true);
    expect(mirror('tenant/web')).toEqual(['web POWERED_ON']);
    expect(vmRows.unmatched.size).toBe(0);
  });

  test('`giveUp` does not end the search for the row of a VM while the VM exists', () => {
    const { put, vmRows, mirror } = start();
    put('web');
    mirror('tenant/web');
    vmRows.giveUp('tenant/web');
    expect(vmRows.unmatched.size).toBe(1);
  });

  test('a row that is found after its VM was deleted becomes DELETED', () => {
    const { put, remove, vmRows, mirror } = start();
    remove(put('web'));
    expect(mirror('tenant/web')).toEqual([]);
    expect([vmRows.unmatched.size, vmRows.isMatched('tenant/web')]).toEqual([1, false]);
    vmRows.found(row('web', 'INSTANTIATING'));
    expect(vmRows.isDeletedWithRow('tenant/web')).toBe(true);
    vmRows.bindDeleted('tenant/web');
    expect(mirror('tenant/web')).toEqual(['web DELETED']);
    expect(vmRows.unmatched.size).toBe(0);
  });

  test('a row that is found after its VM was deleted belongs to a new VM of the same name, if one exists', () => {
    const { put, remove, vmRows, mirror } = start();
    remove(put('web'));
    vmRows.found(row('web', 'STOPPED'));
    put('web', { uid: 'u-2' });
    vmRows.bindDeleted('tenant/web');
    expect(mirror('tenant/web')).toEqual(['web POWERED_ON']);
  });

  test('the search for the row of a deleted VM ends after some attempts', () => {
    const { put, remove, vmRows, mirror } = start();
    remove(put('web'));
    mirror('tenant/web');
    vmRows.giveUp('tenant/web');
    expect([vmRows.unmatched.size, vmRows.isMatched('tenant/web')]).toEqual([0, true]);
    vmRows.found(row('web', 'INSTANTIATING'));
    expect(mirror('tenant/web')).toEqual([]);
  });
});

describe('re-created VMs', () => {
  test('the old row of a re-created VM becomes DELETED even if no deletion was observed', async () => {
    const { put, vmRows, mirror } = start();
    await vmRows.read(pagesOf([row('old', 'POWERED_ON', { vmName: 'web', createdAt: 1 })]));
    put('web', { uid: 'u-1' });
    expect(mirror('tenant/web')).toEqual([]);
    put('web', { uid: 'u-2', printable: 'Starting' });
    vmRows.found(row('new', 'INSTANTIATING', { vmName: 'web', createdAt: 2 }));
    expect(mirror('tenant/web')).toEqual(['old DELETED', 'new POWERING_ON']);
    expect(mirror('tenant/web')).toEqual([]);
  });

  test('a re-created VM that took over its old row switches to its new row 10 s after the new row is found', async () => {
    const { clock, put, vmRows, mirror } = start();
    await vmRows.read(pagesOf([row('old', 'DELETED', { vmName: 'web', createdAt: 1 })]));
    put('web');
    expect(mirror('tenant/web')).toEqual([]);
    clock.advance(10_000);
    expect(mirror('tenant/web')).toEqual(['old POWERED_ON']);
    clock.advance(1_000);
    expect(vmRows.dueSearches()).toEqual(['tenant/web']);
    expect(vmRows.isFound('tenant/web')).toBe(false);
    clock.advance(2_000);
    expect(vmRows.dueSearches()).toEqual(['tenant/web']);
    vmRows.found(row('new', 'INSTANTIATING', { vmName: 'web', createdAt: 2 }));
    expect(vmRows.isFound('tenant/web')).toBe(true);
    expect(mirror('tenant/web')).toEqual([]);
    clock.advance(10_000);
    expect(mirror('tenant/web')).toEqual(['old DELETED', 'new POWERED_ON']);
    expect(vmRows.dueSearches()).toEqual([]);
  });

  test('after a re-created VM took over its old row, the table is searched 14 times for its new row', async () => {
    const { clock, put, vmRows, mirror } = start();
    await vmRows.read(pagesOf([row('old', 'DELETED', { vmName: 'web' })]));
    put('web');
    mirror('tenant/web');
    clock.advance(10_000);
    mirror('tenant/web');
    let searches = 0;
    for (let seconds = 0; seconds < 900; seconds++) {
      clock.advance(1_000);
      for (const key of vmRows.dueSearches()) {
        searches += 1;
        expect(vmRows.isFound(key)).toBe(false);
      }
    }
    expect(searches).toBe(14);
  });

  test('the row of a re-created VM does not become DELETED when the deletion of the old VM is reported late', async () => {
    const { put, vmRows, mirror } = start();
    const rows = [
      row('old', 'DELETED', { vmName: 'web', createdAt: 1 }),
      row('new', 'INSTANTIATING', { vmName: 'web', createdAt: 2 }),
    ];
    await vmRows.read(pagesOf(rows));
    const old = put('web', { uid: 'u-1' });
    put('web', { uid: 'u-2' });
    expect(mirror('tenant/web')).toEqual(['new POWERED_ON']);
    vmRows.deleted('tenant/web', old);
    expect(mirror('tenant/web')).toEqual([]);
    expect(vmRows.rows.get('new')?.status).toBe('POWERED_ON');
  });
});

test('duplicate rows of a VM are reported once, and counted until one row is left', async () => {
  const { put, vmRows, mirror, duplicates } = start();
  const older = row('old', 'INSTANTIATING', { vmName: 'web', createdAt: 1 });
  await vmRows.read(pagesOf([older, row('new', '', { vmName: 'web', createdAt: 2 })]));
  put('web');
  for (const printable of ['Starting', 'Running']) {
    put('web', { printable });
    mirror('tenant/web');
  }
  expect([duplicates, vmRows.duplicates]).toEqual([['tenant/web new old'], 1]);
  vmRows.gone('tenant/web', older);
  mirror('tenant/web');
  expect([duplicates.length, vmRows.duplicates]).toEqual([1, 0]);
});

test('a VM is unmatched after its row was soft-deleted', async () => {
  const { put, vmRows, mirror } = start();
  const old = row('web', 'POWERED_ON');
  await vmRows.read(pagesOf([old]));
  put('web');
  mirror('tenant/web');
  put('web', { printable: 'Stopping' });
  vmRows.gone('tenant/web', old);
  expect(mirror('tenant/web')).toEqual([]);
  expect(vmRows.unmatched.size).toBe(1);
});
