import { field, type KubeObject, type KubeVirt, startControlPlane, startKubeVirt } from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { machinePath, type WithMirror, withMirror } from './with-mirror.ts';

const NAMESPACE = 'default';
const NAMES = ['stays', 'stops', 'starts', 'goes', 'is-forced', 'comes'];

/** Expected status of a row, by `status.printableStatus` of its VM; independent of the mirror's own mapping. */
const COLUMN: Readonly<Record<string, string>> = { Running: 'POWERED_ON', Stopped: 'POWERED_OFF' };

test('restarts of virt-controller and of the API server leave no wrong row', async () => {
  await using controlPlane = await startControlPlane({ scheduler: true });
  const { cluster } = controlPlane;
  await using kubevirt = await startKubeVirt(controlPlane, { virtApi: false });
  const virtController = controllerOf(kubevirt);
  await using env = await withMirror(cluster);
  const rows = new Map<string, string>();
  const restart = async (
    part: { kill(): Promise<void>; start(): Promise<void> },
    whileDown: () => Promise<void>,
  ) => {
    await part.kill();
    await whileDown();
    await part.start();
  };
  /**
   * Restarts virt-controller. Deletes the old Lease, so that the new process leads without waiting for it to expire.
   */
  const restartVirtController = (whileDown: () => Promise<void>) =>
    restart(virtController, async () => {
      await whileDown();
      await cluster.kubectl([
        ...['-n', 'kubevirt', 'delete', 'lease', 'virt-controller', '--ignore-not-found'],
      ]);
    });

  for (const round of ['a', 'b']) {
    const name = (which: string) => `${which}-${round}`;
    const change = (which: string, runStrategy: string) =>
      cluster.api.merge(machinePath(NAMESPACE, name(which)), { spec: { runStrategy } });
    for (const which of NAMES)
      rows.set(name(which), await env.ssvirt.insertVm({ namespace: NAMESPACE, name: name(which) }));
    for (const which of NAMES.slice(0, -1))
      await env.create(NAMESPACE, name(which), { runStrategy: which === 'starts' ? 'Halted' : 'Always' });
    for (const which of NAMES.slice(0, -1))
      await env.until(rowOf(rows, name(which)), which === 'starts' ? 'POWERED_OFF' : 'POWERED_ON');
    const changeAll = async () => {
      await change('stops', 'Halted');
      await change('starts', 'Always');
      await env.create(NAMESPACE, name('comes'));
      await cluster.api.delete(machinePath(NAMESPACE, name('goes')));
      const forced = ['delete', 'virtualmachine', name('is-forced'), '--force', '--grace-period=0'];
      await cluster.kubectl([...forced, '--wait=false']);
    };
    // Round a: the changes happen while virt-controller is down. Round b: the API server is killed while
    // virt-controller processes them.
    if (round === 'a') await restartVirtController(changeAll);
    else {
      await changeAll();
      await restart(controlPlane.apiserver, async () => undefined);
      // virt-controller may have exited while the API server was down. The test restarts it, as the kubelet would
      // restart its container.
      await restartVirtController(async () => undefined);
    }
    const deleted = [name('goes'), name('is-forced')];
    for (const each of deleted) await env.until(rowOf(rows, each), 'DELETED');
    // Waits for the VMs first. Until virt-controller has processed a change, the row agrees with the old status, and
    // the comparison below would pass too early.
    const final = { stays: 'Running', stops: 'Stopped', starts: 'Running', comes: 'Running' };
    for (const [which, status] of Object.entries(final))
      await expect
        .poll(() => statusOf(env, name(which)), { message: `${which}, round ${round}` })
        .toBe(status);
    await expect.poll(() => differences(env, rows), { message: `round ${round}`, interval: 100 }).toEqual([]);
    expect(await env.verify()).toMatchObject({ code: 0, stdout: 'The table agrees with the cluster.\n' });
  }
}, 300_000);

function controllerOf(kubevirt: KubeVirt) {
  if (kubevirt.imitated) throw new Error(`the test needs the real KubeVirt: ${kubevirt.reason}`);
  return kubevirt.virtController;
}

function rowOf(rows: ReadonlyMap<string, string>, name: string): string {
  const id = rows.get(name);
  if (id === undefined) throw new Error(`no row for ${name}`);
  return id;
}

async function statusOf({ cluster }: WithMirror, name: string): Promise<unknown> {
  return field(await cluster.api.get(machinePath(NAMESPACE, name)), 'status', 'printableStatus');
}

/**
 * Compares all rows with the VMs in the cluster, and describes each row that differs. A VM that neither runs nor is
 * stopped counts as a difference.
 */
async function differences(
  { cluster, ssvirt }: WithMirror,
  rows: ReadonlyMap<string, string>,
): Promise<readonly string[]> {
  const listed: readonly KubeObject[] = await cluster.api.list(machinePath(NAMESPACE, '').slice(0, -1));
  const machines = new Map(listed.map((machine) => [machine.metadata.name, machine]));
  const found: string[] = [];
  for (const [name, id] of rows) {
    const machine = machines.get(name);
    const printable = String(field(machine, 'status', 'printableStatus'));
    const expected = machine === undefined ? 'DELETED' : COLUMN[printable];
    const status = await ssvirt.status(id);
    if (status !== expected) found.push(`${name} (${printable}): ${status} instead of ${expected}`);
  }
  return found;
}
