import { VmGroup } from '@vmwright/operator';
import { Client } from '@vmwright/runtime';
import { accessTo } from '../apiserver/simulated.ts';
import type { Simulation } from '../world/simulation.ts';
import { DELETION_POLICY, PAUSED } from './objects.ts';

export interface GroupRef {
  readonly namespace: string;
  readonly name: string;
}

/** The user's groups. The folders of the first two have the same name. */
const GROUPS: readonly [GroupRef, ...GroupRef[]] = [
  { namespace: 'a-b', name: 'c' },
  { namespace: 'a', name: 'b-c' },
  { namespace: 'default', name: 'web' },
];
/** Made when all is well again. */
export const FRESH: GroupRef = { namespace: 'default', name: 'fresh' };

export const TEMPLATES = ['small', 'large'] as const;

type Spec = VmGroup['spec'];

/** Somebody who asks for machines, changes his mind, and lets go of them; sometimes all within seconds. */
export class User {
  readonly #simulation: Simulation;
  readonly #client: Client;
  readonly #process;
  /** Called right before a group is asked for. */
  onCreate: ((group: GroupRef) => void) | undefined;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    const world = simulation.start('user');
    this.#process = world.process;
    this.#client = new Client({ world, access: accessTo(), fieldManager: 'user' });
  }

  /** Plans what he does within so many milliseconds. */
  plan(ms: number): void {
    const { choices } = this.#simulation;
    for (const group of GROUPS) {
      if (choices.oneIn(3) && group !== GROUPS[2]) continue;
      let at = choices.oneIn(3) ? choices.pick(ms / 3) : choices.pick(2_000);
      const later = () => {
        at += choices.oneIn(2) ? choices.pick(4_000) : choices.pick(ms / 3);
        return Math.min(at, ms);
      };
      this.#at(at, () => this.create(group, this.#anything()));
      for (let count = choices.pick(4); count > 0; count--) this.#at(later(), () => this.change(group));
      if (choices.oneIn(8)) {
        this.#at(later(), () => this.annotate(group, PAUSED, 'true'));
        this.#at(later(), () => this.annotate(group, PAUSED, null));
      }
      if (!choices.oneIn(3)) continue;
      this.#at(later(), () => (choices.oneIn(4) ? this.letGo(group) : this.delete(group)));
      if (choices.oneIn(2)) this.#at(later(), () => this.create(group, this.#anything())); // another of the same name
    }
  }

  create(group: GroupRef, spec: Spec): void {
    const { namespace, name } = group;
    this.onCreate?.(group);
    this.#simulation.note('user', `wants ${namespace}/${name}: ${JSON.stringify(spec)}`);
    void this.#client.create(VmGroup, { metadata: { namespace, name }, spec }).catch(() => undefined);
  }

  /** Something about the group is wanted otherwise. */
  change(group: GroupRef): void {
    const { choices } = this.#simulation;
    choices.one([
      () => this.scale(group),
      () => this.scale(group),
      () => this.#merge(group, { template: choices.one(TEMPLATES) }),
      () => this.#merge(group, { cpu: 1 + choices.pick(2) }),
      () => this.#merge(group, { memory: 1 + choices.pick(2) }),
      () => this.#merge(group, { update: this.#update() }),
    ])();
  }

  scale(group: GroupRef): void {
    this.#merge(group, { replicas: this.#simulation.choices.pick(4) });
  }

  delete(group: GroupRef): void {
    this.#simulation.note('user', `wants no ${group.namespace}/${group.name}`);
    void this.#client.delete(VmGroup, group).catch(() => undefined);
  }

  annotate(group: GroupRef, annotation: string, value: string | null): void {
    this.#simulation.note('user', `annotates ${group.namespace}/${group.name} with ${annotation}: ${value}`);
    const patch = { metadata: { annotations: { [annotation]: value } } };
    void this.#client.mergePatch(VmGroup, group, patch).catch(() => undefined);
  }

  /** Deletes a group whose machines are to stay. Said before the deletion: afterwards it may come too late. */
  letGo(group: GroupRef): void {
    this.#simulation.note('user', `lets go of ${group.namespace}/${group.name}`);
    void this.#letGo(group).catch(() => undefined);
  }

  /** Pauses end. */
  resume(): void {
    for (const group of GROUPS) this.annotate(group, PAUSED, null);
  }

  #anything(): Spec {
    const { choices } = this.#simulation;
    return {
      replicas: 1 + choices.pick(3),
      cpu: 1 + choices.pick(2),
      memory: 1 + choices.pick(2),
      template: choices.one(TEMPLATES),
      ...(choices.oneIn(3) && { update: this.#update() }),
      ...(choices.oneIn(5) && { shutdownSeconds: 2 }),
      ...(choices.oneIn(5) && { scaleIn: choices.one(['Newest', 'Oldest'] as const) }),
    };
  }

  #update(): NonNullable<Spec['update']> {
    const { choices } = this.#simulation;
    return {
      strategy: choices.oneIn(4) ? 'OnDelete' : 'RollingUpdate',
      maxUnavailable: choices.one<number | string>([1, 2, '50%']),
    };
  }

  #merge(group: GroupRef, spec: Partial<Spec>): void {
    this.#simulation.note('user', `wants ${group.namespace}/${group.name} with ${JSON.stringify(spec)}`);
    void this.#client.mergePatch(VmGroup, group, { spec }).catch(() => undefined);
  }

  async #letGo(group: GroupRef): Promise<void> {
    const { metadata } = await this.#client.get(VmGroup, group);
    const { uid, resourceVersion, deletionTimestamp } = metadata;
    if (deletionTimestamp !== undefined) return;
    const annotations = { [DELETION_POLICY]: 'Orphan' };
    await this.#client.mergePatch(VmGroup, group, { metadata: { uid, resourceVersion, annotations } });
    await this.#client.delete(VmGroup, group, { uid });
  }

  #at(ms: number, act: () => void): void {
    this.#simulation.schedule.after(ms, act, this.#process);
  }
}
