import {
  type Access,
  Channel,
  type HttpResponse,
  jsonLogger,
  Manager,
  textLine,
  type World,
} from '@vmwright/runtime';
import { connectCloud } from './cloud.ts';
import { clusterIdOf, metricsName, NAME, webhookAddress } from './declarations.ts';
import { controllerStates, type OperatorStatus, withoutUnserved } from './enabled-controllers.ts';
import { admitPods } from './gpuinfo/admission.ts';
import { Pod } from './gpuinfo/kinds.ts';
import { addGpuInfos } from './gpuinfo/wiring.ts';
import { controlKubevirt } from './kubevirt/controllers.ts';
import { buildMetrics, objectMetrics } from './metrics.ts';
import type { AddressSettings } from './settings/endpoints.ts';
import type { Settings } from './settings/settings.ts';
import { startTracing } from './tracing/tracing.ts';
import { connectVcenters } from './vcenter/connect.ts';
import { openComputeFacts } from './vcenter/pooled-compute-facts.ts';
import { VERSION } from './version.ts';
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
  given: Settings,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, namespaces, election, status, webhook, logLevel, logFormat } = given;
  const log = jsonLogger({
    clock: world,
    level: logLevel,
    ...(logFormat === 'text' && { format: textLine }),
  });
  await using tracing = await startTracing(given.tracing, { world, log, name: NAME, version: VERSION });
  const tracer = tracing?.tracer;
  let settings = given;
  const manager = new Manager({
    world,
    access,
    name: NAME,
    log,
    tracer,
    ...(namespaces && { namespaces }),
    ...(election && { election: { name: NAME, namespace, ...election } }),
    status: {
      ...listenOptions(status),
      logLevel: log,
      openMetrics: status.openMetrics,
      routes: {
        '/status': {
          for: 'anyone',
          respond: () => statusResponse(settings),
        },
      },
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
  settings = await withoutUnserved(manager.client, given, log);
  await using backends = new AsyncDisposableStack();
  const cluster = settings.cluster ?? (await clusterIdOf(manager.client));
  const common = { world, log, cluster, namespaces };
  // The webhooks of disabled controllers are served, too, because the manifests may declare them. If the API server
  // cannot call a declared webhook, it rejects the request. A webhook without a backend skips the checks that need the
  // backend.
  manager.convert(VmGroup, CONVERSION);
  const { caches } = manager;
  manager.admit(VirtualMachine, admitVirtualMachines(settings.kubevirt && caches));
  manager.admit(VMDiskImage, admitVmDiskImages(settings.kubevirt && { ...settings.kubevirt, caches }));
  if (settings.gpuinfo === undefined) manager.admit(Pod, admitPods(undefined));
  if (settings.cloud === undefined) manager.admit(VM, admitVms(undefined, cluster, log));
  else {
    const { url, refreshMs, sweepMs, timeoutMs, unknownAfterMs, concurrency } = settings.cloud;
    if (url.startsWith('http:')) log.warn({ url }, 'The API key is sent to the cloud unencrypted; use https');
    const cloud = backends.use(await connectCloud(world, settings.cloud, manager.registry, { tracer, log }));
    manager.admit(VM, admitVms(cloud, cluster, log));
    controlVms(manager, { ...common, cloud, refreshMs, timeoutMs, unknownAfterMs, concurrency });
    collectVmGarbage(manager, { ...common, cloud, everyMs: sweepMs, graceMs: sweepMs });
  }
  // VmGroups and GPUInfos share the connections to vCenter.
  const vsphere = settings.vsphere ?? settings.gpuinfo?.vsphere;
  const events = new Channel();
  const enqueue = (key: string) => events.enqueue(key);
  const vcenters =
    vsphere && backends.use(await connectVcenters(world, log, vsphere, manager.registry, enqueue, tracer));
  if (settings.vsphere !== undefined && vcenters !== undefined) {
    const { sweepMs } = settings.vsphere;
    controlVmGroups(manager, { ...common, tracer, vcenters, events, concurrency: VMGROUP_WORKERS });
    collectVmGroupGarbage(manager, { ...common, vcenters, everyMs: sweepMs, graceMs: sweepMs });
  }
  if (settings.kubevirt !== undefined) controlKubevirt(manager, { world, namespace, ...settings.kubevirt });
  if (settings.gpuinfo !== undefined) {
    const { gpuinfo } = settings;
    const compute = vcenters && openComputeFacts(vcenters, gpuinfo);
    backends.use(
      await addGpuInfos(manager, { world, log, namespace, namespaces, settings: gpuinfo, compute }),
    );
  }
  objectMetrics(manager.registry, manager.caches, {
    vm: settings.cloud !== undefined,
    vmgroup: settings.vsphere !== undefined,
    kubevirt: settings.kubevirt !== undefined,
    gpuinfo: settings.gpuinfo !== undefined,
  });
  await manager.run(signal);
}

/** Response of `/status`: version and controllers. It needs no authentication, so it contains no object names. */
function statusResponse({ revision, disabled }: Settings): HttpResponse {
  const status: OperatorStatus = { version: VERSION, revision, controllers: controllerStates({ disabled }) };
  return { status: 200, text: `${JSON.stringify(status)}\n`, contentType: 'application/json' };
}

function listenOptions({ host, port }: AddressSettings): { port: number; host?: string } {
  return { port, ...(host !== '' && { host }) };
}

/** Number of concurrent reconciles of VmGroups. A few suffice, because a reconcile does not wait for vCenter tasks. */
const VMGROUP_WORKERS = 8;
