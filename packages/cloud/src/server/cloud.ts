import { readFileSync } from 'node:fs';
import { createSecureContext, Server as TlsServer } from 'node:tls';
import { jsonLogger, type Logger, messageOf, nodeWorld, STANDARD_OUTPUT, writeAll } from '@vmwright/core';
import { StartError } from './errors.ts';
import { Faults } from './faults/faults.ts';
import { type App, createApp } from './http/app.ts';
import { Servers } from './http/servers.ts';
import { ApiKeys } from './keys/api-keys.ts';
import type { Driver } from './machines/driver.ts';
import { Machines } from './machines/machines.ts';
import { CloudMetrics } from './metrics/cloud-metrics.ts';
import { ProhibitedNames } from './names/prohibited-names.ts';
import { QemuDriver } from './qemu/qemu-driver.ts';
import type { Settings } from './settings/settings.ts';
import { SimulatedDriver } from './simulated/simulated-driver.ts';
import { Store } from './store/store.ts';

/** A cloud that serves. */
export interface Cloud {
  readonly url: string;
  /** Takes up changed keys, prohibited names and certificate; what makes no sense is logged, and the old stays. */
  reload(): void;
  /** Takes no more requests, answers those under way, ends. The machines go on. */
  close(): Promise<void>;
}

const HOUR_MS = 60 * 60 * 1000;
const SWEEP_MS = 50;

/**
 * Starts the cloud in this process.
 *
 * Flow: settings and files are read, the data is claimed, the driver opened; machines that were under way are taken up
 * again; only then requests are.
 *
 * @throws StartError that says in a sentence what is in the way
 */
export async function startCloud(settings: Settings): Promise<Cloud> {
  const clock = nodeWorld;
  const log = jsonLogger({ clock, level: settings.logLevel });
  await using stack = new AsyncDisposableStack();
  const keys = new ApiKeys({ file: settings.keysFile, text: settings.keys });
  const names = stack.use(new ProhibitedNames(settings.prohibitedFile, log));
  const tls = settings.tls && certificate(settings.tls);
  const { data: file, keepKeysMs, observeEveryMs, graceMs } = settings;
  const writeAudit = (line: string) => writeAll(STANDARD_OUTPUT, line);
  const store = stack.use(new Store({ file, clock, keepKeysMs, writeAudit }));
  const driver = await openDriver(settings, store, log);
  const metrics = new CloudMetrics();
  const machines = new Machines({ store, driver, clock, log, metrics, observeEveryMs });
  stack.defer(() => machines.close());
  const faults = settings.enableFaults ? new Faults() : undefined;
  const servers = new Servers({ store, machines, names });
  const app = createApp({ servers, store, keys, metrics, faults, log, tls });
  stack.defer(() => closeApp(app, graceMs));
  store.dropOldKeys();
  const dropping = setInterval(() => attempt(log, () => store.dropOldKeys()), HOUR_MS);
  stack.defer(() => clearInterval(dropping));
  machines.resume();
  const url = await listen(app, settings);
  if (faults !== undefined) log.warn({}, 'requests to /faults can make this cloud misbehave');
  // At whatever level: where it listens is not known from anywhere else when the port was left open.
  jsonLogger({ clock, level: 'info' }).info({ url, driver: driver.name, data: file }, 'listening');
  const held = stack.move();
  return {
    url,
    reload: () => {
      attempt(log, () => keys.reload());
      names.reload();
      attempt(log, () => {
        if (settings.tls && app.server instanceof TlsServer)
          app.server.setSecureContext(certificate(settings.tls));
      });
    },
    close: () => held.disposeAsync(),
  };
}

async function openDriver(settings: Settings, store: Store, log: Logger): Promise<Driver> {
  const owner = store.driver(settings.driver);
  if (owner !== settings.driver) {
    throw new StartError(
      'DRIVER',
      `${settings.data} has servers of the driver ${owner}; start with --driver ${owner}, or with another --data`,
    );
  }
  if (settings.driver === 'qemu') return QemuDriver.open(settings.qemu, { clock: nodeWorld, log });
  return new SimulatedDriver(settings.simulated, nodeWorld);
}

async function listen(app: App, { listen: { host, port }, tls }: Settings): Promise<string> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    throw new StartError('LISTEN', `cannot serve on ${host}:${port}: ${messageOf(error)}`, { cause: error });
  }
  const address = app.server.address();
  const chosen = address === null || typeof address === 'string' ? port : address.port;
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${chosen}`;
}

async function closeApp(app: App, graceMs: number): Promise<void> {
  const late = setTimeout(() => app.server.closeAllConnections(), graceMs);
  // A connection whose answer was under way is kept for a next request when it has been given, and would hold up the end.
  const sweeping = setInterval(() => app.server.closeIdleConnections(), SWEEP_MS);
  await app.close();
  clearInterval(sweeping);
  clearTimeout(late);
}

function certificate({ certificateFile, keyFile }: NonNullable<Settings['tls']>): {
  cert: Buffer;
  key: Buffer;
} {
  try {
    const pair = { cert: readFileSync(certificateFile), key: readFileSync(keyFile) };
    createSecureContext(pair); // throws where they are none, or do not belong together
    return pair;
  } catch (error) {
    throw new StartError('SETTINGS', `the certificate cannot be used: ${messageOf(error)}`, { cause: error });
  }
}

function attempt(log: Logger, work: () => void): void {
  try {
    work();
  } catch (error) {
    log.error({ error: messageOf(error) }, 'this stays as it was');
  }
}
