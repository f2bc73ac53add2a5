import type { Level } from '@vmwright/runtime';
import { type CloudSettings, cloudIn } from './cloud.ts';
import { type StatusSettings, statusIn, type WebhookSettings, webhookIn } from './endpoints.ts';
import { type Flag, flagsIn } from './flags.ts';
import { type Environment, level, listIn, time, truth, wrong } from './values.ts';
import { type VsphereSettings, vsphereIn } from './vsphere.ts';

/** What the program is told, by flags and by its environment; checked. */
export interface Settings {
  /** Of its leases, certificates and service account. */
  readonly namespace: string;
  /** Those it looks at. @default all */
  readonly namespaces: readonly string[] | undefined;
  /** Marks what it makes outside; undefined: by the cluster itself. */
  readonly cluster: string | undefined;
  readonly election: ElectionSettings | undefined;
  readonly status: StatusSettings;
  readonly webhook: WebhookSettings;
  /** Commit that the program was built from. */
  readonly revision: string;
  readonly logLevel: Level;
  /** Undefined where no controller needs it. */
  readonly cloud: CloudSettings | undefined;
  /** Undefined where no controller needs it. */
  readonly vsphere: VsphereSettings | undefined;
}

interface ElectionSettings {
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly retryMs: number;
}

/** @throws SettingsError */
export function settingsFrom(args: readonly string[], environment: Environment): Settings {
  const flags = flagsIn(args);
  const text = (flag: Flag) => flags[flag] ?? '';
  const controllers = controllersIn(text('controllers'));
  const elect = flags['enable-leader-election'] ?? text('leader-elect');
  return {
    namespace: flags.namespace || environment.POD_NAMESPACE || 'vmwright-system',
    namespaces: listIn(flags.namespaces ?? environment.WATCH_NAMESPACES),
    cluster: clusterIn(flags['cluster-id']),
    election: truth('leader-elect', elect) ? electionIn(text) : undefined,
    status: statusIn(flags, text),
    webhook: webhookIn(flags, text),
    revision: environment.VMWRIGHT_REVISION || 'unknown',
    logLevel: level(text('log-level')),
    cloud: controllers.has('vm') ? cloudIn(text, environment) : undefined,
    vsphere: controllers.has('vmgroup') ? vsphereIn(text, environment) : undefined,
  };
}

/** Held to what an election can work with (see the runtime's), by the names of the flags. */
function electionIn(text: (flag: Flag) => string): ElectionSettings {
  const [lease, renew, retry] = [
    'leader-elect-lease-duration',
    'leader-elect-renew-deadline',
    'leader-elect-retry-period',
  ] as const;
  const [leaseMs, renewMs, retryMs] = [
    time(lease, text(lease)),
    time(renew, text(renew)),
    time(retry, text(retry)),
  ];
  if (leaseMs % 1_000 !== 0) throw wrong(lease, text(lease), 'whole seconds');
  if (renewMs >= leaseMs) throw wrong(renew, text(renew), `less than --${lease}, which is ${text(lease)}`);
  if (renewMs < 2 * retryMs)
    throw wrong(retry, text(retry), `at most half of --${renew}, which is ${text(renew)}`);
  return { leaseMs, renewMs, retryMs };
}

/** An empty one, as a template without a value leaves it, is none: two clusters that share it would sweep each other's. */
function clusterIn(value: string | undefined): string | undefined {
  if (value === undefined || value === '') return undefined;
  if (/^[A-Za-z0-9._-]{1,63}$/.test(value)) return value;
  throw wrong('cluster-id', value, '1 to 63 letters, digits, "-", "_" and ".", another for each cluster');
}

const CONTROLLERS = ['vm', 'vmgroup'] as const;

function controllersIn(value: string): ReadonlySet<string> {
  const names = listIn(value) ?? [];
  const unknown = names.find((name) => !CONTROLLERS.some((known) => known === name));
  if (unknown !== undefined || names.length === 0)
    throw wrong('controllers', value, `some of ${CONTROLLERS.join(', ')}, separated by commas`);
  return new Set(names);
}
