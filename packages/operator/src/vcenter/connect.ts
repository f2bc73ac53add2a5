import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  exponentialBuckets,
  type Logger,
  type Registry,
  type TlsOptions,
  type Tracer,
  type World,
} from '@vmwright/runtime';
import { isOutage, VcenterClient, type VcenterObserver } from '@vmwright/vsphere';
import { SettingsError } from '../settings/values.ts';
import type { VcenterSettings, VsphereSettings } from '../settings/vsphere.ts';
import { TrustError } from './errors.ts';
import { VCenter } from './vcenter.ts';
import { VCenterPool } from './vcenter-pool.ts';
import { readVcentersFile } from './vcenters-file.ts';

/**
 * Maximum time for which vCenter holds a request for changes open. A vCenter that hangs is detected shortly after this
 * time.
 */
const WAIT_SECONDS = 30;

/**
 * Creates the connections to all configured vCenters. Each call is counted in metrics and, if a tracer is given,
 * recorded as a span.
 * @throws SettingsError
 */
export async function connectVcenters(
  world: World,
  log: Logger,
  settings: VsphereSettings,
  registry: Registry,
  enqueue: (key: string) => void,
  tracer?: Tracer,
): Promise<VCenterPool> {
  const { vcenter, file, placement, concurrency, timeoutMs } = settings;
  const all = [...(vcenter ? [vcenter] : []), ...(file === undefined ? [] : await readVcentersFile(file))];
  const twice = all.find(({ name }, index) => all.findIndex((each) => each.name === name) < index);
  if (twice !== undefined)
    throw new SettingsError(`two vCenters are named '${twice.name}'; give each its own name`);
  const observe = observing(registry, log, tracer);
  const vcenters: VCenter[] = [];
  for (const each of all) {
    const { name, server, namespaces } = each;
    const templates = {
      folder: each.templateFolder ?? settings.templates.folder,
      allowMachines: each.allowVmAsTemplate ?? settings.templates.allowMachines,
    };
    // The files of credentials and CA are read here to report problems at the start. They are read again for each login
    // or connection, because they may be replaced.
    await Promise.all([credentialsOf(each), trustOf(each)]).catch((error: unknown) => {
      // The operator starts nevertheless: other backends may work, and the Secret may be created later. Groups on this
      // vCenter report the error.
      log.error({ vcenter: name, error: String(error) }, 'vCenter cannot be used');
    });
    if (each.insecure)
      log.warn(
        { vcenter: name },
        'TLS certificate of vCenter is not verified (--insecure); set its CA in production',
      );
    vcenters.push(
      new VCenter({
        world,
        log,
        name,
        namespaces,
        templates,
        concurrency,
        enqueue,
        placement: { ...placement, ...each.placement },
        client: new VcenterClient({
          world,
          server,
          timeoutMs,
          maxWaitSeconds: WAIT_SECONDS,
          credentials: () => credentialsOf(each),
          tls: () => trustOf(each),
          observer: observe(name),
        }),
      }),
    );
  }
  return new VCenterPool(vcenters);
}

async function credentialsOf({ name, credentials }: VcenterSettings) {
  if (!('folder' in credentials)) return credentials;
  const textOf = (key: string) => readFile(join(credentials.folder, key), 'utf8');
  // The keys of the Secret are the names of the environment variables: VC_* or GOVMOMI_*.
  const read = async (key: string, otherKey: string) => {
    try {
      return (await textOf(key).catch(() => textOf(otherKey))).replace(/\r?\n$/, '');
    } catch (cause) {
      const sentence = `the credentials of vCenter '${name}' cannot be read: ${credentials.folder} has neither ${key} nor ${otherKey}`;
      throw new SettingsError(sentence, { cause });
    }
  };
  return {
    username: await read('VC_USER', 'GOVMOMI_USERNAME'),
    password: await read('VC_PASS', 'GOVMOMI_PASSWORD'),
  };
}

async function trustOf({ name, ca, thumbprint, insecure }: VcenterSettings): Promise<TlsOptions> {
  if (insecure) return { insecure };
  if (thumbprint !== undefined) return { thumbprint };
  if (ca === undefined) return {};
  try {
    const pem = await readFile(ca, 'utf8');
    new X509Certificate(pem);
    return { ca: pem };
  } catch (cause) {
    throw new TrustError(`the CA of vCenter '${name}' cannot be read as certificates (PEM): ${ca}`, {
      cause,
    });
  }
}

function observing(
  registry: Registry,
  log: Logger,
  tracer: Tracer | undefined,
): (vcenter: string) => VcenterObserver {
  const record = vcenterMetrics(registry);
  return (vcenter) => ({
    onCall: (method, code, durationMs) => {
      record(vcenter, method, code, durationMs);
      tracer?.call({
        name: `vCenter ${method}`,
        durationMs,
        isError: code !== 'ok',
        attributes: { 'rpc.method': method, 'vcenter.name': vcenter, 'vcenter.code': code },
      });
    },
    onError: (error) => {
      // Outages are logged at debug level here, because `VcenterHealth` logs each outage once.
      const level = isOutage(error) ? 'debug' : 'warn';
      log[level]({ vcenter, error: String(error) }, 'Inventory watch failed, retrying');
    },
  });
}

/** Declares the metrics of calls to vCenters. @returns a function that records a call */
export function vcenterMetrics(
  registry: Registry,
): (vcenter: string, method: string, code: string, durationMs: number) => void {
  const requests = registry.counter({
    name: 'vmwright_vsphere_requests_total',
    help: 'Calls to vCenter by method and result: ok, the name of the fault, the HTTP status, or <error>.',
    labels: ['vcenter', 'method', 'code'],
  });
  const duration = registry.histogram({
    name: 'vmwright_vsphere_request_duration_seconds',
    help: 'Duration of calls to vCenter.',
    labels: ['vcenter', 'method'],
    buckets: exponentialBuckets(0.001, 2, 18),
  });
  return (vcenter, method, code, durationMs) => {
    requests.with({ vcenter, method, code }).inc();
    duration.with({ vcenter, method }).observe(durationMs / 1000);
  };
}
