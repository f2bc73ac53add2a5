import { field, type KubeObject, startMirror } from '@vmwright/testbed';
import { test as base } from '@vmwright/testbed/vitest';
import { describe, expect } from 'vitest';
import { playLife } from './mirror-life.ts';
import { healthOf, machinePath, type WithMirror, withMirror } from './with-mirror.ts';

const test = base.extend(
  'env',
  { scope: 'file' },
  async ({ kubevirt }, { onCleanup }): Promise<WithMirror> => {
    const env = await withMirror(kubevirt);
    onCleanup(() => env[Symbol.asyncDispose]());
    await env.ssvirt.query(`
      CREATE TABLE history (id text, status text);
      CREATE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO history VALUES (new.id, new.status); RETURN new; END $$;
      CREATE TRIGGER remember AFTER UPDATE ON vms FOR EACH ROW EXECUTE FUNCTION remember();`);
    return env;
  },
);

const UUID = '22222222-2222-4222-8222-222222222222';

/** Returns all statuses that a row has had, except the first. */
async function historyOf({ ssvirt }: WithMirror, id: string): Promise<readonly unknown[]> {
  const rows = await ssvirt.query('SELECT status FROM history WHERE id = $1', [id]);
  return rows.map(({ status }) => status);
}

describe('rows during the life of a VM', { timeout: 120_000 }, () => {
  test('the row of a VM follows its start, pause, stop, second start and deletion', async ({
    env,
    namespace,
    kubevirt,
  }) => {
    const other = await env.ssvirt.insertVm({ namespace, name: 'other' });
    await playLife(kubevirt, env.ssvirt, namespace);
    expect(await env.ssvirt.status(other), 'a row without a VM').toBe('INSTANTIATING');
    expect(await env.metric('ssvirt_vm_corrections_total{trigger="resync"}')).toBe(0);
  });

  test('the row of a VM whose guest crashes during boot becomes ERROR', async ({
    env,
    namespace,
    kubevirt,
  }) => {
    const id = await env.ssvirt.insertVm({ namespace, name: 'crashing' });
    await env.create(namespace, 'crashing', { annotations: { boot: 'crash' } });
    await env.until(id, 'ERROR');
    // KubeVirt restarts a crashed VM again and again. The VM is deleted, because other tests compare the whole table
    // with the cluster.
    await kubevirt.kubectl(['-n', namespace, 'delete', 'virtualmachine', 'crashing']);
    await env.until(id, 'DELETED');
  });

  test('the row of a new VM never becomes POWERED_OFF while the VM starts', async ({ env, namespace }) => {
    const id = await env.ssvirt.insertVm({ namespace, name: 'starting' });
    await env.create(namespace, 'starting');
    await env.until(id, 'POWERED_ON');
    expect(await historyOf(env, id)).not.toContain('POWERED_OFF');
  });

  test('the row of a VM that is deleted by force becomes DELETED', async ({ env, namespace, kubevirt }) => {
    const id = await env.ssvirt.insertVm({ namespace, name: 'forced' });
    await env.create(namespace, 'forced', { runStrategy: 'Halted' });
    await env.until(id, 'POWERED_OFF');
    await kubevirt.kubectl([
      '-n',
      namespace,
      'delete',
      'virtualmachine',
      'forced',
      '--force',
      '--grace-period=0',
    ]);
    await env.until(id, 'DELETED');
  });
});

describe('rows of VMs', () => {
  test('the row of a VM is found when it is inserted after the VM', async ({ env, namespace }) => {
    await env.create(namespace, 'late', { runStrategy: 'Halted' });
    await expect.poll(() => env.metric('ssvirt_vm_without_row')).toBeGreaterThan(0);
    const id = await env.ssvirt.insertVm({ namespace, name: 'late' });
    await env.until(id, 'POWERED_OFF');
  });

  test('if several vApps have VMs of the same name, the vApp label of the VM selects its row', async ({
    env,
    namespace,
  }) => {
    const wrong = await env.ssvirt.insertVm({ namespace, name: 'labelled' });
    const right = await env.ssvirt.insertVm({ namespace, name: 'labelled', vapp: UUID });
    const newest = await env.ssvirt.insertVm({ namespace, name: 'labelled' });
    await env.create(namespace, 'labelled', {
      runStrategy: 'Halted',
      labels: { 'vapp.ssvirt.io/vapp-id': UUID },
    });
    await env.until(right, 'POWERED_OFF');
    expect([await env.ssvirt.status(wrong), await env.ssvirt.status(newest)]).toEqual(
      Array(2).fill('INSTANTIATING'),
    );
  });

  test('if several rows match a VM, the mirror updates the newest one and reports the duplicates', async ({
    env,
    namespace,
  }) => {
    const older = await env.ssvirt.insertVm({ namespace, name: 'twice', age: 60 });
    const newer = await env.ssvirt.insertVm({ namespace, name: 'twice' });
    await env.create(namespace, 'twice', { runStrategy: 'Halted' });
    await env.until(newer, 'POWERED_OFF');
    expect(await env.ssvirt.status(older)).toBe('INSTANTIATING');
    expect(await env.log()).toContain('Several rows describe this VM');
    expect(await env.metric('ssvirt_vm_duplicate_rows')).toBe(1);
  });

  test('a soft-deleted row is never used for a VM, even if it is the newest', async ({ env, namespace }) => {
    const id = await env.ssvirt.insertVm({ namespace, name: 'soft' });
    await env.ssvirt.query('UPDATE vms SET deleted_at = now() WHERE id = $1', [id]);
    const next = await env.ssvirt.insertVm({ namespace, name: 'soft', age: 3_600 });
    await env.create(namespace, 'soft', { runStrategy: 'Halted' });
    await env.until(next, 'POWERED_OFF');
    expect(await env.ssvirt.status(id)).toBe('INSTANTIATING');
  });

  test('a re-created VM gets its own row, and the old row stays DELETED', async ({
    env,
    namespace,
    kubevirt,
  }) => {
    const first = await env.ssvirt.insertVm({ namespace, name: 'again' });
    await env.create(namespace, 'again', { runStrategy: 'Halted' });
    await env.until(first, 'POWERED_OFF');
    await kubevirt.kubectl(['-n', namespace, 'delete', 'virtualmachine', 'again']);
    await env.create(namespace, 'again', { runStrategy: 'Halted' });
    // Checks the history, because the first row is DELETED only for a moment if the new VM takes it over. The new VM
    // does this as long as it has no row of its own.
    await expect.poll(() => historyOf(env, first)).toContain('DELETED');
    const second = await env.ssvirt.insertVm({ namespace, name: 'again' });
    await env.until(second, 'POWERED_OFF');
    await env.until(first, 'DELETED');
  });

  test('a re-created VM without its own row uses the row of its predecessor', async ({
    env,
    namespace,
    kubevirt,
  }) => {
    const id = await env.ssvirt.insertVm({ namespace, name: 'reused' });
    await env.create(namespace, 'reused', { runStrategy: 'Halted' });
    await env.until(id, 'POWERED_OFF');
    await kubevirt.kubectl(['-n', namespace, 'delete', 'virtualmachine', 'reused']);
    await env.create(namespace, 'reused', { runStrategy: 'Halted' });
    await expect.poll(() => historyOf(env, id)).toContain('DELETED');
    await env.until(id, 'POWERED_OFF');
  });
});

describe('mirror', { timeout: 120_000 }, () => {
  test('the mirror corrects all rows that became stale while it was down', async ({
    env,
    namespace,
    kubevirt,
  }) => {
    const [gone, stopped, edited] = await Promise.all(
      ['gone', 'stopped', 'edited'].map((name) => env.ssvirt.insertVm({ namespace, name, age: 120 })),
    );
    if (gone === undefined || stopped === undefined || edited === undefined) throw new Error('three rows');
    await env.create(namespace, 'gone', { runStrategy: 'Halted' });
    await env.create(namespace, 'stopped');
    await env.create(namespace, 'edited', { runStrategy: 'Halted' });
    await env.until(gone, 'POWERED_OFF');
    await env.until(stopped, 'POWERED_ON');
    await env.until(edited, 'POWERED_OFF');
    await env.mirror.part.stop();
    await kubevirt.kubectl(['-n', namespace, 'delete', 'virtualmachine', 'gone']);
    await kubevirt.api.merge(machinePath(namespace, 'stopped'), { spec: { runStrategy: 'Halted' } });
    const halted = (vm: KubeObject) => field(vm, 'status', 'printableStatus') === 'Stopped';
    await kubevirt.waitFor(machinePath(namespace, 'stopped'), halted);
    await env.ssvirt.query(`UPDATE vms SET status = 'POWERED_ON' WHERE id = $1`, [edited]);
    const found = await env.verify();
    expect(found.code).toBe(1);
    for (const name of ['gone', 'stopped', 'edited']) expect(found.stdout).toContain(`${namespace}/${name} `);
    await env.mirror.part.start();
    await env.until(gone, 'DELETED');
    await env.until(stopped, 'POWERED_OFF');
    await env.until(edited, 'POWERED_OFF');
    // At least 3, because VMs of other tests may have changed too while the mirror was down. Polled, because a row is
    // visible a moment before the mirror counts it.
    await expect
      .poll(() => env.metric('ssvirt_vm_corrections_total{trigger="start"}'))
      .toBeGreaterThanOrEqual(3);
    expect(await env.verify()).toMatchObject({ code: 0, stdout: 'The table agrees with the cluster.\n' });
  });

  test('the mirror reports that the database is down, and writes the changes of VMs once it is back', async ({
    env,
    namespace,
    kubevirt,
  }) => {
    const id = await env.ssvirt.insertVm({ namespace, name: 'outage' });
    await env.create(namespace, 'outage', { runStrategy: 'Halted' });
    await env.until(id, 'POWERED_OFF');
    expect(await env.health()).toMatchObject({
      code: 200,
      body: { status: 'healthy', controller: 'running', database: 'reachable', cacheSynced: true },
    });
    await env.postgres.part.kill();
    await expect.poll(env.health).toMatchObject({
      code: 503,
      body: { status: 'unhealthy', controller: 'running', database: 'unreachable' },
    });
    await kubevirt.api.merge(machinePath(namespace, 'outage'), { spec: { runStrategy: 'Always' } });
    await expect.poll(() => env.metric('ssvirt_vm_pending')).toBeGreaterThan(0);
    await env.postgres.part.start();
    await env.until(id, 'POWERED_ON');
    await expect.poll(env.health).toMatchObject({ code: 200 });
    const lines = (await env.log()).split('\n').filter((line) => line.includes('Database is unavailable'));
    expect(lines).toHaveLength(1);
  });

  test('if the database rejects one row, the mirror reports it as a dead letter and writes all other rows', async ({
    env,
    namespace,
    kubevirt,
  }) => {
    const names = ['bad', 'good-1', 'good-2', 'good-3'];
    const ids = new Map<string, string>();
    for (const name of names) ids.set(name, await env.ssvirt.insertVm({ namespace, name }));
    const bad = ids.get('bad') ?? '';
    await env.ssvirt.query(`
      CREATE FUNCTION reject_bad() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF new.vm_name = 'bad' THEN RAISE EXCEPTION 'bad is rejected'; END IF; RETURN new; END $$;
      CREATE TRIGGER reject_bad BEFORE UPDATE ON vms FOR EACH ROW EXECUTE FUNCTION reject_bad();`);
    for (const name of names) await env.create(namespace, name, { runStrategy: 'Halted' });
    for (const name of names.slice(1)) await env.until(ids.get(name) ?? '', 'POWERED_OFF');
    await expect.poll(() => env.metric('ssvirt_vm_dead_letters')).toBe(1);
    // Polls, because the dead letter has another status until virt-controller has reported the status of the VM.
    await expect
      .poll(async () => (await fetch(`${env.mirror.url}/dead-letters`)).json())
      .toMatchObject([
        { vm: `${namespace}/bad`, rowId: bad, status: 'POWERED_OFF', error: 'bad is rejected' },
      ]);
    await expect
      .poll(async () => (await kubevirt.kubectl(['-n', namespace, 'get', 'events'])).stdout)
      .toMatch(
        /Warning +ReconciliationFailed +virtualmachine\/bad +Failed to update VM status repeatedly: bad is rejected/,
      );
    await env.ssvirt.query('DROP TRIGGER reject_bad ON vms');
    await env.until(bad, 'POWERED_OFF');
    await expect.poll(() => env.metric('ssvirt_vm_dead_letters')).toBe(0);
  });

  test('at the next resync, the mirror corrects a row that another client changed, and counts the correction', async ({
    env,
    namespace,
  }) => {
    const id = await env.ssvirt.insertVm({ namespace, name: 'resynced' });
    await env.create(namespace, 'resynced', { runStrategy: 'Halted' });
    await env.until(id, 'POWERED_OFF');
    const series = 'ssvirt_vm_corrections_total{trigger="resync"}';
    const before = await env.metric(series);
    await env.ssvirt.query(`UPDATE vms SET status = 'POWERED_ON' WHERE id = $1`, [id]);
    await env.until(id, 'POWERED_OFF');
    await expect.poll(() => env.metric(series)).toBe(before + 1); // counted when the response of the database arrives
  });

  test('the mirror may read VirtualMachines, but not write them', async ({ env }) => {
    const can = async (verb: string) => {
      const account = 'system:serviceaccount:ssvirt-system:ssvirt-vm-controller';
      const args = ['auth', 'can-i', verb, 'virtualmachines.kubevirt.io', '-A', `--as=${account}`];
      return (await env.cluster.tryKubectl(args)).stdout.trim();
    };
    expect(await Promise.all(['list', 'watch'].map(can))).toEqual(['yes', 'yes']);
    expect(await Promise.all(['create', 'update', 'patch', 'delete'].map(can))).toEqual(Array(4).fill('no'));
  });

  test('the mirror reports that it is disabled by CONTROLLER_ENABLED=false', async ({ env }) => {
    const { mirror } = env;
    await using disabled = await startMirror({
      cluster: env.cluster,
      database: env.postgres,
      env: { CONTROLLER_ENABLED: 'false' },
    });
    expect(await healthOf(disabled)).toEqual({
      code: 200,
      body: { status: 'healthy', controller: 'disabled' },
    });
    expect(await healthOf(mirror)).toMatchObject({ body: { controller: 'running' } });
  });

  test('a standby takes over from a leader that is paused with an open database session', async ({
    env,
    namespace,
  }) => {
    const id = await env.ssvirt.insertVm({ namespace, name: 'failover' });
    const leader = env.mirror;
    await env.start();
    expect(await env.health()).toMatchObject({ code: 200, body: { controller: 'standby' } });
    leader.part.pause();
    await env.create(namespace, 'failover', { runStrategy: 'Halted' });
    await env.until(id, 'POWERED_OFF');
    expect(await env.health()).toMatchObject({ code: 200, body: { controller: 'running' } });
    leader.part.resume();
    await expect.poll(async () => (await healthOf(leader)).body.controller).toBe('standby');
    await leader.part.stop(); // so that the old leader cannot lead in the next test, which uses other settings
  });

  test('with CONTROLLER_FENCE=table, the mirror keeps its fence in a database table and writes rows', async ({
    env,
    namespace,
  }) => {
    const id = await env.ssvirt.insertVm({ namespace, name: 'fenced' });
    await env.mirror.part.stop();
    await env.start({ CONTROLLER_FENCE: 'table', CONTROLLER_LEASE_DURATION: '2s' });
    await env.create(namespace, 'fenced', { runStrategy: 'Halted' });
    await env.until(id, 'POWERED_OFF');
    const [fence] = await env.ssvirt.query('SELECT shard, epoch::int FROM ssvirt_vm_controller_fence');
    expect(fence).toMatchObject({ shard: 0 });
  });
});
