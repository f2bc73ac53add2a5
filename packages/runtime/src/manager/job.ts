import { Deadline, jittered, messageOf, wait } from '@vmwright/core';
import { BackendUnavailableError } from '../availability/availability.ts';
import type { WorkContext } from '../controller/context.ts';
import { declareCaches, type WorkEnvironment, workContext } from '../controller/work.ts';
import type { EventInput, EventRecorder } from '../events/recorder.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import type { Permission } from '../rbac/permission.ts';

/** Context of one run of a job. */
export interface JobContext extends WorkContext {
  /** Records a Kubernetes event about an object, which does not have to exist; see `EventRecorder`. */
  event(kind: Kind, object: KubeObject, input: EventInput): void;
}

/** Dependencies of a job. */
export interface JobEnvironment extends WorkEnvironment {
  readonly events: Pick<EventRecorder, 'record'>;
}

export interface JobOptions {
  /** Name in logs and events. */
  readonly name: string;
  /** Interval between the end of one run and the start of the next, ± 20 %. The first run starts within this time. */
  readonly everyMs: number;
  /** Time after which the signal of a run aborts. @default 0, which means never */
  readonly timeoutMs?: number;
  /** Kinds that the job reads from the cache. */
  readonly reads?: readonly Kind[];
  /** Permissions that the job needs, for the generated role (`rbacOf`). */
  readonly permissions?: readonly Permission[];
  readonly run: (context: JobContext) => Promise<void>;
}

/**
 * Periodic work that is not tied to an object, such as garbage collection.
 *
 * Guarantees: a job runs only on the leader. With sharding, it runs on the replica that owns cluster-scoped objects.
 * Its runs never overlap. A failed run is logged, and the next run starts after the usual interval.
 */
export class Job {
  readonly name: string;
  readonly #options: JobOptions;
  readonly #environment: JobEnvironment;
  readonly #declared: ReadonlySet<string>;

  constructor(options: JobOptions, environment: JobEnvironment) {
    if (!(options.everyMs > 0))
      throw new RangeError(`job ${options.name}: everyMs must be greater than 0, got ${options.everyMs}`);
    this.name = options.name;
    this.#options = options;
    this.#environment = environment;
    this.#declared = declareCaches(environment.caches, options.reads ?? []);
  }

  /** Runs the job periodically until the signal aborts. Resolves when the last run has ended. */
  async run(signal: AbortSignal): Promise<void> {
    const { world, share } = this.#environment;
    const { everyMs } = this.#options;
    const pause = (ms: number) => wait(world, ms, signal).catch(() => undefined);
    // The first run has a random delay, so that jobs and replicas that start together do not run simultaneously.
    await pause(everyMs * world.random());
    while (!signal.aborted) {
      const work = share?.begin(this.name);
      if (share === undefined || work !== undefined) await this.#once(work?.signal ?? signal);
      work?.end();
      await pause(jittered(world, everyMs, 0.2));
    }
  }

  async #once(signal: AbortSignal): Promise<void> {
    const { world, log, events } = this.#environment;
    const { name, timeoutMs = 0, run } = this.#options;
    const deadline = new Deadline(world, timeoutMs, signal);
    const jobLog = log.child({ job: name });
    try {
      const context = workContext(this.#environment, this.#declared, {
        key: name,
        signal: deadline.signal,
        log: () => jobLog,
      });
      const event: JobContext['event'] = (kind, object, input) =>
        events.record(kind, object, input, context.client);
      const work = () => run(Object.assign(context, { event }));
      await (this.#environment.tracer?.span(`job ${name}`, {}, work) ?? work());
    } catch (error) {
      if (signal.aborted) jobLog.debug({ error: messageOf(error) }, 'Job aborted');
      // Logged only at debug level, because `Availability` logs the outage once.
      else if (error instanceof BackendUnavailableError)
        jobLog.debug({ error: messageOf(error), backend: error.backend }, 'Job failed: backend unavailable');
      else jobLog.error({ error: messageOf(error) }, 'Job failed, retrying at the next interval');
    } finally {
      deadline.end();
    }
  }
}
