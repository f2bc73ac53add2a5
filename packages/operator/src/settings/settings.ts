import type { Level } from '@vmwright/runtime';
import { type CloudSettings, parseCloudSettings } from './cloud.ts';
import {
  parseStatusSettings,
  parseWebhookSettings,
  type StatusSettings,
  type WebhookSettings,
} from './endpoints.ts';
import { type Flag, parseFlags } from './flags.ts';
import { type KubevirtSettings, parseKubevirtSettings } from './kubevirt.ts';
import { type Environment, invalidFlag, parseBoolean, parseLevel, parseList, parseTime } from './values.ts';
import { parseVsphereSettings, type VsphereSettings } from './vsphere.ts';

/** Validated settings of the operator, from flags and environment variables. */
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
  /** Settings of the VM controller; undefined if it is disabled. */
  readonly cloud: CloudSettings | undefined;
  /** Settings of the VmGroup controller; undefined if it is disabled. */
  readonly vsphere: VsphereSettings | undefined;
  /** Settings of the VirtualMachine and VMDiskImage controllers; undefined if they are disabled. */
  readonly kubevirt: KubevirtSettings | undefined;
}

interface ElectionSettings {
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly retryMs: number;
}

/** @throws SettingsError */
export function settingsFrom(args: readonly string[], environment: Environment): Settings {
  const flags = parseFlags(args);
  const text = (flag: Flag) => flags[flag] ?? '';
  const controllers = parseControllers(text('controllers'));
  const elect = flags['enable-leader-election'] ?? text('leader-elect');
  return {
    namespace: flags.namespace || environment.POD_NAMESPACE || 'vmwright-system',
    namespaces: parseList(flags.namespaces ?? environment.WATCH_NAMESPACES),
    cluster: parseClusterId(flags['cluster-id']),
    election: parseBoolean('leader-elect', elect) ? parseElection(text) : undefined,
    status: parseStatusSettings(flags, text),
    webhook: parseWebhookSettings(flags, text),
    revision: environment.VMWRIGHT_REVISION || 'unknown',
    logLevel: parseLevel(text('log-level')),
    cloud: controllers.has('vm') ? parseCloudSettings(text, environment) : undefined,
    vsphere: controllers.has('vmgroup') ? parseVsphereSettings(text, environment) : undefined,
    kubevirt: controllers.has('kubevirt') ? parseKubevirtSettings(text, environment) : undefined,
  };
}

/** Checks the constraints of the runtime's leader election here too, so that messages name the flags. */
function parseElection(text: (flag: Flag) => string): ElectionSettings {
  const [lease, renew, retry] = [
    'leader-elect-lease-duration',
    'leader-elect-renew-deadline',
    'leader-elect-retry-period',
  ] as const;
  const [leaseMs, renewMs, retryMs] = [
    parseTime(`--${lease}`, text(lease)),
    parseTime(`--${renew}`, text(renew)),
    parseTime(`--${retry}`, text(retry)),
  ];
  if (leaseMs % 1_000 !== 0) throw invalidFlag(lease, text(lease), 'whole seconds');
  if (renewMs >= leaseMs)
    throw invalidFlag(renew, text(renew), `less than --${lease}, which is ${text(lease)}`);
  if (renewMs < 2 * retryMs)
    throw invalidFlag(retry, text(retry), `at most half of --${renew}, which is ${text(renew)}`);
  return { leaseMs, renewMs, retryMs };
}

/** Treats an empty id as unset: manifest templates render it without a value, and several clusters would then share it. */
function parseClusterId(value: string | undefined): string | undefined {
  if (value === undefined || value === '') return undefined;
  if (/^[A-Za-z0-9._-]{1,63}$/.test(value)) return value;
  throw invalidFlag(
    'cluster-id',
    value,
    '1 to 63 letters, digits, "-", "_" and ".", and unique to each cluster',
  );
}

const CONTROLLERS = ['vm', 'vmgroup', 'kubevirt'] as const;

function parseControllers(value: string): ReadonlySet<string> {
  const names = parseList(value) ?? [];
  const unknown = names.find((name) => !CONTROLLERS.some((known) => known === name));
  if (unknown !== undefined || names.length === 0)
    throw invalidFlag(
      'controllers',
      value,
      `a comma-separated list of these names: ${CONTROLLERS.join(', ')}`,
    );
  return new Set(names);
}
