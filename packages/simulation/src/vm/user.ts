import { VM } from '@vmwright/operator';
import type { Client } from '@vmwright/runtime';
import type { Cloud } from '../cloud/cloud.ts';
import { Person, type Ref } from '../scenario/person.ts';
import type { Simulation } from '../world/simulation.ts';
import { FORGED, PAUSED, RECREATE } from './objects.ts';
import { isMarkedFor } from './external-resources.ts';

/** Names of the user's VMs. Each requests a server named `vm-<name>`, unless two VMs want the same name. */
export const NAMES = ['ant', 'bee', 'cat'] as const;

/** A server name that two VMs may request, and one that a foreign server has. */
export const SHARED = 'vm-shared';
export const TAKEN = 'vm-foreign';

/** Counters of status edits past the operator. */
export const FORGERIES = ['a vmId was changed by a third party', 'a status was emptied by a third party'] as const;

const UPDATED = { metadata: { annotations: { touched: 'yes' } } };

/** Names of all VMs that the user ever creates. */
export const ALL: readonly string[] = NAMES.flatMap((name) => [name, successorOf(name)]);

/** Name of another VM that requests a server of the same name. */
function successorOf(name: string): string {
  return `${name}-next`;
}

/** A user who creates, annotates and deletes VMs, sometimes within seconds. */
export class User {
  readonly #simulation: Simulation;
  readonly #cloud: Cloud;
  readonly #person: Person<VM>;

  constructor(simulation: Simulation, cloud: Cloud) {
    this.#simulation = simulation;
    this.#cloud = cloud;
    this.#person = new Person(simulation, VM);
  }

  get client(): Client {
    return this.#person.client;
  }

  /** Plans the user's actions for the given number of milliseconds. */
  plan(ms: number): void {
    const { choices } = this.#simulation;
    for (const name of NAMES) {
      let at = choices.pick(ms / 4);
      const later = () => {
        at += choices.oneIn(2) ? choices.pick(3_000) : choices.pick(ms / 3);
        return Math.min(at, ms);
      };
      const vmname = () => (choices.oneIn(6) ? choices.one([SHARED, SHARED, TAKEN] as const) : `vm-${name}`);
      this.#person.at(at, () => this.create(name, vmname()));
      if (choices.oneIn(3)) this.#person.at(later(), () => this.annotate(name, RECREATE, 'true'));
      if (choices.oneIn(8)) {
        this.#person.at(later(), () => this.annotate(name, PAUSED, 'true'));
        this.#person.at(later(), () => this.annotate(name, PAUSED, null));
      }
      if (choices.oneIn(6)) this.#person.at(later(), () => this.#forge(name));
      if (!choices.oneIn(2)) continue;
      this.#person.at(later(), () => (choices.oneIn(4) ? this.letGo(name) : this.delete(name)));
      if (choices.oneIn(3)) this.#person.at(later(), () => this.create(successorOf(name), `vm-${name}`)); // requests the same server name
      if (choices.oneIn(2)) this.#person.at(later(), () => this.create(name, vmname())); // a new VM with the same name
    }
  }

  create(name: string, vmname: string): void {
    this.#person.does(`creates ${name} with vmname ${vmname}`, () =>
      this.#person.client.create(VM, { metadata: refOf(name), spec: { vmname } }),
    );
  }

  delete(name: string): void {
    this.#person.delete(refOf(name), name);
  }

  annotate(name: string, annotation: string, value: string | null): void {
    this.#person.annotate(refOf(name), name, annotation, value);
  }

  letGo(name: string): void {
    this.#person.letGo(refOf(name), name);
  }

  /** Edits the status: points the VM at another server or at none, or empties it. */
  #forge(name: string): void {
    const { choices, counts } = this.#simulation;
    // A server without an ownership label cannot be distinguished from the VM's own server that has lost its
    // labels.
    const servers = [...this.#cloud.servers.all()].filter(({ labels }) => !isMarkedFor(labels, undefined));
    const isGone = servers.length === 0 || choices.oneIn(3);
    const vmId = isGone ? this.#simulation.uuid() : servers[choices.pick(servers.length)]?.id;
    const forged = choices.oneIn(3)
      ? { opStatus: null, conditions: null, msg: null, attempts: null }
      : { vmId, repairs: FORGED * (1 + choices.pick(3)) };
    counts.add('vmId' in forged ? 'a vmId was changed by a third party' : 'a status was emptied by a third party');
    this.#person.does(`changes the status of ${name}: ${JSON.stringify(forged)}`, () =>
      this.client.mergePatch(VM, refOf(name), { status: forged }, { subresource: 'status' }),
    );
  }

  /** Ends all pauses. @param touch whether to trigger a reconcile of each VM */
  resume(names: Iterable<string>, touch: boolean): void {
    for (const name of names) {
      this.annotate(name, PAUSED, null);
      if (touch) void this.#person.client.mergePatch(VM, refOf(name), UPDATED).catch(() => undefined);
    }
  }
}

function refOf(name: string): Ref {
  return { namespace: 'default', name };
}
