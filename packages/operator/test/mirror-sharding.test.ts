import {
  type KubeObject,
  manifestPath,
  SSVIRT_NAMESPACE,
  Ssvirt,
  startControlPlane,
  startDeployedMirror,
  startPostgres,
} from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { expectExactUse } from './permissions.ts';
import { kustomized } from './rendered.ts';
import { createDatabaseRole, installShippedMirror, MIRROR_ACCOUNT } from './shipped-mirror.ts';
import { machinePath, metricOf } from './with-mirror.ts';

/** Enough namespaces that each of three replicas owns some. */
const NAMESPACES = Array.from({ length: 40 }, (_, i) => `vdc-${i}`);
const SHARDS = 256;
const OWNED = 'sharding_owned_shards{name="ssvirt-vm-controller"}';

test('the replicas of config/ssvirt-sharding divide the namespaces, also after a replica is killed or stopped', async () => {
  await using stack = new AsyncDisposableStack();
  const { cluster, pki, audited } = stack.use(await startControlPlane({ audit: [MIRROR_ACCOUNT] }));
  const postgres = stack.use(await startPostgres({ tls: pki.server('postgres', []) }));
  const ssvirt = stack.use(await Ssvirt.install(postgres));
  await cluster.apply([manifestPath('kubevirt-crds')]);
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd/virtualmachines.kubevirt.io']);
  const role = await createDatabaseRole(ssvirt, postgres);
  const count = await installShippedMirror(cluster, role, 'ssvirt-sharding', [
    'leaseDuration: 3s',
    'baseDelay: 100ms',
  ]);
  expect(count).toBe(3);
  await Promise.all(
    NAMESPACES.map(async (namespace) => {
      const metadata = { name: namespace };
      await cluster.api.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata });
      await ssvirt.insertVm({ namespace, name: 'vm' });
      await cluster.api.create(`/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines`, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: { name: 'vm' },
        spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {} } } } },
      });
    }),
  );
  const show = (printableStatus: string): Promise<readonly KubeObject[]> =>
    Promise.all(
      NAMESPACES.map((namespace) =>
        cluster.api.merge(`${machinePath(namespace, 'vm')}/status`, { status: { printableStatus } }),
      ),
    );
  const untilAll = (status: string) =>
    expect
      .poll(async () => new Set((await ssvirt.query('SELECT status FROM vms')).map((row) => row.status)))
      .toEqual(new Set([status]));
  const start = async () => stack.use(await startDeployedMirror(cluster));
  const [first, second, third] = await Promise.all([start(), start(), start()]);
  const all = [first, second, third];
  /** Waits until these replicas together own all shards, and each of them owns at least one. */
  const untilDivided = async (replicas: typeof all) => {
    const owned = () => Promise.all(replicas.map((each) => metricOf(each, OWNED)));
    await expect
      .poll(async () => {
        const shards = await owned();
        return shards.every((each) => each > 0) && shards.reduce((sum, each) => sum + each) === SHARDS;
      })
      .toBe(true);
  };

  await untilDivided(all);
  await show('Running');
  await untilAll('POWERED_ON');
  // A replica counts its rows when the response of the database arrives, so a moment after they are visible.
  for (const each of all)
    await expect.poll(() => metricOf(each, 'ssvirt_vm_batch_rows_sum')).toBeGreaterThan(0);

  await first.part.kill();
  await show('Paused'); // some of the VMs belong to shards that no replica owns at this moment
  await untilAll('SUSPENDED');
  await untilDivided([second, third]);

  await first.part.start();
  await second.part.stop();
  await show('Stopping');
  await untilAll('POWERING_OFF');
  await untilDivided([first, third]);
  // Three Leases: the shard map, and one for each of the two running replicas. All other Leases were deleted.
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${SSVIRT_NAMESPACE}/leases`;
  await expect.poll(async () => (await cluster.api.list(leases)).length).toBe(3);

  // Checks only the Role. The ClusterRole is the same as in config/ssvirt, and walkthroughs.test.ts checks it there.
  const roles = (await kustomized('ssvirt-sharding')).filter(({ kind }) => kind === 'Role');
  expectExactUse(await audited(), roles);
}, 300_000);
