/* Settings of `ssvirt-vm-controller`. The help text and the tables in docs/mirror.md are generated from this file. */

/** A setting: a key in a section of the config file, and an environment variable with the same meaning. */
export interface MirrorSetting {
  readonly variable: string;
  /** Default; empty: none. */
  readonly byDefault: string;
  /** Text that the documentation shows for a setting without a default. @default `none` */
  readonly unset?: string;
  /** One or two sentences, in Markdown. */
  readonly description: string;
}

/** Settings of the section `controller`. */
export const CONTROLLER = {
  enabled: {
    variable: 'CONTROLLER_ENABLED',
    byDefault: 'true',
    description: 'With `false`, the program serves the endpoints, reports `disabled` and mirrors nothing.',
  },
  maxConcurrentReconciles: {
    variable: 'CONTROLLER_MAX_CONCURRENT',
    byDefault: '5',
    description:
      'Maximum number of batches of rows that are prepared at the same time. All batches share one database connection.',
  },
  baseDelay: {
    variable: 'CONTROLLER_BASE_DELAY',
    byDefault: '1s',
    description:
      'Delay before the first retry of a failed write or of a failed connection to the database. The delay doubles with each further failure.',
  },
  maxDelay: {
    variable: 'CONTROLLER_MAX_DELAY',
    byDefault: '5m',
    description: 'Longest delay before a retry.',
  },
  resyncPeriod: {
    variable: 'CONTROLLER_RESYNC_PERIOD',
    byDefault: '10m',
    description:
      'Interval between two comparisons of the whole table with the cluster. The interval varies randomly by ± 10 %.',
  },
  enableLeaderElection: {
    variable: 'CONTROLLER_LEADER_ELECTION',
    byDefault: 'true',
    description:
      'Elects one active replica. With `false` and without `controller.sharding`, run exactly one replica, with the update strategy `Recreate`.',
  },
  leaseDuration: {
    variable: 'CONTROLLER_LEASE_DURATION',
    byDefault: '15s',
    description:
      'Time after which another replica takes over from one that does not respond, in whole seconds.',
  },
  namespace: {
    variable: 'CONTROLLER_NAMESPACE',
    byDefault: 'ssvirt-system',
    description: 'Namespace of the Lease `ssvirt-vm-controller`.',
  },
  metricsAddr: {
    variable: 'CONTROLLER_METRICS_ADDR',
    byDefault: ':8080',
    description: 'Address of the [endpoints](#endpoints) for health checks and metrics.',
  },
  watchNamespaces: {
    variable: 'CONTROLLER_WATCH_NAMESPACES',
    byDefault: '',
    unset: 'all',
    description:
      'Namespaces to watch: a list in the file, separated by commas in the variable. Rows of other namespaces are not changed.',
  },
  settlingTime: {
    variable: 'CONTROLLER_SETTLING_TIME',
    byDefault: '3s',
    description:
      'Time for which KubeVirt must report `Stopped` for a VM that should run before the mirror writes this status.',
  },
  fence: {
    variable: 'CONTROLLER_FENCE',
    byDefault: 'session',
    description:
      'How the database rejects writes of a replica that another replica has replaced: `session` or `table`, see [PgBouncer](#pgbouncer). `table` requires leader election or sharding.',
  },
  sharding: {
    variable: 'CONTROLLER_SHARDING',
    byDefault: 'false',
    description: 'Divides the namespaces among all replicas, see [Sharding](#sharding).',
  },
  statusEvents: {
    variable: 'CONTROLLER_STATUS_EVENTS',
    byDefault: 'on',
    description: 'With `off`, no `StatusUpdated` events are recorded.',
  },
  logLevel: {
    variable: 'CONTROLLER_LOG_LEVEL',
    byDefault: 'info',
    description: '`debug`, `info`, `warn` or `error`.',
  },
} as const satisfies Readonly<Record<string, MirrorSetting>>;

/** Settings of the section `database`. The API server of SSVirt reads the same section. */
export const DATABASE = {
  url: {
    variable: 'DATABASE_URL',
    byDefault: '',
    description:
      'Connection URL: `postgres://user:password@host:5432/ssvirt?sslmode=verify-full`. Parts of the URL take precedence over the separate settings, including the password file.',
  },
  host: {
    variable: 'SSVIRT_DATABASE_HOST',
    byDefault: 'localhost',
    description: 'Host of the primary server. A standby server is rejected.',
  },
  port: {
    variable: 'SSVIRT_DATABASE_PORT',
    byDefault: '5432',
    description: 'Port of the primary server.',
  },
  username: {
    variable: 'SSVIRT_DATABASE_USERNAME',
    byDefault: '',
    unset: 'required',
    description:
      'Name of the [database role](#database-role). Not required if `controller.enabled` is `false`.',
  },
  password: {
    variable: 'SSVIRT_DATABASE_PASSWORD',
    byDefault: '',
    description:
      'Password of the database role. The config file is read again for each connection, so a new password in the file needs no restart. A new password in the variable needs a restart.',
  },
  passwordFile: {
    variable: 'SSVIRT_DATABASE_PASSWORD_FILE',
    byDefault: '',
    description: 'File with the password. Read for each connection.',
  },
  database: {
    variable: 'SSVIRT_DATABASE_DATABASE',
    byDefault: 'ssvirt',
    description: 'Name of the database.',
  },
  sslmode: {
    variable: 'SSVIRT_DATABASE_SSLMODE',
    byDefault: 'prefer',
    description:
      'TLS mode of libpq: `disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`. Use `verify-full` in production.',
  },
  sslrootcert: {
    variable: 'SSVIRT_DATABASE_SSLROOTCERT',
    byDefault: '',
    unset: "the system's CAs",
    description: 'File with the CA certificates to trust. Read for each connection.',
  },
  maxConnections: {
    variable: 'SSVIRT_DATABASE_MAX_CONNECTIONS',
    byDefault: '10',
    description:
      'Has no effect, because the mirror always uses one connection. The setting is accepted because this section is shared with the API server of SSVirt.',
  },
} as const satisfies Readonly<Record<string, MirrorSetting>>;

/** The only setting that is a map. It is also the only one without an environment variable. */
const STATUS_MAPPING = {
  key: 'controller.statusMapping',
  unset: 'see below',
  description:
    'Values of the column `vms.status` by state of the VM. Each entry replaces one entry of the default [status mapping](#status-mapping).',
};

/** A setting of `ssvirt-vm-controller`, for the documentation. */
export interface MirrorSettingRow {
  /** Key in the config file with its section: `database.host`. */
  readonly key: string;
  readonly variable: string;
  /** Constant default, or a description of the default in words. */
  readonly byDefault: string;
  /** Whether `byDefault` is a value that the setting accepts. */
  readonly isConstant: boolean;
  readonly description: string;
}

/** Returns all settings of `ssvirt-vm-controller`, those of the database first. */
export function mirrorSettingRows(): readonly MirrorSettingRow[] {
  const { key, unset, description } = STATUS_MAPPING;
  return [
    ...rowsOf('database', DATABASE),
    ...rowsOf('controller', CONTROLLER),
    { key, variable: '', byDefault: unset, isConstant: false, description },
  ];
}

function rowsOf(
  section: string,
  settings: Readonly<Record<string, MirrorSetting>>,
): readonly MirrorSettingRow[] {
  return Object.entries(settings).map(([key, { variable, byDefault, unset = 'none', description }]) => ({
    key: `${section}.${key}`,
    variable,
    description,
    byDefault: byDefault || unset,
    isConstant: byDefault !== '',
  }));
}
