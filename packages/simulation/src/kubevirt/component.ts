import { Client, type Kind, type ObjectRef } from '@vmwright/runtime';
import type { ApiServer } from '../apiserver/api-server.ts';
import type { StoredObject } from '../apiserver/object.ts';
import { accessTo } from '../apiserver/simulated.ts';
import type { Change } from '../apiserver/store.ts';
import type { OpenObject } from '../scenario/open-kind.ts';
import { isOf } from '../scenario/stored-objects.ts';
import type { Simulation } from '../world/simulation.ts';

/** A write that a component is about to send. */
export interface Step {
  /** Entry for the trace. */
  readonly what: string;
  /** Time from the decision until the request is sent, in virtual milliseconds. */
  readonly afterMs: number;
  readonly act: (client: Client) => Promise<unknown>;
}

export interface ComponentOptions {
  readonly simulation: Simulation;
  readonly server: ApiServer;
  /** Name of the process, for its faults and its entries in the trace. */
  readonly name: string;
  /** Kind of the objects that the component handles. */
  readonly kind: Kind<OpenObject>;
  /** Returns the next write for an object; undefined if the component has nothing to do until the next change. */
  readonly decide: (object: StoredObject) => Step | undefined;
  /** Returns the objects of `kind` to enqueue for a change of an object of another kind. */
  readonly related?: (change: Change) => Iterable<StoredObject>;
}

/**
 * Model of a controller of another project, such as KubeVirt. It reads the stored objects directly, like a cache
 * without delay, and writes through the simulated network. Like a real controller, it sends the resource version that
 * it has read with each update, so that a late request does not overwrite a newer state.
 */
export class Component {
  readonly name: string;
  readonly #options: ComponentOptions;
  readonly #client: Client;
  readonly #queued = new Set<string>();
  readonly #busy = new Set<string>();
  #starts = 1;
  #isDown = false;

  constructor(options: ComponentOptions) {
    const { simulation, server, name, kind, related } = options;
    this.name = name;
    this.#options = options;
    const world = simulation.start(name);
    this.#client = new Client({ world, access: accessTo(), fieldManager: name });
    server.listen((change) => {
      if (isOf(change.resource, kind)) {
        if (change.after !== undefined) this.#enqueue(change.after.object);
      } else if (related !== undefined) for (const object of related(change)) this.#enqueue(object);
    });
  }

  /** Whether the component has nothing to do. */
  get isIdle(): boolean {
    return this.#queued.size + this.#busy.size === 0 && !this.#isDown;
  }

  /** Restarts the component. It drops its planned writes and enqueues every object. */
  restart(downMs: number): void {
    if (this.#isDown) return;
    this.#isDown = true;
    this.#starts += 1;
    this.#options.simulation.note(this.name, 'restarts');
    this.#options.simulation.schedule.after(downMs, () => {
      this.#isDown = false;
      this.resync();
    });
  }

  /** Enqueues every object, for example because a behaviour has changed. */
  resync(): void {
    const { server, kind } = this.#options;
    for (const object of server.objects(kind)) this.#enqueue(object);
  }

  #enqueue({ metadata: { uid = '' } }: StoredObject): void {
    const { schedule, choices } = this.#options.simulation;
    if (this.#queued.has(uid)) return;
    this.#queued.add(uid);
    schedule.after(choices.delay(), () => {
      this.#queued.delete(uid);
      this.#run(uid);
    });
  }

  #run(uid: string): void {
    if (this.#isDown || this.#busy.has(uid)) return;
    const { simulation, decide } = this.#options;
    const object = this.#get(uid);
    const step = object && decide(object);
    if (object === undefined || step === undefined) return;
    this.#busy.add(uid);
    const starts = this.#starts;
    const end = () => {
      this.#busy.delete(uid);
      this.#enqueue(object); // for the next step, and for changes that arrived during this step
    };
    simulation.schedule.after(step.afterMs, () => {
      if (this.#starts !== starts) return end();
      simulation.note(this.name, `${step.what} ${object.metadata.name}`);
      step.act(this.#client).then(end, end);
    });
  }

  #get(uid: string): StoredObject | undefined {
    const { server, kind } = this.#options;
    return server.objects(kind).find(({ metadata }) => metadata.uid === uid);
  }
}

/**
 * Returns a step that patches an object or its status. The patch fails if the object has changed since the decision.
 */
export function patchStep(
  kind: Kind<OpenObject>,
  { metadata }: StoredObject,
  patch: Readonly<Record<string, unknown>>,
  { what, afterMs, subresource }: Pick<Step, 'what' | 'afterMs'> & { readonly subresource?: 'status' },
): Step {
  const { uid, resourceVersion } = metadata;
  const { metadata: changed, ...rest } = patch;
  const body = { metadata: { ...(typeof changed === 'object' && changed), uid, resourceVersion }, ...rest };
  const options = subresource === undefined ? {} : { subresource };
  return { what, afterMs, act: (client) => client.mergePatch(kind, refOf(metadata), body, options) };
}

export function refOf({ namespace = '', name }: ObjectRef): {
  readonly namespace: string;
  readonly name: string;
} {
  return { namespace, name };
}
