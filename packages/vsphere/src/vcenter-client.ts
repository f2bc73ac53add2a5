import type { TlsOptions, Transport } from '@vmwright/core';
import { NotFoundError, OptionsError } from './errors.ts';
import { nameOf } from './faults.ts';
import { Health } from './health/health.ts';
import { Inventory, type InventoryOptions } from './inventory/inventory.ts';
import { Lookup } from './lookup/lookup.ts';
import { Attributes } from './machines/attributes.ts';
import { Machines } from './machines/machines.ts';
import {
  isOfType,
  type ManagedType,
  objectSpec,
  type Ref,
  retrieve,
  retrieveBelow,
  type TypedManagedObject,
} from './properties/properties.ts';
import { BatchingSchedule } from './property-watcher/poll-schedule.ts';
import { PropertyWatcher } from './property-watcher/property-watcher.ts';
import type { Credentials } from './session/credentials.ts';
import { SERVICE } from './session/login.ts';
import { Session } from './session/session.ts';
import { type CallOptions, SessionClient } from './session/session-client.ts';
import { type CallObserver, SoapClient } from './soap/soap-client.ts';
import { TaskFollower } from './tasks/task-follower.ts';
import type { Properties, Vim25 } from './vim25/vim25.generated.ts';
import type { VsphereWorld } from './world.ts';

const TIMEOUT_MS = 30_000;
/**
 * Pause between inventory updates, so that vCenter reports the many property changes of one operation in one response.
 */
const INVENTORY_BATCH_MS = 250;
/**
 * Pause between inventory updates while tasks are followed. It can be long, because the task watcher reports the end of
 * each task. The end of the last task ends the pause.
 */
const BUSY_BATCH_MS = 2_000;

export interface VcenterClientOptions {
  readonly world: VsphereWorld;
  /** Address: `vcenter.example.com`, `vcenter.example.com:8443` or `https://vcenter.example.com/sdk`. */
  readonly server: string;
  /** Called at each login, so that a changed password takes effect. */
  readonly credentials: () => Credentials | Promise<Credentials>;
  /** How the server's certificate is verified. @default with the system's certificate authorities */
  readonly tls?: TlsOptions | (() => Promise<TlsOptions>);
  /** Time limit of one response, in milliseconds. @default 30_000 */
  readonly timeoutMs?: number;
  /** Prefix of the user agent. @default 'vmwright' */
  readonly userAgent?: string;
  /** API version. @default the newest that client and server support */
  readonly apiVersion?: string;
  /** How long vCenter holds a request for changes open when nothing changes, in seconds. @default 60 */
  readonly maxWaitSeconds?: number;
  /** Maximum number of objects in a response. @default vCenter's own limit */
  readonly pageSize?: number;
  readonly observer?: VcenterObserver;
}

export interface VcenterObserver extends Partial<CallObserver> {
  /** Called with errors that the client retries by itself. */
  onError?(error: unknown): void;
}

/**
 * Client of a vCenter.
 *
 * Flow: the first call logs in; all calls share the session. `await using` or `stop` logs out.
 *
 * Guarantees: the client uses one session at a time. Reads are retried when no response arrives, but changes are not.
 * After an error, `effectUnknown` says whether vCenter may have carried out the change.
 *
 * Errors: VsphereError with a message and a `code`. None contains the password.
 */
export class VcenterClient implements AsyncDisposable {
  /** Finds objects by name. */
  readonly lookup: Lookup;
  readonly machines: Machines;
  readonly attributes: Attributes;
  readonly tasks: TaskFollower;
  /** Reports for every call whether vCenter responded. */
  readonly health = new Health();
  readonly #calls: SessionClient;
  readonly #session: Session;
  readonly #transport: Transport;
  /** Watches inventories. Tasks have their own watcher, so that large inventory updates do not delay task updates. */
  readonly #watcher: PropertyWatcher;
  readonly #taskWatcher: PropertyWatcher;
  readonly #schedule: BatchingSchedule;
  readonly #options: VcenterClientOptions;
  #stopping: Promise<void> | undefined;

  constructor(options: VcenterClientOptions) {
    this.#options = options;
    const { world, credentials, timeoutMs = TIMEOUT_MS, observer, maxWaitSeconds, pageSize } = options;
    const { origin, path } = parseServer(options.server);
    this.#transport = world.connect({
      origin,
      ...(origin.startsWith('https:') && { tls: tlsOptions(options) }),
    });
    // The user agent is unique to this client: after a lost login response, it identifies the session in vCenter.
    const userAgent = `${options.userAgent ?? 'vmwright'} (${world.uuid()})`;
    const soap = new SoapClient({
      world,
      transport: this.#transport,
      path,
      userAgent,
      observer: { onCall: (...call) => observer?.onCall?.(...call) },
    });
    this.#session = new Session({
      clock: world,
      soap,
      userAgent,
      credentials,
      health: this.health,
      timeoutMs,
      version: options.apiVersion,
    });
    this.#calls = new SessionClient({ world, soap, session: this.#session, health: this.health, timeoutMs });
    const onError = (error: unknown) => observer?.onError?.(error);
    const watcherOptions = { world, calls: this.#calls, maxWaitSeconds, pageSize, onError };
    this.lookup = new Lookup(this.#calls);
    this.machines = new Machines(this.#calls, watcherOptions);
    this.attributes = new Attributes(this.#calls);
    this.#schedule = new BatchingSchedule(world, () =>
      this.tasks.isFollowing ? BUSY_BATCH_MS : INVENTORY_BATCH_MS,
    );
    this.#watcher = new PropertyWatcher({ ...watcherOptions, schedule: this.#schedule });
    this.tasks = new TaskFollower({
      world,
      calls: this.#calls,
      watcher: () => this.#taskWatcher,
      onIdle: () => this.flush(), // all followed tasks have ended: fetches their effects on the inventory
      onError,
    });
    this.#taskWatcher = new PropertyWatcher({ ...watcherOptions, schedule: this.tasks.schedule }, [
      this.tasks,
    ]);
  }

  /** Returns the server's description of itself and the negotiated API version. */
  async about(
    options?: CallOptions,
  ): Promise<{ readonly about: Vim25['AboutInfo']; readonly version: string }> {
    return this.#calls.retryRead(
      async ({ login: { content, version } }) => ({ about: content.about, version }),
      options,
    );
  }

  /** Verifies that vCenter responds; logs in again when the session has ended. */
  async ping(options?: CallOptions): Promise<void> {
    await this.#calls.read('CurrentTime', SERVICE, {}, options);
  }

  /**
   * Reads properties of one object.
   * @throws FaultError `OBJECT_NOT_FOUND` when it does not exist
   */
  async read<T extends ManagedType, P extends keyof Properties[T] & string>(
    ref: Ref<T>,
    paths: readonly P[],
    options?: CallOptions,
  ): Promise<Partial<Pick<Properties[T], P>>> {
    const [object] = await this.#calls.retryRead(
      (bound) => retrieve(bound, objectSpec([ref], paths)),
      options,
    );
    if (object !== undefined && isOfType(object, ref.type)) return object.properties;
    throw new NotFoundError(`vCenter returned no properties of ${nameOf(ref)}`);
  }

  /**
   * Reads properties of all objects of a type.
   * @param options.container object below which to search.
   * @default the whole vCenter
   */
  async list<T extends ManagedType>(
    type: T,
    paths: readonly (keyof Properties[T] & string)[],
    { container, ...options }: CallOptions & { readonly container?: Ref } = {},
  ): Promise<readonly TypedManagedObject<T>[]> {
    const { pageSize } = this.#options;
    const paging = pageSize === undefined ? {} : { pageSize };
    const found = await this.#calls.retryRead(
      (bound) => retrieveBelow(bound, container ?? bound.login.content.rootFolder, { [type]: paths }, paging),
      options,
    );
    return found.filter((object) => isOfType(object, type));
  }

  /** Watches objects and keeps them in memory. Dispose the inventory to end the watch. */
  inventory(options: InventoryOptions): Inventory {
    const onError = (error: unknown) => this.#options.observer?.onError?.(error);
    const inventory = new Inventory(options, { watcher: this.#watcher, onError });
    this.#watcher.add(inventory);
    return inventory;
  }

  /**
   * Fetches pending inventory changes now, without the usual pause between two inventory updates. For a caller that
   * waits for its own change.
   */
  flush(): void {
    this.#schedule.flush();
  }

  /** Stops all watches and followed tasks, logs out and closes the connections. */
  stop(): Promise<void> {
    this.#stopping ??= (async () => {
      this.tasks.stop();
      await Promise.all([this.#watcher, this.#taskWatcher].map((watcher) => watcher[Symbol.asyncDispose]()));
      await this.#session.stop();
      await this.#transport.close();
    })();
    return this.#stopping;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

function parseServer(server: string): { readonly origin: string; readonly path: string } {
  const url = URL.parse(server.includes('://') ? server : `https://${server}`);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw new OptionsError(
      `'${server}' is not a valid vCenter address: use a host name or https://<host>/sdk`,
    );
  if (url.username !== '' || url.password !== '')
    throw new OptionsError(
      'the vCenter address must not contain a user name or password: use the credentials option',
    );
  return { origin: url.origin, path: url.pathname === '/' ? '/sdk' : url.pathname };
}

function tlsOptions({ tls = {}, world }: VcenterClientOptions): () => Promise<TlsOptions> {
  const checked = ({ thumbprint, ...options }: TlsOptions): TlsOptions => {
    if (thumbprint === undefined) return options;
    if (world.pinsCertificates) return { ...options, thumbprint: normalizeThumbprint(thumbprint) };
    throw new OptionsError('tls.thumbprint is set, but this world does not support certificate pinning');
  };
  if (typeof tls === 'function') return async () => checked(await tls());
  const fixed = checked(tls);
  return async () => fixed;
}

/** Returns a SHA-256 thumbprint as 64 hexadecimal digits. SHA-1 thumbprints are rejected as insecure. */
function normalizeThumbprint(thumbprint: string): string {
  const digits = thumbprint.replace(/[:\s]/g, '').toLowerCase();
  if (/^[0-9a-f]{64}$/.test(digits)) return digits;
  throw new OptionsError('tls.thumbprint must be a SHA-256 thumbprint of 64 hexadecimal digits');
}
