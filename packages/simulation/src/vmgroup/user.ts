import { VmGroup } from '@vmwright/operator';
import { type Ref as GroupRef, KubectlUser } from '../scenario/kubectl-user.ts';
import type { Simulation } from '../world/simulation.ts';
import { PAUSED } from './objects.ts';

export type { GroupRef };

/** The user's groups. The first two have the same folder name. */
const GROUPS: readonly [GroupRef, ...GroupRef[]] = [
  { namespace: 'a-b', name: 'c' },
  { namespace: 'a', name: 'b-c' },
  { namespace: 'default', name: 'web' },
];
/** Group that the user creates after the faults have stopped. */
export const FRESH: GroupRef = { namespace: 'default', name: 'fresh' };

export const TEMPLATES = ['small', 'large'] as const;

type Spec = VmGroup['spec'];

/** A user who creates, changes and deletes groups. Actions on a group are sometimes only seconds apart. */
export class User {
  readonly #simulation: Simulation;
  readonly #kubectl: KubectlUser<VmGroup>;
  /** Called right before a group is created. */
  onCreate: ((group: GroupRef) => void) | undefined;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.#kubectl = new KubectlUser(simulation, VmGroup);
  }

  /** Schedules the user's actions within the given number of milliseconds. */
  plan(ms: number): void {
    const { choices } = this.#simulation;
    for (const group of GROUPS) {
      if (choices.oneIn(3) && group !== GROUPS[2]) continue;
      let at = choices.oneIn(3) ? choices.pick(ms / 3) : choices.pick(2_000);
      const later = () => {
        at += choices.oneIn(2) ? choices.pick(4_000) : choices.pick(ms / 3);
        return Math.min(at, ms);
      };
      this.#kubectl.at(at, () => this.create(group, this.#anything()));
      for (let count = choices.pick(4); count > 0; count--)
        this.#kubectl.at(later(), () => this.change(group));
      if (choices.oneIn(8)) {
        this.#kubectl.at(later(), () => this.annotate(group, PAUSED, 'true'));
        this.#kubectl.at(later(), () => this.annotate(group, PAUSED, null));
      }
      if (!choices.oneIn(3)) continue;
      this.#kubectl.at(later(), () => (choices.oneIn(4) ? this.orphan(group) : this.delete(group)));
      if (choices.oneIn(2)) this.#kubectl.at(later(), () => this.create(group, this.#anything())); // new group, same name
    }
  }

  create(group: GroupRef, spec: Spec): void {
    const { namespace, name } = group;
    this.onCreate?.(group);
    this.#kubectl.run(`creates ${nameOf(group)}: ${JSON.stringify(spec)}`, () =>
      this.#kubectl.client.create(VmGroup, { metadata: { namespace, name }, spec }),
    );
  }

  /** Changes a random field of the spec. */
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
    this.#kubectl.delete(group, nameOf(group));
  }

  annotate(group: GroupRef, annotation: string, value: string | null): void {
    this.#kubectl.annotate(group, nameOf(group), annotation, value);
  }

  orphan(group: GroupRef): void {
    this.#kubectl.orphan(group, nameOf(group));
  }

  /** Removes the paused annotation from all groups. */
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
    this.#kubectl.run(`changes ${nameOf(group)} to ${JSON.stringify(spec)}`, () =>
      this.#kubectl.client.mergePatch(VmGroup, group, { spec }),
    );
  }
}

function nameOf({ namespace, name }: GroupRef): string {
  return `${namespace}/${name}`;
}
