import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@vmwright/runtime';
import { type Cluster, startControlPlane } from '@vmwright/testbed';
import { connect } from '../runtime/objects.ts';
import type { Program } from '../runtime/program.ts';
import { Table } from './database.ts';
import { createVms, installKubeVirt, type VmSize } from './machines.ts';

/** `status.printableStatus` of a VM, and the status that the mirror then writes to the VM's row in the database. */
export const RUNNING = { printableStatus: 'Running', row: 'POWERED_ON' };
export const PAUSED = { printableStatus: 'Paused', row: 'SUSPENDED' };
/** Status of the rows before the controller starts. */
export const STALE = 'POWERED_OFF';

/** A cluster with running VMs, and a database table with a stale row for each VM. */
export interface Environment extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly client: Client;
  readonly table: Table;
}

/**
 * Starts a cluster with VMs and a table with their rows. kube-controller-manager is killed, because it would take CPU
 * time from the measured programs.
 * @param size size of each VM object; see `VmSize`
 */
export async function startEnvironment(vms: number, size: VmSize): Promise<Environment> {
  await using resources = new AsyncDisposableStack();
  const controlPlane = resources.use(await startControlPlane());
  const { cluster } = controlPlane;
  await controlPlane.controllerManager.kill();
  const client = resources.use(await connect(cluster));
  const table = resources.use(await Table.start());
  await installKubeVirt(cluster);
  await createVms(client, controlPlane, vms, RUNNING.printableStatus, size);
  await table.fill(vms, STALE);
  const owned = resources.move();
  return { cluster, client, table, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/**
 * Interval at which the table is read while a controller works. The measured times do not depend on it: they come from
 * commit timestamps.
 */
const POLL_MS = 200;
const TIMEOUT_MS = 600_000;

/** Waits until a controller has set the status of all rows. Throws after ten minutes. */
export async function untilAll(program: Program, table: Table, rows: number, status: string): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  for (let right = 0; right < rows; right = await table.count(status)) {
    if (performance.now() > deadline) {
      const state = `only ${right} of ${rows} rows are ${status}`;
      throw new Error(`${state}; the controller's last lines are:\n${program.tail}`);
    }
    await sleep(POLL_MS);
  }
}
