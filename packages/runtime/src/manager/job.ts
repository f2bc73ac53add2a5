import { Deadline, jittered, messageOf, wait } from '@vmwright/core';
import { BackendUnavailableError } from '../availability/availability.ts';
import type { WorkContext } from '../controller/context.ts';
import { declareCaches, type WorkEnvironment, workContext } from '../controller/work.ts';
import type { EventInput, EventRecorder } from '../events/recorder.ts';
import type { Kind } from '../kind/kind.ts';
import type { KubeObject } from '../kind/object.ts';
import type { Permission } from '../rbac/permission.ts';

/** What a run of a job has at hand. */
export interface JobContext extends WorkContext {
  /** Records a Kubernetes event about an object, which need not exist; see `EventRecorder`. */
  event(kind: Kind, object: KubeObject, happening: EventInput): void;
}

/** What a job takes from the program it is part of. */
export interface JobEnvironment extends WorkEnvironment {
  readonly events: Pick<EventRecorder, 'record'>;
}

export interface JobOptions {
  /** In logs. */
  readonly name: string;
  /** From the end of one run to the beginning of the next; give or take a fifth. The first comes within this time. */
  readonly everyMs: number;
  /** After which a run's signal aborts. @default 0: never */
  readonly timeoutMs?: number;
  /** Kinds whose caches it reads. */
  readonly reads?: readonly Kind[];
  /** What it does to objects, for the role that is generated (`rbacOf`). */
  readonly permissions?: readonly Permission[];
  readonly run: (context: JobContext) => Promise<void>;
}

/**
 * Periodic work that is not tied to an object, such as garbage collection.
 *
 * Guarantees: it runs on one replica at a time, the one that leads (with sharding: that has the cluster-wide objects);
 * never twice at a time; what it throws is told, and the next run comes as if it had succeeded.
 */
export class Job {
  readonly name: string;
  readonly #options: JobOptions;
  readonly #environment: JobEnvironment;
  readonly #declared: ReadonlySet<string>;

  constructor(options: JobOptions, environment: JobEnvironment) {
    if (!(options.everyMs > 0))
      throw new RangeError(`the job ${options.name} wants milliseconds from 1 on, not ${options.everyMs}`);
    this.name = options.name;
    this.#options = options;
    this.#environment = environment;
    this.#declared = declareCaches(environment.caches, options.reads ?? []);
  }

  /** Works until the signal aborts and a run under way has ended. */
  async run(signal: AbortSignal): Promise<void> {
    const { world, share } = this.#environment;
    const { everyMs } = this.#options;
    const pause = (ms: number) => wait(world, ms, signal).catch(() => undefined);
    // Replicas that were started together, and jobs of one program, do not all come at once.
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
    const own = log.child({ job: name });
    try {
      const context = workContext(this.#environment, this.#declared, {
        key: name,
        signal: deadline.signal,
        log: () => own,
      });
      const event: JobContext['event'] = (kind, object, happening) =>
        events.record(kind, object, happening, context.client);
      await run(Object.assign(context, { event }));
    } catch (error) {
      if (signal.aborted) own.debug({ error: messageOf(error) }, 'the job was given up');
      // `Availability` logs the outage once.
      else if (error instanceof BackendUnavailableError)
        own.debug({ error: messageOf(error), backend: error.backend }, 'Job failed: backend unavailable');
      else own.error({ error: messageOf(error) }, 'the job has failed; it comes again');
    } finally {
      deadline.end();
    }
  }
}
