import { hostname } from 'node:os';
import {
  type Access,
  type CommonOptions,
  type HttpResponse,
  jsonLogger,
  Manager,
  type ManagerElection,
  type ManagerSharding,
  type Replicas,
  type World,
} from '@vmwright/runtime';
import { startTracing } from '../tracing/tracing.ts';
import { VERSION } from '../version.ts';
import { Mirror } from './mirror.ts';
import { PostgresDatabase } from './postgres/database.ts';
import type { MirrorSettings } from './settings.ts';
import { tracedDatabase } from './traced-database.ts';

/** Name of the program, its Lease and its service account. */
export const NAME = 'ssvirt-vm-controller';

/**
 * Time that a re-created VM waits for a row of its own; then it takes over the row of its predecessor. The usual delay
 * between the creation of a VM and the insertion of its row is shorter.
 */
const CLAIM_MS = 10_000;

/** Runs the mirror until the signal aborts. */
export async function runMirror(
  world: World,
  access: Access,
  settings: MirrorSettings,
  signal: AbortSignal,
): Promise<void> {
  const { namespaces, namespace, replicas, metrics, isEnabled } = settings;
  const log = jsonLogger({ clock: world, level: settings.logLevel });
  await using tracing = await startTracing(settings.tracing, { world, log, name: NAME, version: VERSION });
  const tracer = tracing?.tracer;
  let mirror: Mirror | undefined;
  const options: CommonOptions = {
    world,
    access,
    log,
    tracer,
    name: NAME,
    eventGroup: 'core',
    ...(namespaces && { namespaces }),
    status: {
      port: metrics.port,
      ...(metrics.host !== '' && { host: metrics.host }),
      openMetrics: true,
      logLevel: log,
      routes: {
        '/health/controller': { for: 'anyone', respond: () => healthOf(settings, manager, mirror) },
        '/dead-letters': { for: 'local', respond: () => json(200, mirror?.deadLetters ?? []) },
      },
    },
  };
  const { leaseMs } = settings;
  // The times have the same ratio as the usual lease duration, renew deadline and retry period: 15 s, 10 s and 2 s.
  const times = { leaseMs, renewMs: (leaseMs * 2) / 3, retryMs: (leaseMs * 2) / 15 };
  const lease = { ...times, name: NAME, namespace };
  const manager = new Manager({ ...options, ...(isEnabled && replicasOf(replicas, lease)) });
  if (isEnabled) {
    const { mapping, workers, baseMs, maxMs, resyncMs, settlingMs, statusEvents, database } = settings;
    const postgres = new PostgresDatabase({ ...database, clock: world, identity: hostname() });
    mirror = new Mirror(manager, {
      world,
      log,
      tracer,
      namespaces,
      mapping,
      workers,
      resyncMs,
      settlingMs,
      statusEvents,
      claimMs: CLAIM_MS,
      backoff: { baseMs, maxMs },
      takesOver: replicas !== 'single',
      database: tracer === undefined ? postgres : tracedDatabase(postgres, tracer, world),
    });
  } else log.info({}, 'The controller is disabled by CONTROLLER_ENABLED; waiting for a termination signal');
  await manager.run(signal);
}

function replicasOf(
  replicas: MirrorSettings['replicas'],
  lease: ManagerElection & ManagerSharding,
): Replicas {
  if (replicas === 'single') return {};
  return replicas === 'election' ? { election: { ...lease, observesFirst: true } } : { sharding: lease };
}

/** Returns the response of `/health/controller`. A standby replica is healthy without a session with the database. */
function healthOf({ replicas }: MirrorSettings, manager: Manager, mirror: Mirror | undefined): HttpResponse {
  if (mirror === undefined) return json(200, { status: 'healthy', controller: 'disabled' });
  const { isConnected, pending, lagSeconds, deadLetters } = mirror.health;
  const isStandby = replicas === 'election' && manager.ready;
  const controller = manager.isActive ? 'running' : isStandby ? 'standby' : 'not_running';
  const isHealthy = controller === 'standby' || (controller === 'running' && isConnected);
  return json(isHealthy ? 200 : 503, {
    status: isHealthy ? 'healthy' : 'unhealthy',
    controller,
    cacheSynced: manager.ready,
    ...(controller === 'running' && { database: isConnected ? 'reachable' : 'unreachable' }),
    pending,
    lagSeconds,
    deadLetters,
  });
}

function json(status: number, body: unknown): HttpResponse {
  return { status, text: `${JSON.stringify(body)}\n`, contentType: 'application/json' };
}
