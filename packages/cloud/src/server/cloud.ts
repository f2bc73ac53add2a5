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

/** A running cloud. */
export interface Cloud {
  readonly url: string;
  /**
   * Reloads API keys, prohibited names and the TLS certificate. If a file is invalid, logs the error and keeps using
   * the previous content of the file.
   */
  reload(): void;
  /** Stops accepting connections, finishes pending requests and closes the database. Machines keep running. */
  close(): Promise<void>;
}

const HOUR_MS = 60 * 60 * 1000;
const CLOSE_IDLE_INTERVAL_MS = 50;

/**
 * Starts the cloud in this process.
 *
 * Flow: reads the files, locks the database, opens the driver, resumes interrupted machine operations, and only then
 * listens.
 *
 * @throws StartError
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
  store.deleteExpiredKeys();
  const deleteKeys = () =>
    tryOrLog(log, 'Deleting expired idempotency keys failed, retrying in an hour', () =>
      store.deleteExpiredKeys(),
    );
  const keyTimer = setInterval(deleteKeys, HOUR_MS);
  stack.defer(() => clearInterval(keyTimer));
  machines.resume();
  const url = await listen(app, settings);
  if (faults !== undefined) log.warn({}, 'Fault injection through /faults is enabled');
  // Logged whatever the log level is: with port 0, this line is the only place that has the chosen port.
  jsonLogger({ clock, level: 'info' }).info({ url, driver: driver.name, data: file }, 'Listening');
  const resources = stack.move();
  return {
    url,
    reload: () => {
      tryOrLog(log, 'Reloading API keys failed, keeping the previous keys', () => keys.reload());
      names.reload();
      tryOrLog(log, 'Reloading the TLS certificate failed, keeping the previous one', () => {
        if (settings.tls && app.server instanceof TlsServer)
          app.server.setSecureContext(certificate(settings.tls));
      });
    },
    close: () => resources.disposeAsync(),
  };
}

async function openDriver(settings: Settings, store: Store, log: Logger): Promise<Driver> {
  const owner = store.claimDriver(settings.driver);
  if (owner !== settings.driver) {
    throw new StartError(
      'DRIVER',
      `${settings.data} contains servers of the ${owner} driver; use --driver ${owner} or another --data file`,
    );
  }
  if (settings.driver === 'qemu') return QemuDriver.open(settings.qemu, { clock: nodeWorld, log });
  return new SimulatedDriver(settings.simulated, nodeWorld);
}

async function listen(app: App, { listen: { host, port }, tls }: Settings): Promise<string> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    throw new StartError('LISTEN', `cannot listen on ${host}:${port}: ${messageOf(error)}`, { cause: error });
  }
  const address = app.server.address();
  const boundPort = address === null || typeof address === 'string' ? port : address.port;
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${boundPort}`;
}

async function closeApp(app: App, graceMs: number): Promise<void> {
  const deadline = setTimeout(() => app.server.closeAllConnections(), graceMs);
  // A connection becomes idle after its pending response. It would stay open for another request and delay the close.
  const closeIdle = setInterval(() => app.server.closeIdleConnections(), CLOSE_IDLE_INTERVAL_MS);
  await app.close();
  clearInterval(closeIdle);
  clearTimeout(deadline);
}

function certificate({ certificateFile, keyFile }: NonNullable<Settings['tls']>): {
  cert: Buffer;
  key: Buffer;
} {
  try {
    const pair = { cert: readFileSync(certificateFile), key: readFileSync(keyFile) };
    createSecureContext(pair); // throws if the certificate or the key is invalid, or if they do not match
    return pair;
  } catch (error) {
    throw new StartError('SETTINGS', `cannot use the TLS certificate: ${messageOf(error)}`, { cause: error });
  }
}

function tryOrLog(log: Logger, failure: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    log.error({ error: messageOf(error) }, failure);
  }
}
