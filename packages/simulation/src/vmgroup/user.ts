import { VmGroup } from '@vmwright/operator';
import { type Ref as GroupRef, Person } from '../scenario/person.ts';
import type { Simulation } from '../world/simulation.ts';
import { PAUSED } from './objects.ts';

export type { GroupRef };

/** The user's groups. The first two have the same folder name. */
const GROUPS: readonly [GroupRef, ...GroupRef[]] = [
  { namespace: 'a-b', name: 'c' },
  { namespace: 'a', name: 'b-c' },
  { namespace: 'default', name: 'web' },
];
/** Created after healing. */
export const FRESH: GroupRef = { namespace: 'default', name: 'fresh' };

export const TEMPLATES = ['small', 'large'] as const;

type Spec = VmGroup['spec'];

/** A user who creates, changes and deletes groups, sometimes within seconds. */
export class User {
  readonly #simulation: Simulation;
  readonly #person: Person<VmGroup>;
  /** Called right before a group is created. */
  onCreate: ((group: GroupRef) => void) | undefined;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.#person = new Person(simulation, VmGroup);
  }

  /** Plans the user's actions for the given number of milliseconds. */
  plan(ms: number): void {
    const { choices } = this.#simulation;
    for (const group of GROUPS) {
      if (choices.oneIn(3) && group !== GROUPS[2]) continue;
      let at = choices.oneIn(3) ? choices.pick(ms / 3) : choices.pick(2_000);
      const later = () => {
        at += choices.oneIn(2) ? choices.pick(4_000) : choices.pick(ms / 3);
        return Math.min(at, ms);
      };
      this.#person.at(at, () => this.create(group, this.#anything()));
      for (let count = choices.pick(4); count > 0; count--)
        this.#person.at(later(), () => this.change(group));
      if (choices.oneIn(8)) {
        this.#person.at(later(), () => this.annotate(group, PAUSED, 'true'));
        this.#person.at(later(), () => this.annotate(group, PAUSED, null));
      }
      if (!choices.oneIn(3)) continue;
      this.#person.at(later(), () => (choices.oneIn(4) ? this.letGo(group) : this.delete(group)));
      if (choices.oneIn(2)) this.#person.at(later(), () => this.create(group, this.#anything())); // a new group with the same name
    }
  }

  create(group: GroupRef, spec: Spec): void {
    const { namespace, name } = group;
    this.onCreate?.(group);
    this.#person.does(`creates ${called(group)}: ${JSON.stringify(spec)}`, () =>
      this.#person.client.create(VmGroup, { metadata: { namespace, name }, spec }),
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
    this.#person.delete(group, called(group));
  }

  annotate(group: GroupRef, annotation: string, value: string | null): void {
    this.#person.annotate(group, called(group), annotation, value);
  }

  letGo(group: GroupRef): void {
    this.#person.letGo(group, called(group));
  }

  /** Ends all pauses. */
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
    this.#person.does(`changes ${called(group)} to ${JSON.stringify(spec)}`, () =>
      this.#person.client.mergePatch(VmGroup, group, { spec }),
    );
  }
}

function called({ namespace, name }: GroupRef): string {
  return `${namespace}/${name}`;
}
