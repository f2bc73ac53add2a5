import type { Cluster, Ssvirt } from '@vmwright/testbed';
import { createMachine, machinePath, untilStatus } from './with-mirror.ts';

/** Starts, pauses, stops, starts again and deletes a KubeVirt VM, and checks after each step that its row follows. */
export async function playLife(cluster: Cluster, ssvirt: Ssvirt, namespace: string): Promise<void> {
  const id = await ssvirt.insertVm({ namespace, name: 'life' });
  const until = (status: string) => untilStatus(ssvirt, id, status);
  const run = (runStrategy: string) =>
    cluster.api.merge(machinePath(namespace, 'life'), { spec: { runStrategy } });
  await createMachine(cluster, namespace, 'life');
  await until('POWERED_ON');
  const instance = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstances/life`;
  await cluster.api.merge(instance, {
    metadata: { annotations: { 'testbed.vmwright.dev/guest': 'pause' } },
  });
  await until('SUSPENDED');
  await run('Halted');
  await until('POWERED_OFF');
  await run('Always');
  await until('POWERED_ON');
  await cluster.api.delete(machinePath(namespace, 'life'));
  await until('DELETED');
}
