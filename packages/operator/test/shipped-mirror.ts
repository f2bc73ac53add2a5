import { type Cluster, canary, field, type Postgres, SSVIRT_NAMESPACE, type Ssvirt } from '@vmwright/testbed';
import { page, ROOT, sectionOf } from './doc-commands.ts';

/* Installs the mirror from the manifests that users apply, in the steps of docs/mirror.md#installation. */

/** User of the mirror in the audit log of the API server. */
export const MIRROR_ACCOUNT = `system:serviceaccount:${SSVIRT_NAMESPACE}:ssvirt-vm-controller`;

/** Creates the database role with the statements of the documentation. @returns a connection URL of the role */
export async function createDatabaseRole(ssvirt: Ssvirt, postgres: Postgres): Promise<URL> {
  const password = canary('mirror-password');
  const [, sql = ''] = /^```sql\n(.*?)^```$/ms.exec(sectionOf(page('mirror.md'), 'Database role')) ?? [];
  await ssvirt.query(sql.replace('…', password).replace('DATABASE ssvirt', `DATABASE ${postgres.database}`));
  const url = new URL(postgres.url);
  url.username = 'ssvirt_vm_controller';
  url.password = password;
  return url;
}

/**
 * Applies a folder of `config/`. Sets the address of the database in the ConfigMap, and the password in a Secret.
 * @param settings lines to add to the section `controller` of the ConfigMap
 * @returns the number of replicas that the Deployment declares
 */
export async function installShippedMirror(
  cluster: Cluster,
  database: URL,
  folder: 'ssvirt' | 'ssvirt-sharding',
  settings: readonly string[] = [],
): Promise<number> {
  const kubectl = (line: string) => cluster.kubectl(line.split(' '));
  await kubectl(`create namespace ${SSVIRT_NAMESPACE}`);
  const secret = `-n ${SSVIRT_NAMESPACE} create secret generic ssvirt-database`;
  await kubectl(`${secret} --from-literal=password=${database.password}`);
  await kubectl(`apply -k ${ROOT}config/${folder}`);
  const path = `/api/v1/namespaces/${SSVIRT_NAMESPACE}/configmaps/ssvirt-config`;
  const shipped = String(field(await cluster.api.get(path), 'data', 'config.yaml'));
  const edited = shipped
    .replace('host: ssvirt-postgresql', `host: ${database.hostname}`)
    .replace('port: 5432', `port: ${database.port}`)
    .replace('database: ssvirt\n', `database: ${database.pathname.slice(1)}\n`)
    .replace('controller:\n', ['controller:', ...settings.map((line) => `  ${line}`), ''].join('\n'));
  await cluster.api.merge(path, { data: { 'config.yaml': edited } });
  const deployment = `/apis/apps/v1/namespaces/${SSVIRT_NAMESPACE}/deployments/ssvirt-vm-controller`;
  return Number(field(await cluster.api.get(deployment), 'spec', 'replicas'));
}
