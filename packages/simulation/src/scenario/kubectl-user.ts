import { Client, type Kind, type KubeObject } from '@vmwright/runtime';
import { accessTo } from '../apiserver/simulated.ts';
import type { SimulatedProcess } from '../world/process.ts';
import type { Simulation } from '../world/simulation.ts';

export interface Ref {
  readonly namespace: string;
  readonly name: string;
}

const DELETION_POLICY = 'vmwright.dev/deletion-policy';

/** A kubectl user who does not wait for responses. */
export class KubectlUser<T extends KubeObject> {
  readonly client: Client;
  readonly #simulation: Simulation;
  readonly #kind: Kind<T>;
  readonly #process: SimulatedProcess;

  constructor(simulation: Simulation, kind: Kind<T>) {
    const world = simulation.start('user');
    this.client = new Client({ world, access: accessTo(), fieldManager: 'user' });
    this.#simulation = simulation;
    this.#kind = kind;
    this.#process = world.process;
  }

  at(ms: number, act: () => void): void {
    this.#simulation.schedule.after(ms, act, this.#process);
  }

  /** Runs an action and records it in the trace. */
  run(what: string, action: () => Promise<unknown>): void {
    this.#simulation.note('user', what);
    void action().catch(() => undefined);
  }

  delete(ref: Ref, label: string): void {
    this.run(`deletes ${label}`, () => this.client.delete(this.#kind, ref));
  }

  /**
   * Deletes an object with `--cascade=foreground` or `--cascade=orphan`. This user does not combine `foreground` with
   * the deletion policy Orphan: the webhook would reject this combination, but the model has no webhooks.
   */
  cascade(ref: Ref, label: string, cascade: 'foreground' | 'orphan'): void {
    this.run(`deletes ${label} with --cascade=${cascade}`, async () => {
      const { uid, annotations } = (await this.client.get(this.#kind, ref)).metadata;
      if (cascade === 'foreground' && annotations?.[DELETION_POLICY] === 'Orphan') return;
      const propagation = cascade === 'foreground' ? 'Foreground' : 'Orphan';
      await this.client.delete(this.#kind, ref, { uid, propagation });
    });
  }

  annotate(ref: Ref, label: string, annotation: string, value: string | null): void {
    const patch = { metadata: { annotations: { [annotation]: value } } };
    this.run(`annotates ${label} with ${annotation}: ${value}`, () =>
      this.client.mergePatch(this.#kind, ref, patch),
    );
  }

  /**
   * Deletes an object and keeps its machines. Sets the deletion policy before the deletion, because the operator may
   * delete the machines as soon as the object is being deleted.
   */
  orphan(ref: Ref, label: string): void {
    this.run(`orphans the machines of ${label}`, () => this.#orphan(ref));
  }

  async #orphan(ref: Ref): Promise<void> {
    const { metadata } = await this.client.get(this.#kind, ref);
    const { uid, resourceVersion, deletionTimestamp } = metadata;
    if (deletionTimestamp !== undefined) return;
    const annotations = { [DELETION_POLICY]: 'Orphan' };
    await this.client.mergePatch(this.#kind, ref, { metadata: { uid, resourceVersion, annotations } });
    await this.client.delete(this.#kind, ref, { uid });
  }
}
