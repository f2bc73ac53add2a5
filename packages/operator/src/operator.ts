import { type Access, Channel, jsonLogger, Manager, type World } from '@vmwright/runtime';
import { connectCloud } from './cloud.ts';
import { clusterIdOf, metricsName, NAME, webhookAddress } from './declarations.ts';
import { controlKubevirt } from './kubevirt/controllers.ts';
import { buildMetrics, objectMetrics } from './metrics.ts';
import type { AddressSettings } from './settings/endpoints.ts';
import type { Settings } from './settings/settings.ts';
import { connectVcenters } from './vcenter/connect.ts';
import { admitVirtualMachines } from './virtualmachine/admission.ts';
import { VirtualMachine } from './virtualmachine/resource.ts';
import { admitVms } from './vm/admission.ts';
import { controlVms } from './vm/controller.ts';
import { collectVmGarbage } from './vm/gc.ts';
import { VM } from './vm/resource.ts';
import { admitVmDiskImages } from './vmdiskimage/admission.ts';
import { VMDiskImage } from './vmdiskimage/resource.ts';
import { controlVmGroups } from './vmgroup/controller.ts';
import { CONVERSION } from './vmgroup/conversion.ts';
import { collectVmGroupGarbage } from './vmgroup/gc.ts';
import { VmGroup } from './vmgroup/resource.ts';

/** Runs the operator until the signal aborts. @throws SettingsError, and the errors of `Manager.run` */
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
    status: {
      ...listenOptions(status),
      logLevel: log,
      openMetrics: status.openMetrics,
      secure: status.secure && listenOptions(status.secure),
    },
    webhooks: {
      address: webhookAddress(namespace, webhook.url),
      port: webhook.port,
      namespace,
      certificateFolder: webhook.certificateFolder,
      clients: webhook.clients,
      names: status.secure === undefined ? [] : [metricsName(namespace)],
    },
  });
  buildMetrics(manager.registry, settings.revision);
  await using backends = new AsyncDisposableStack();
  const cluster = settings.cluster ?? (await clusterIdOf(manager.client));
  const common = { world, log, cluster, namespaces };
  if (settings.cloud !== undefined) {
    const { url, refreshMs, sweepMs, timeoutMs, unknownAfterMs, concurrency } = settings.cloud;
    if (url.startsWith('http:')) log.warn({ url }, 'The API key is sent to the cloud unencrypted; use https');
    const cloud = backends.use(await connectCloud(world, settings.cloud, manager.registry));
    manager.admit(VM, admitVms(cloud, cluster, log));
    controlVms(manager, { ...common, cloud, refreshMs, timeoutMs, unknownAfterMs, concurrency });
    collectVmGarbage(manager, { ...common, cloud, everyMs: sweepMs, graceMs: sweepMs });
  }
  if (settings.vsphere !== undefined) {
    const { sweepMs } = settings.vsphere;
    const events = new Channel();
    const enqueue = (key: string) => events.enqueue(key);
    const vcenters = backends.use(
      await connectVcenters(world, log, settings.vsphere, manager.registry, enqueue),
    );
    manager.convert(VmGroup, CONVERSION);
    controlVmGroups(manager, { ...common, vcenters, events, concurrency: VMGROUP_WORKERS });
    collectVmGroupGarbage(manager, { ...common, vcenters, everyMs: sweepMs, graceMs: sweepMs });
  }
  if (settings.kubevirt !== undefined) {
    manager.admit(VirtualMachine, admitVirtualMachines(manager.caches));
    manager.admit(VMDiskImage, admitVmDiskImages(manager.caches));
    controlKubevirt(manager, { world, namespace, ...settings.kubevirt });
  }
  objectMetrics(manager.registry, manager.caches, {
    vm: settings.cloud !== undefined,
    vmgroup: settings.vsphere !== undefined,
    kubevirt: settings.kubevirt !== undefined,
  });
  await manager.run(signal);
}

function listenOptions({ host, port }: AddressSettings): { port: number; host?: string } {
  return { port, ...(host !== '' && { host }) };
}

/** Number of concurrent reconciles of VmGroups. A few suffice, because a reconcile does not wait for vCenter tasks. */
const VMGROUP_WORKERS = 8;
