import type { TlsOptions, Transport } from '@vmwright/core';
import { type CallOptions, Calls } from './calls/calls.ts';
import { NotFoundError, OptionsError } from './errors.ts';
import { nameOf } from './faults.ts';
import { PropertyWatcher } from './feed/feed.ts';
import { Pause } from './feed/pace.ts';
import { Health } from './health/health.ts';
import { Inventory, type InventoryOptions } from './inventory/inventory.ts';
import { Lookup } from './lookup/lookup.ts';
import { Attributes } from './machines/attributes.ts';
import { Machines } from './machines/machines.ts';
import {
  isKnown,
  type Known,
  type ManagedType,
  objectSpec,
  type Ref,
  retrieve,
  retrieveBelow,
} from './properties/properties.ts';
import type { Credentials } from './session/credentials.ts';
import { SERVICE } from './session/login.ts';
import { Session } from './session/session.ts';
import { type CallObserver, Wire } from './soap/wire.ts';
import { TaskFollower } from './tasks/task-follower.ts';
import type { Properties, Vim25 } from './vim25/vim25.generated.ts';
import type { VsphereWorld } from './world.ts';

const TIMEOUT_MS = 30_000;
/** A change of a machine is many small ones: together they are one answer, and one thing to look at. */
const INVENTORY_PAUSE_MS = 250;
/** While tasks are followed: their ends are told at once, and the last one's ends the pause. */
const BUSY_PAUSE_MS = 2_000;

export interface VcenterClientOptions {
  readonly world: VsphereWorld;
  /** `vcenter.example.com`, `vcenter.example.com:8443`, `https://vcenter.example.com/sdk` */
  readonly server: string;
  /** Asked at each login, so that a changed password is taken up. */
  readonly credentials: () => Credentials | Promise<Credentials>;
  /** By what the server is trusted. @default the system's authorities */
  readonly tls?: TlsOptions | (() => Promise<TlsOptions>);
  /** For one answer. @default 30_000 */
  readonly timeoutMs?: number;
  /** @default 'vmwright' */
  readonly userAgent?: string;
  /** To speak in place of the newest that both know. */
  readonly apiVersion?: string;
  /** How long vCenter waits for a change before it answers that there was none. @default 60 */
  readonly maxWaitSeconds?: number;
  /** How many objects an answer has at most. @default vCenter's own limits */
  readonly pageSize?: number;
  readonly observer?: VcenterObserver;
}

export interface VcenterObserver extends Partial<CallObserver> {
  /** Something went wrong that is tried again by itself. */
  troubled?(error: unknown): void;
}

/**
 * A vCenter.
 *
 * Flow: nothing is sent before it is needed; then it logs in, once for all who use it. `await using` or `stop` logs out.
 *
 * Guarantees: one session; reads are repeated where their answer did not come; what changes something is not, and its
 * error says whether it may have been carried out (`effectUnknown`).
 *
 * Errors: VsphereError, each with a sentence and a `code`. No password is in any.
 */
export class VcenterClient implements AsyncDisposable {
  /** Things by their names. */
  readonly lookup: Lookup;
  readonly machines: Machines;
  readonly attributes: Attributes;
  readonly tasks: TaskFollower;
  /** Tells whether vCenter answers, by every call that is made. */
  readonly health = new Health();
  readonly #calls: Calls;
  readonly #session: Session;
  readonly #transport: Transport;
  /** Of inventories; tasks have one of their own, which is quick however much there is to tell of the others. */
  readonly #feed: PropertyWatcher;
  readonly #taskFeed: PropertyWatcher;
  readonly #pause: Pause;
  readonly #options: VcenterClientOptions;
  #stopping: Promise<void> | undefined;

  constructor(options: VcenterClientOptions) {
    this.#options = options;
    const { world, credentials, timeoutMs = TIMEOUT_MS, observer, maxWaitSeconds, pageSize } = options;
    const { origin, path } = addressOf(options.server);
    this.#transport = world.connect({
      origin,
      ...(origin.startsWith('https:') && { tls: trustOf(options) }),
    });
    // Its own, so that sessions of a lost login can be told from those of others.
    const userAgent = `${options.userAgent ?? 'vmwright'} (${world.uuid()})`;
    const wire = new Wire({
      world,
      transport: this.#transport,
      path,
      userAgent,
      observer: { answered: (...told) => observer?.answered?.(...told) },
    });
    this.#session = new Session({
      clock: world,
      wire,
      agent: userAgent,
      credentials,
      health: this.health,
      timeoutMs,
      version: options.apiVersion,
    });
    this.#calls = new Calls({ world, wire, session: this.#session, health: this.health, timeoutMs });
    const troubled = (error: unknown) => observer?.troubled?.(error);
    const feeding = { world, calls: this.#calls, maxWaitSeconds, pageSize, troubled };
    this.lookup = new Lookup(this.#calls);
    this.machines = new Machines(this.#calls, feeding);
    this.attributes = new Attributes(this.#calls);
    this.#pause = new Pause(world, () => (this.tasks.isFollowing ? BUSY_PAUSE_MS : INVENTORY_PAUSE_MS));
    this.#feed = new PropertyWatcher({ ...feeding, pace: this.#pause });
    this.tasks = new TaskFollower({
      world,
      calls: this.#calls,
      feed: () => this.#taskFeed,
      idle: () => this.flush(), // what was waited for is done: it is in the inventory, too
      troubled,
    });
    this.#taskFeed = new PropertyWatcher({ ...feeding, pace: this.tasks.pace }, [this.tasks]);
  }

  /** What the server says of itself, and the version that is spoken with it. */
  async about(
    options?: CallOptions,
  ): Promise<{ readonly about: Vim25['AboutInfo']; readonly version: string }> {
    return this.#calls.reading(
      async ({ login: { content, version } }) => ({ about: content.about, version }),
      options,
    );
  }

  /** Makes sure that vCenter answers in a session, with a new one where it has ended. */
  async ping(options?: CallOptions): Promise<void> {
    await this.#calls.read('CurrentTime', SERVICE, {}, options);
  }

  /**
   * Properties of one object.
   * @throws FaultError `OBJECT_NOT_FOUND` where it is gone
   */
  async read<T extends ManagedType, P extends keyof Properties[T] & string>(
    ref: Ref<T>,
    paths: readonly P[],
    options?: CallOptions,
  ): Promise<Partial<Pick<Properties[T], P>>> {
    const [object] = await this.#calls.reading((bound) => retrieve(bound, objectSpec([ref], paths)), options);
    if (object !== undefined && isKnown(object, ref.type)) return object.properties;
    throw new NotFoundError(`${nameOf(ref)} was not among what was read`);
  }

  /** Properties of all objects of a type, in all of vCenter or below one of its objects. */
  async list<T extends ManagedType>(
    type: T,
    paths: readonly (keyof Properties[T] & string)[],
    { container, ...options }: CallOptions & { readonly container?: Ref } = {},
  ): Promise<readonly Known<T>[]> {
    const { pageSize } = this.#options;
    const paging = pageSize === undefined ? {} : { pageSize };
    const found = await this.#calls.reading(
      (bound) => retrieveBelow(bound, container ?? bound.login.content.rootFolder, { [type]: paths }, paging),
      options,
    );
    return found.filter((object) => isKnown(object, type));
  }

  /** Objects that are kept in memory as they change; `using` ends that. */
  inventory(options: InventoryOptions): Inventory {
    const troubled = (error: unknown) => this.#options.observer?.troubled?.(error);
    const inventory = new Inventory(options, { feed: this.#feed, troubled });
    this.#feed.add(inventory);
    return inventory;
  }

  /** Somebody waits for what has been done to show: inventories have it as soon as vCenter tells it. */
  flush(): void {
    this.#pause.hurry();
  }

  /** Logs out and ends all that is under way. */
  stop(): Promise<void> {
    this.#stopping ??= (async () => {
      this.tasks.stop();
      await Promise.all([this.#feed, this.#taskFeed].map((feed) => feed[Symbol.asyncDispose]()));
      await this.#session.stop();
      await this.#transport.close();
    })();
    return this.#stopping;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

function addressOf(server: string): { readonly origin: string; readonly path: string } {
  const url = URL.parse(server.includes('://') ? server : `https://${server}`);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw new OptionsError(`'${server}' is no address of a vCenter: give its name, or https://<name>/sdk`);
  if (url.username !== '' || url.password !== '')
    throw new OptionsError(
      'the address of a vCenter must not hold a user or a password: give them as credentials',
    );
  return { origin: url.origin, path: url.pathname === '/' ? '/sdk' : url.pathname };
}

function trustOf({ tls = {}, world }: VcenterClientOptions): () => Promise<TlsOptions> {
  const checked = ({ thumbprint, ...options }: TlsOptions): TlsOptions => {
    if (thumbprint === undefined) return options;
    if (world.pinsCertificates) return { ...options, thumbprint: normalized(thumbprint) };
    throw new OptionsError('a thumbprint is given, but this world does not verify by thumbprints');
  };
  if (typeof tls === 'function') return async () => checked(await tls());
  const fixed = checked(tls);
  return async () => fixed;
}

/** Sixty-four digits. SHA-1, of forty, proves nothing any more. */
function normalized(thumbprint: string): string {
  const digits = thumbprint.replace(/[:\s]/g, '').toLowerCase();
  if (/^[0-9a-f]{64}$/.test(digits)) return digits;
  throw new OptionsError('the thumbprint is not a SHA-256 one, which has 64 hexadecimal digits');
}
