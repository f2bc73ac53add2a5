import { join } from 'node:path';
import { type Cluster, freePort, temporaryFolder } from '@vmwright/testbed';
import { bundle } from '../../tools/build/bundle.ts';
import { ENVIRONMENT, NODE_FLAGS } from '../../tools/build/launch.ts';
import { buildGo } from '../build.ts';
import { Program } from '../runtime/program.ts';
import type { Side } from '../runtime/programs.ts';
import type { Table } from './database.ts';

/** Namespace of the Lease that both controllers use for their leader election. */
const NAMESPACE = 'default';
const LEASE = 'ssvirt-vm-controller';

/**
 * Prepares our controller or the comparator, and returns a function that starts it. Both take the same environment
 * variables.
 */
export type Controllers = (
  side: Side,
  cluster: Cluster,
  table: Table,
  environment?: Readonly<Record<string, string>>,
) => Promise<() => Program>;

/** The built programs. */
export interface Programs {
  readonly controllers: Controllers;
  /**
   * Starts the Go program that the SQL statement of the mirror is compared with. It sends batches of single-row updates
   * with pgx.
   */
  readonly batch: (table: Table, ...args: readonly string[]) => Program;
}

/** Builds both controllers as they would be shipped: the Go comparator compiled, our controller bundled. */
export async function build(): Promise<Programs> {
  const folder = await temporaryFolder('bench');
  buildGo('ssvirt-controller', folder);
  const source = new URL('../../packages/operator/src/ssvirt-vm-controller.ts', import.meta.url);
  const { program } = await bundle(source, folder);
  const commands = {
    theirs: [join(folder, 'ssvirt-controller')],
    ours: [process.execPath, ...NODE_FLAGS, program],
  };
  return {
    controllers: async (side, cluster, table, environment = {}) => {
      await releaseLease(cluster);
      const [command = '', ...args] = commands[side];
      const variables = {
        KUBECONFIG: cluster.kubeconfig,
        DATABASE_URL: databaseUrl(table),
        CONTROLLER_NAMESPACE: NAMESPACE,
        CONTROLLER_METRICS_ADDR: `127.0.0.1:${await freePort()}`,
        ...ENVIRONMENT,
        ...environment,
      };
      return () => new Program(command, args, variables, 'stderr'); // both sides log to stderr
    },
    batch: (table, ...args) => new Program(join(folder, 'batch'), args, { DATABASE_URL: databaseUrl(table) }),
  };
}

/** Replaces the Lease with a released one, because the comparator does not release its Lease when it stops. */
async function releaseLease(cluster: Cluster): Promise<void> {
  await cluster.kubectl(['delete', 'lease', LEASE, `--namespace=${NAMESPACE}`, '--ignore-not-found']);
  const metadata = { namespace: NAMESPACE, name: LEASE };
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: {} };
  await cluster.apply(JSON.stringify(lease));
}

function databaseUrl({ url }: Table): string {
  return `${url}?sslmode=disable`;
}
