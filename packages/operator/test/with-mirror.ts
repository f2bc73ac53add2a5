import { readFile } from 'node:fs/promises';
import {
  type Cluster,
  installMirror,
  type MirrorPart,
  type Postgres,
  Ssvirt,
  startMirror,
  startPostgres,
  verifyMirror,
} from '@vmwright/testbed';
import { expect } from 'vitest';

/** Settings that make the tests fast: short back-off, frequent resync. */
const FAST = {
  CONTROLLER_BASE_DELAY: '100ms',
  CONTROLLER_MAX_DELAY: '1s',
  CONTROLLER_SETTLING_TIME: '1500ms',
  CONTROLLER_RESYNC_PERIOD: '2s',
};

/** A machine to create with `WithMirror.create`. */
export interface NewMachine {
  readonly labels?: Readonly<Record<string, string>>;
  /** @default Always */
  readonly runStrategy?: string;
  /** Annotations of the machine's template, without the prefix `testbed.vmwright.dev/`. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Response of `/health/controller`. */
export interface Health {
  readonly code: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A PostgreSQL server with SSVirt's schema, and a mirror that writes the statuses of one cluster's VMs to it. */
export interface WithMirror extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly postgres: Postgres;
  readonly ssvirt: Ssvirt;
  /** The mirror that was started last. */
  readonly mirror: MirrorPart;
  /** Starts a mirror with additional environment variables. */
  start(env?: Readonly<Record<string, string>>): Promise<MirrorPart>;
  create(namespace: string, name: string, machine?: NewMachine): Promise<void>;
  /** Waits until the row with this id has this status. */
  until(id: string, status: string): Promise<void>;
  /** Returns the value of a series in the metrics of the mirror; 0 if it does not exist. */
  metric(series: string): Promise<number>;
  health(): Promise<Health>;
  log(): Promise<string>;
  /** Runs `ssvirt-vm-controller verify`. */
  verify(): ReturnType<typeof verifyMirror>;
}

export async function withMirror(cluster: Cluster): Promise<WithMirror> {
  await using stack = new AsyncDisposableStack();
  const postgres = stack.use(await startPostgres());
  const ssvirt = stack.use(await Ssvirt.install(postgres));
  await installMirror(cluster);
  const options = { cluster, database: postgres };
  let mirror = stack.use(await startMirror({ ...options, env: FAST }));
  const owned = stack.move();
  return {
    cluster,
    postgres,
    ssvirt,
    get mirror() {
      return mirror;
    },
    start: async (env = {}) => {
      mirror = owned.use(await startMirror({ ...options, env: { ...FAST, ...env } }));
      return mirror;
    },
    create: (namespace, name, machine) => createMachine(cluster, namespace, name, machine),
    until: (id, status) => untilStatus(ssvirt, id, status),
    metric: (series) => metricOf(mirror, series),
    health: () => healthOf(mirror),
    log: () => readFile(mirror.part.log, 'utf8'),
    verify: () => verifyMirror(options),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Returns the value of a series in the metrics of a mirror; 0 if it does not exist. */
export async function metricOf({ url }: Pick<MirrorPart, 'url'>, series: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.slice(series.length + 1));
}

/** Waits until the row with this id has this status. */
export async function untilStatus(ssvirt: Ssvirt, id: string, status: string): Promise<void> {
  await expect.poll(() => ssvirt.status(id), { interval: 30 }).toBe(status);
}

export async function healthOf({ url }: Pick<MirrorPart, 'url'>): Promise<Health> {
  const response = await fetch(`${url}/health/controller`);
  return { code: response.status, body: fieldsOf(await response.json()) };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** Creates a KubeVirt VM. */
export function createMachine(
  cluster: Cluster,
  namespace: string,
  name: string,
  machine: NewMachine = {},
): Promise<void> {
  return cluster.apply(machineManifest(namespace, name, machine));
}

function machineManifest(namespace: string, name: string, machine: NewMachine): string {
  const annotations = Object.entries(machine.annotations ?? {}).map(([key, value]) => [
    `testbed.vmwright.dev/${key}`,
    value,
  ]);
  return JSON.stringify({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace, ...(machine.labels && { labels: machine.labels }) },
    spec: {
      runStrategy: machine.runStrategy ?? 'Always',
      template: {
        metadata: { annotations: Object.fromEntries(annotations) },
        spec: {
          terminationGracePeriodSeconds: 0,
          domain: { devices: {}, memory: { guest: '64Mi' } },
        },
      },
    },
  });
}

export function machinePath(namespace: string, name: string): string {
  return `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines/${name}`;
}
