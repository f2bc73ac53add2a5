import type { Level } from '@vmwright/runtime';
import { type CloudSettings, parseCloudSettings } from './cloud.ts';
import {
  CONTROLLERS,
  type ControllerName,
  type DisabledController,
  selectControllers,
} from './controllers.ts';
import {
  parseStatusSettings,
  parseWebhookSettings,
  type StatusSettings,
  type WebhookSettings,
} from './endpoints.ts';
import { type Flag, type Flags, parseFlags } from './flags.ts';
import { type GpuInfoSettings, parseGpuInfoSettings } from './gpuinfo.ts';
import { type KubevirtSettings, parseKubevirtSettings } from './kubevirt.ts';
import { aliasOf, type ConfigFile, configFileOf, type Sources, sourcesOf } from './sources.ts';
import { parseTracingSettings, type TracingSettings } from './tracing.ts';
import {
  type Environment,
  invalidSetting,
  parseBoolean,
  parseLevel,
  parseList,
  parseTime,
} from './values.ts';
import { parseVsphereSettings, type VsphereSettings } from './vsphere.ts';

/** Validated settings of the operator, from flags, environment variables and the config file. */
export interface Settings {
  /** Namespace of the operator's Leases, certificates and service account. */
  readonly namespace: string;
  /** Namespaces to watch. @default all */
  readonly namespaces: readonly string[] | undefined;
  /** Id of this cluster in ownership labels; undefined: the UID of the namespace kube-system. */
  readonly cluster: string | undefined;
  readonly election: ElectionSettings | undefined;
  readonly status: StatusSettings;
  readonly webhook: WebhookSettings;
  /** Commit that the program was built from. */
  readonly revision: string;
  readonly logLevel: Level;
  /** Format of the log; undefined: text on a terminal, else JSON. */
  readonly logFormat: LogFormat | undefined;
  /** Settings of tracing; undefined if it is off. */
  readonly tracing: TracingSettings | undefined;
  /** Controllers that `--controllers` names. It is an error if one of them cannot run. */
  readonly named: ReadonlySet<ControllerName>;
  /** Controllers that do not run, because they are excluded or their settings are missing. */
  readonly disabled: readonly DisabledController[];
  /** Settings of the VM controller; undefined if it is disabled. */
  readonly cloud: CloudSettings | undefined;
  /** Settings of the VmGroup controller; undefined if it is disabled. */
  readonly vsphere: VsphereSettings | undefined;
  /** Settings of the VirtualMachine and VMDiskImage controllers; undefined if they are disabled. */
  readonly kubevirt: KubevirtSettings | undefined;
  /** Settings of the GPUInfo controller; undefined if it is disabled. */
  readonly gpuinfo: GpuInfoSettings | undefined;
}

type LogFormat = 'json' | 'text';

interface ElectionSettings {
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly retryMs: number;
}

/** Reads the config file, if one is set, and returns the settings. @throws SettingsError */
export async function loadSettings(flags: Flags, environment: Environment): Promise<Settings> {
  return settingsOf(flags, environment, await configFileOf(flags, environment));
}

/**
 * Returns the settings from flags, environment variables and defaults, without the config file.
 * @param args flags of the command line @throws SettingsError
 */
export function settingsFrom(args: readonly string[], environment: Environment): Settings {
  return settingsOf(parseFlags(args), environment);
}

/** @param flags flags that are given on the command line @throws SettingsError */
export function settingsOf(flags: Flags, environment: Environment, config?: ConfigFile): Settings {
  const sources = sourcesOf(flags, environment, config);
  const { text, name } = sources;
  const elect = aliasOf(sources, 'leader-elect', 'enable-leader-election');
  return {
    namespace: text('namespace') || 'vmwright-system',
    namespaces: parseList(text('namespaces')),
    cluster: parseClusterId(name('cluster-id'), text('cluster-id')),
    election: parseBoolean(name(elect), text(elect)) ? parseElection(sources) : undefined,
    status: parseStatusSettings(sources),
    webhook: parseWebhookSettings(sources),
    revision: environment.VMWRIGHT_REVISION || 'unknown',
    logLevel: parseLevel(name('log-level'), text('log-level')),
    logFormat: parseLogFormat(name('log-format'), text('log-format')),
    tracing: parseTracingSettings(environment),
    ...controllerSettings(sources),
  };
}

type ControllerSettings = Pick<Settings, 'named' | 'disabled' | 'cloud' | 'vsphere' | 'kubevirt' | 'gpuinfo'>;

/** Whether a controller needs a backend. By default, such a controller runs only if settings name its backend. */
export function needsBackend(controller: ControllerName): boolean {
  return BACKENDS[controller] !== undefined;
}

/** Settings that name the backend of a controller. The controller is off by default if none of them is set. */
const BACKENDS: {
  readonly [C in ControllerName]?: {
    flags: readonly Flag[];
    variables?: readonly string[];
    why: string;
    remedy: string;
  };
} = {
  vm: {
    flags: ['cloud-url'],
    why: 'CLOUD_URL is not set',
    remedy: 'set CLOUD_URL to the URL of the private cloud, and CLOUD_API_KEY',
  },
  vmgroup: {
    flags: ['vc-host', 'vcenters'],
    variables: ['GOVMOMI_URL'],
    why: 'neither VC_HOST nor --vcenters is set',
    remedy: 'set VC_HOST to the name or address of vCenter, with VC_USER and VC_PASS, or set --vcenters',
  },
};

/** A controller runs by default if its backend is configured. A controller that the user names must be configured. */
function controllerSettings(sources: Sources): ControllerSettings {
  const { text, name, isGiven, environment } = sources;
  const setting = name('controllers');
  const selectionOf = selectControllers(setting, text('controllers'));
  const disabled = CONTROLLERS.flatMap((controller): readonly DisabledController[] => {
    const selection = selectionOf(controller);
    if (selection === 'off')
      return [{ name: controller, why: `${setting} excludes it`, remedy: `add ${controller} to ${setting}` }];
    const backend = BACKENDS[controller];
    const isConfigured =
      backend === undefined ||
      backend.flags.some((flag) => isGiven(flag)) ||
      backend.variables?.some((variable) => Boolean(environment[variable]));
    return selection === 'named' || isConfigured
      ? []
      : [{ name: controller, why: backend.why, remedy: backend.remedy }];
  });
  const runs = (controller: ControllerName) => !disabled.some((each) => each.name === controller);
  return {
    named: new Set(CONTROLLERS.filter((controller) => selectionOf(controller) === 'named')),
    disabled,
    cloud: runs('vm') ? parseCloudSettings(sources) : undefined,
    vsphere: runs('vmgroup') ? parseVsphereSettings(sources) : undefined,
    kubevirt: runs('kubevirt') ? parseKubevirtSettings(sources) : undefined,
    gpuinfo: runs('gpuinfo') ? parseGpuInfoSettings(sources) : undefined,
  };
}

/** Repeats the checks of the runtime's leader election, so that messages name the flags. */
function parseElection({ text, name }: Sources): ElectionSettings {
  const [lease, renew, retry] = [
    'leader-elect-lease-duration',
    'leader-elect-renew-deadline',
    'leader-elect-retry-period',
  ] as const;
  const [leaseMs, renewMs, retryMs] = [
    parseTime(name(lease), text(lease)),
    parseTime(name(renew), text(renew)),
    parseTime(name(retry), text(retry)),
  ];
  if (leaseMs % 1_000 !== 0) throw invalidSetting(name(lease), text(lease), 'whole seconds');
  if (renewMs >= leaseMs)
    throw invalidSetting(name(renew), text(renew), `less than ${name(lease)}, which is ${text(lease)}`);
  if (renewMs < 2 * retryMs)
    throw invalidSetting(name(retry), text(retry), `at most half of ${name(renew)}, which is ${text(renew)}`);
  return { leaseMs, renewMs, retryMs };
}

/**
 * Treats an empty id as unset. Templates of manifests may render the flag without a value, and several clusters would
 * then share the empty id.
 */
function parseClusterId(name: string, value: string): string | undefined {
  if (value === '') return undefined;
  if (/^[A-Za-z0-9._-]{1,63}$/.test(value)) return value;
  throw invalidSetting(name, value, '1 to 63 letters, digits, "-", "_" and ".", and unique to each cluster');
}

function parseLogFormat(name: string, value: string): LogFormat | undefined {
  if (value === '') return undefined;
  if (value === 'json' || value === 'text') return value;
  throw invalidSetting(name, value, 'json or text');
}
