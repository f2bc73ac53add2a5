import { type Access, jsonLogger, Manager, type World } from '@vmwright/runtime';
import { connectCloud } from './cloud.ts';
import { NAME, SYSTEM, webhookAddress } from './declarations.ts';
import { Namespace } from './kinds.ts';
import { type Settings, SettingsError } from './settings/settings.ts';
import { admitVms } from './vm/admission.ts';
import { controlVms } from './vm/controller.ts';
import { VM } from './vm/resource.ts';
import { sweeper } from './vm/sweeper.ts';

/** The program, until the signal aborts. @throws SettingsError, and what `Manager.run` throws */
export async function runOperator(
  world: World,
  access: Access,
  settings: Settings,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, namespaces, election, status, webhook, logLevel } = settings;
  const log = jsonLogger({ clock: world, level: logLevel });
  const manager = new Manager({
    world,
    access,
    name: NAME,
    log,
    ...(namespaces && { namespaces }),
    ...(election && { election: { name: NAME, namespace, ...election } }),
    status: { port: status.port, ...(status.host !== '' && { host: status.host }), logLevel: log },
    webhooks: { address: webhookAddress(namespace, webhook.url), port: webhook.port, namespace },
  });
  if (settings.cloud.url.startsWith('http:'))
    log.warn(
      { url: settings.cloud.url },
      'the API key goes to the cloud unencrypted; use https:// but for a trial',
    );
  await using cloud = await connectCloud(world, settings.cloud, manager.registry);
  const cluster = settings.cluster ?? (await clusterOf(manager));
  const { refreshMs, sweepMs, concurrency } = settings.cloud;
  manager.admit(VM, admitVms(cloud, log));
  controlVms(manager, { world, log, cloud, cluster, refreshMs, concurrency });
  manager.job(
    sweeper({
      world,
      cloud,
      cluster,
      everyMs: sweepMs,
      graceMs: sweepMs,
      namespaces,
      registry: manager.registry,
    }),
  );
  await manager.run(signal);
}

/** A cluster has no name of its own; the UID of this namespace is what others know it by. */
async function clusterOf(manager: Manager): Promise<string> {
  const { metadata } = await manager.client.get(Namespace, SYSTEM);
  if (metadata.uid === undefined || metadata.uid === '')
    throw new SettingsError('this cluster cannot be told from others; give it a name with --cluster-id');
  return metadata.uid;
}
