import { type Logger, messageOf, type World } from '@vmwright/core';
import { AlreadyExistsError, ForbiddenError, InvalidError, NotFoundError } from '../client/errors.ts';
import type { Draft } from '../client/options.ts';
import { Event } from '../kind/builtin/event.ts';
import { apiVersionOf, type Kind } from '../kind/kind.ts';
import type { KubeObject, ObjectRef } from '../kind/object.ts';
import { microTime } from '../kind/time.ts';
import { EventRateLimiter } from './rate-limiter.ts';

/** What there is to tell about an object. */
export interface EventInput {
  readonly type: 'Normal' | 'Warning';
  /** One word, for programs: `CloneFailed`. */
  readonly reason: string;
  /** What was being done: `Clone`. @default the reason */
  readonly action?: string;
  /** A sentence for people; without secrets. Cut at 1 KB, where the server refuses it. */
  readonly note: string;
}

/** As much of a client as is used; its answers are not read. */
interface EventClient {
  create(kind: Kind<Event>, event: Draft<Event>): Promise<unknown>;
  mergePatch(kind: Kind<Event>, ref: ObjectRef, patch: object): Promise<unknown>;
}

export interface EventRecorderOptions {
  readonly world: Pick<World, 'now' | 'monotonic' | 'uuid'>;
  readonly client: EventClient;
  /** Which controller tells. */
  readonly controller: string;
  /** Which replica of it. */
  readonly instance: string;
  readonly log: Logger;
}

/** The same that happens again within this time goes on in its series. */
const SERIES_MS = 6 * 60_000;
/** How often a series that goes on is written. */
const REFRESH_MS = 60_000;
/** In bytes, as the server counts. */
const MAX_NOTE_BYTES = 1_024;
const MAX_FIELD_BYTES = 128;
/** Under way at a time; what comes beyond that is dropped, since nobody waits for it. */
const MAX_PENDING = 1_000;

interface Series {
  readonly name: string;
  readonly namespace: string;
  count: number;
  seenAt: number;
  writtenAt: number;
}

/**
 * Tells people what happens to objects, by Kubernetes events.
 *
 * Guarantees: `record` returns at once and never throws; telling the same again makes no second event but a series with
 * a count, written at most once a minute; an object that fails in a loop is silenced after 25 different events, but for
 * one every five minutes. Events are for people: they may be lost, and nothing depends on them.
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

  /** @param client with whose fence and signal it is sent; the next of the series may be sent with another */
  record(
    kind: Kind,
    object: KubeObject,
    happening: EventInput,
    client: EventClient = this.#options.client,
  ): void {
    const now = this.#options.world.monotonic();
    this.#evictStale(now);
    const { uid = '' } = object.metadata;
    const same = JSON.stringify([
      uid,
      object.metadata.name,
      happening.type,
      happening.reason,
      happening.note,
    ]);
    const series = this.#series.get(same);
    if (series !== undefined) {
      series.count += 1;
      series.seenAt = now;
      if (series.count > 2 && now - series.writtenAt < REFRESH_MS) return;
      series.writtenAt = now;
      this.#send(series, () => this.#updateSeries(client, kind, object, happening, series));
      return;
    }
    if (!this.#rateLimiter.tryAcquire(uid, now)) return;
    const name = `${object.metadata.name.slice(0, 200)}.${this.#options.world.uuid()}`;
    const namespace = object.metadata.namespace ?? 'default'; // where events about cluster-wide objects are kept
    const begun: Series = { name, namespace, count: 1, seenAt: now, writtenAt: now };
    this.#series.set(same, begun);
    this.#send(begun, () => this.#create(client, kind, object, happening, begun));
  }

  /** Resolves when all that was recorded is sent or lost. */
  async flush(): Promise<void> {
    await Promise.all(this.#pending);
  }

  #send(series: Series, write: () => Promise<unknown>): void {
    if (this.#pending.size >= MAX_PENDING) return;
    const sending: Promise<void> = write().then(
      () => void this.#pending.delete(sending),
      (error) => {
        this.#pending.delete(sending);
        // Told again it is written at once, under the same name: whether it was stored all the same is unknown.
        series.writtenAt = Number.NEGATIVE_INFINITY;
        this.#logLost(error);
      },
    );
    this.#pending.add(sending);
  }

  /** A server that is away comes back; what it refuses, it will refuse again, and somebody should know. */
  #logLost(error: unknown): void {
    const { log, controller } = this.#options;
    const fields = { controller, error: messageOf(error) };
    const lasting = error instanceof InvalidError || error instanceof ForbiddenError;
    if (lasting && !this.#hasLoggedRejection) log.warn(fields, 'events are refused; this is told once');
    else log.debug(fields, 'an event could not be told');
    this.#hasLoggedRejection ||= lasting;
  }

  async #updateSeries(
    client: EventClient,
    kind: Kind,
    object: KubeObject,
    happening: EventInput,
    series: Series,
  ): Promise<void> {
    const lastObservedTime = microTime(this.#options.world.now());
    const patch = { series: { count: series.count, lastObservedTime } };
    try {
      await client.mergePatch(Event, series, patch);
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      // It has expired, or was never stored, or is being stored at this moment.
      await this.#create(client, kind, object, happening, series).catch((caught) => {
        if (!(caught instanceof AlreadyExistsError)) throw caught;
      });
    }
  }

  async #create(
    client: EventClient,
    kind: Kind,
    object: KubeObject,
    happening: EventInput,
    series: Series,
  ): Promise<void> {
    const { world, controller, instance } = this.#options;
    const { type, reason, action = reason, note } = happening;
    const { name, namespace, uid } = object.metadata;
    const eventTime = microTime(world.now());
    await client.create(Event, {
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
    });
  }

  /** Oldest first, in the order of their beginning; a series that still goes on is met again later. */
  #evictStale(now: number): void {
    for (const [same, { seenAt }] of this.#series) {
      if (now - seenAt > SERIES_MS || this.#series.size > MAX_PENDING) this.#series.delete(same);
      else break;
    }
  }
}

/** The beginning of a text that has at most so many bytes, and no half characters. */
function truncate(text: string, bytes: number): string {
  const buffer = Buffer.from(text);
  if (buffer.length <= bytes) return text;
  let end = bytes;
  while (((buffer[end] ?? 0) & 0xc0) === 0x80) end -= 1; // a byte within a character
  return buffer.toString('utf8', 0, end);
}
