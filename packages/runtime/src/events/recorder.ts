import { type Logger, messageOf, type World } from '@vmwright/core';
import { AlreadyExistsError, ForbiddenError, InvalidError, NotFoundError } from '../client/errors.ts';
import type { Draft } from '../client/options.ts';
import { CoreEvent, Event, toCoreEvent } from '../kind/builtin/event.ts';
import { apiVersionOf, type Kind } from '../kind/kind.ts';
import type { KubeObject, ObjectRef } from '../kind/object.ts';
import { microTime } from '../kind/time.ts';
import { EventRateLimiter } from './rate-limiter.ts';

/** An event to record about an object. */
export interface EventInput {
  readonly type: 'Normal' | 'Warning';
  /** Machine-readable cause, one word in CamelCase: `CloneFailed`. */
  readonly reason: string;
  /** Action that the controller took: `Clone`. @default the reason */
  readonly action?: string;
  /** Human-readable description, without secrets. Truncated to 1 KB, the API server's limit. */
  readonly note: string;
}

/** The calls of a client that the recorder makes. */
export interface EventClient {
  create<T extends Event | CoreEvent>(kind: Kind<T>, event: Draft<T>): Promise<unknown>;
  mergePatch<T extends Event | CoreEvent>(kind: Kind<T>, ref: ObjectRef, patch: object): Promise<unknown>;
}

/** API group in which events are written; `core` is for roles that allow events only in the core group. */
export type EventGroup = 'events.k8s.io' | 'core';

export interface EventRecorderOptions {
  readonly world: Pick<World, 'now' | 'monotonic' | 'uuid'>;
  readonly client: EventClient;
  /** Reporting controller: `vmwright.dev/vm`. */
  readonly controller: string;
  /** Reporting instance: the name of this replica. */
  readonly instance: string;
  readonly log: Logger;
  /** @default 'events.k8s.io' */
  readonly group?: EventGroup | undefined;
}

/** An event that repeats within this time after its last occurrence continues the same series. */
const SERIES_MS = 6 * 60_000;
/** Minimum time between two writes of a series. */
const REFRESH_MS = 60_000;
/** Maximum lengths that the API server accepts, in bytes. */
const MAX_NOTE_BYTES = 1_024;
const MAX_FIELD_BYTES = 128;
/** Maximum number of concurrent writes, above which events are dropped. Also the maximum number of series in memory. */
const MAX_PENDING = 1_000;

interface Series {
  readonly name: string;
  readonly namespace: string;
  count: number;
  seenAt: number;
  writtenAt: number;
}

/**
 * Records Kubernetes events about objects. `kubectl describe` and `kubectl events` show them.
 *
 * Guarantees: `record` returns immediately and never throws. Equal events become one event with a count. The count is
 * written at the second occurrence, and then at most once a minute. Different events about one object are limited to a
 * burst of 25 and then one every five minutes.
 *
 * Caveats: events may be lost, so nothing may depend on them.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #series = new Map<string, Series>();
  readonly #rateLimiter = new EventRateLimiter();
  readonly #pending = new Set<Promise<void>>();
  #hasLoggedRejection = false;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  /**
   * Records an event.
   * @param client client that sends the event; a later event of the same series may use another client
   */
  record(
    kind: Kind,
    object: KubeObject,
    input: EventInput,
    client: EventClient = this.#options.client,
  ): void {
    const now = this.#options.world.monotonic();
    this.#evictStale(now);
    const { uid = '' } = object.metadata;
    const same = JSON.stringify([uid, object.metadata.name, input.type, input.reason, input.note]);
    const series = this.#series.get(same);
    if (series !== undefined) {
      series.count += 1;
      series.seenAt = now;
      if (series.count > 2 && now - series.writtenAt < REFRESH_MS) return;
      series.writtenAt = now;
      this.#send(series, () => this.#updateSeries(client, kind, object, input, series));
      return;
    }
    if (!this.#rateLimiter.tryAcquire(uid, now)) return;
    const name = `${object.metadata.name.slice(0, 200)}.${this.#options.world.uuid()}`;
    // events about cluster-scoped objects are stored in the namespace default
    const namespace = object.metadata.namespace ?? 'default';
    const begun: Series = { name, namespace, count: 1, seenAt: now, writtenAt: now };
    this.#series.set(same, begun);
    this.#send(begun, () => this.#create(client, kind, object, input, begun));
  }

  /** Resolves when all recorded events are sent or lost. */
  async flush(): Promise<void> {
    await Promise.all(this.#pending);
  }

  #send(series: Series, write: () => Promise<unknown>): void {
    if (this.#pending.size >= MAX_PENDING) return;
    const sending: Promise<void> = write().then(
      () => void this.#pending.delete(sending),
      (error) => {
        this.#pending.delete(sending);
        // The write failed, so the next occurrence is written without waiting for REFRESH_MS. The event keeps its name,
        // because the failed write may have been stored.
        series.writtenAt = Number.NEGATIVE_INFINITY;
        this.#logLost(error);
      },
    );
    this.#pending.add(sending);
  }

  /** Logs a lost event at debug level. Only the first event that the server rejects is logged as a warning. */
  #logLost(error: unknown): void {
    const { log, controller } = this.#options;
    const fields = { controller, error: messageOf(error) };
    const isRejected = error instanceof InvalidError || error instanceof ForbiddenError;
    if (isRejected && !this.#hasLoggedRejection)
      log.warn(fields, 'API server rejected an event; further rejections are logged at debug level');
    else log.debug(fields, 'Event lost');
    this.#hasLoggedRejection ||= isRejected;
  }

  async #updateSeries(
    client: EventClient,
    kind: Kind,
    object: KubeObject,
    input: EventInput,
    series: Series,
  ): Promise<void> {
    const lastObservedTime = microTime(this.#options.world.now());
    const patch = { series: { count: series.count, lastObservedTime } };
    try {
      if (this.#options.group === 'core') await client.mergePatch(CoreEvent, series, patch);
      else await client.mergePatch(Event, series, patch);
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      // The event has expired, was never stored, or its create is still in flight: create it again under the same name.
      await this.#create(client, kind, object, input, series).catch((caught) => {
        if (!(caught instanceof AlreadyExistsError)) throw caught;
      });
    }
  }

  async #create(
    client: EventClient,
    kind: Kind,
    object: KubeObject,
    input: EventInput,
    series: Series,
  ): Promise<void> {
    const { world, controller, instance, group } = this.#options;
    const { type, reason, action = reason, note } = input;
    const { name, namespace, uid } = object.metadata;
    const eventTime = microTime(world.now());
    const event: Event = {
      metadata: { name: series.name, namespace: series.namespace },
      eventTime,
      reportingController: controller,
      reportingInstance: truncate(instance, MAX_FIELD_BYTES),
      action: truncate(action, MAX_FIELD_BYTES),
      reason: truncate(reason, MAX_FIELD_BYTES),
      type,
      note: truncate(note, MAX_NOTE_BYTES),
      regarding: {
        apiVersion: apiVersionOf(kind),
        kind: kind.kind,
        name,
        ...(namespace !== undefined && { namespace }),
        ...(uid !== undefined && { uid }),
      },
      ...(series.count > 1 && { series: { count: series.count, lastObservedTime: eventTime } }),
    };
    if (group === 'core') await client.create(CoreEvent, toCoreEvent(event));
    else await client.create(Event, event);
  }

  /**
   * Evicts stale series and, while there are too many series, also others. Checks the series in the order in which they
   * began, and stops at the first one that it keeps. A later call evicts the stale series behind that one.
   */
  #evictStale(now: number): void {
    for (const [same, { seenAt }] of this.#series) {
      if (now - seenAt > SERIES_MS || this.#series.size > MAX_PENDING) this.#series.delete(same);
      else break;
    }
  }
}

/** Truncates a text to a number of UTF-8 bytes without splitting a character. */
function truncate(text: string, bytes: number): string {
  const buffer = Buffer.from(text);
  if (buffer.length <= bytes) return text;
  let end = bytes;
  while (((buffer[end] ?? 0) & 0xc0) === 0x80) end -= 1; // a UTF-8 continuation byte
  return buffer.toString('utf8', 0, end);
}
