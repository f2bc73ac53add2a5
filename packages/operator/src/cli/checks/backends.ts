import { type Logger, messageOf, nodeWorld, Registry } from '@vmwright/runtime';
import { connectCloud } from '../../cloud.ts';
import type { CloudSettings } from '../../settings/cloud.ts';
import type { Settings } from '../../settings/settings.ts';
import type { Environment } from '../../settings/values.ts';
import type { VsphereSettings } from '../../settings/vsphere.ts';
import { connectVcenters } from '../../vcenter/connect.ts';
import { type CheckResult, failed, passed } from './result.ts';

/** Timeout of a request to a backend. It is short, so that all checks end soon. */
const TIMEOUT_MS = 10_000;

/** Checks that the configured cloud and vCenters accept the credentials. */
export async function checkBackends(
  { cloud, vsphere }: Settings,
  log: Logger,
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  return [
    ...(cloud === undefined ? [] : [await checkCloud(cloud, signal)]),
    ...(vsphere === undefined ? [] : await checkVcenters(vsphere, log, signal)),
  ];
}

async function checkCloud(settings: CloudSettings, signal: AbortSignal): Promise<CheckResult> {
  const name = `cloud ${settings.url}`;
  try {
    await using cloud = await connectCloud(nodeWorld, settings, new Registry());
    await cloud.list({ signal, timeoutMs: TIMEOUT_MS, tries: 1 }).next();
    return passed(name, 'answers and accepts the API key');
  } catch (error) {
    signal.throwIfAborted();
    return failed(name, messageOf(error), 'check CLOUD_URL, CLOUD_API_KEY and CLOUD_CA, and the network');
  }
}

async function checkVcenters(
  settings: VsphereSettings,
  log: Logger,
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  try {
    await using vcenters = await connectVcenters(nodeWorld, log, settings, new Registry(), () => undefined);
    return await Promise.all(
      [...vcenters].map(async ({ name, client }) => {
        try {
          const { version } = await client.about({ signal, timeoutMs: TIMEOUT_MS });
          await client.ping({ signal, timeoutMs: TIMEOUT_MS });
          return passed(`vCenter ${name}`, `answers and accepts the credentials (API ${version})`);
        } catch (error) {
          signal.throwIfAborted();
          return failed(
            `vCenter ${name}`,
            messageOf(error),
            'check VC_HOST, VC_USER, VC_PASS and VC_CA, or the file of --vcenters, and the network',
          );
        }
      }),
    );
  } catch (error) {
    signal.throwIfAborted();
    return [failed('vCenters', messageOf(error), 'correct the settings of vSphere')];
  }
}

/** Variables that configure the database of the mirror. */
const DATABASE_VARIABLES = ['DATABASE_URL', 'SSVIRT_DATABASE_HOST', 'SSVIRT_DATABASE_USERNAME'];

/** Checks the database of the mirror if a config file or the environment configures it. */
export async function checkDatabase(
  config: string | undefined,
  environment: Environment,
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  if (config === undefined && !DATABASE_VARIABLES.some((name) => environment[name])) return [];
  const { checkMirrorDatabase } = await import('./database.ts'); // imported only here, because it loads the PostgreSQL client
  return [await checkMirrorDatabase(config, environment, signal)];
}
