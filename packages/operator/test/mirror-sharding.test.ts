import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import {
  installMirror,
  type KubeObject,
  manifestPath,
  Ssvirt,
  startControlPlane,
  startMirror,
  startPostgres,
} from '@vmwright/testbed';
import { expect, test } from 'vitest';
import { machinePath } from './with-mirror.ts';

const SHARDED = fileURLToPath(new URL('../../../config/ssvirt-sharding', import.meta.url));
const NAMESPACES = Array.from({ length: 12 }, (_, i) => `vdc-${i}`);

test('replicas divide the namespaces, and one takes over when the other is killed or leaves', async () => {
  await using stack = new AsyncDisposableStack();
  const { cluster } = stack.use(await startControlPlane());
  const postgres = stack.use(await startPostgres());
  const ssvirt = stack.use(await Ssvirt.install(postgres));
  await cluster.apply([manifestPath('kubevirt-crds')]);
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd/virtualmachines.kubevirt.io']);
  await installMirror(cluster);
  await cluster.kubectl(['apply', '--server-side', '--force-conflicts', '-k', SHARDED]);
  const ids = new Map<string, string>();
  for (const namespace of NAMESPACES) {
    await cluster.kubectl(['create', 'namespace', namespace]);
    ids.set(namespace, await ssvirt.insertVm({ namespace, name: 'vm' }));
    await cluster.api.create(`/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines`, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: 'vm' },
      spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {} } } } },
    });
  }
  const show = (printableStatus: string): Promise<readonly KubeObject[]> =>
    Promise.all(
      NAMESPACES.map((namespace) =>
        cluster.api.merge(`${machinePath(namespace, 'vm')}/status`, { status: { printableStatus } }),
      ),
    );
  const untilAll = (status: string) =>
    expect
      .poll(async () => new Set((await ssvirt.query('SELECT status FROM vms')).map((row) => row.status)), {
        timeout: 60_000,
      })
      .toEqual(new Set([status]));
  const env = {
    CONTROLLER_SHARDING: 'true',
    CONTROLLER_LEASE_DURATION: '3s',
    CONTROLLER_BASE_DELAY: '100ms',
  };
  const start = async () => stack.use(await startMirror({ cluster, database: postgres, env }));
  const updates = async ({ url }: { readonly url: string }): Promise<number> => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return text
      .split('\n')
      .filter(
        (line) => line.startsWith('ssvirt_vm_status_updates_total{') && line.includes('result="success"'),
      )
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  };

  const [first, second] = [await start(), await start()];
  await show('Running');
  await untilAll('POWERED_ON');
  await expect
    .poll(async () => /"owned":[1-9]/.test(await readFile(second.part.log, 'utf8')), { timeout: 30_000 })
    .toBe(true);
  await show('Paused');
  await untilAll('SUSPENDED');
  expect([await updates(first), await updates(second)].every((count) => count > 0)).toBe(true);

  await first.part.kill();
  await show('Starting');
  await untilAll('POWERING_ON');
  await first.part.start();
  await second.part.stop();
  await show('Stopping');
  await untilAll('POWERING_OFF');
}, 300_000);
