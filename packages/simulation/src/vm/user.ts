import { VM } from '@vmwright/operator';
import type { Client } from '@vmwright/runtime';
import type { Cloud } from '../cloud/cloud.ts';
import { KubectlUser, type Ref } from '../scenario/kubectl-user.ts';
import type { Simulation } from '../world/simulation.ts';
import { isLabelledFor } from './external-resources.ts';
import { EDITED, PAUSED, RECREATE } from './objects.ts';

/** Names of the user's VMs. Each requests a server named `vm-<name>` or, rarely, `SHARED` or `TAKEN`. */
export const NAMES = ['ant', 'bee', 'cat'] as const;

/** A server name that two VMs may request, and the name of a foreign server. */
export const SHARED = 'vm-shared';
export const TAKEN = 'vm-foreign';

/** Counters of status edits by third parties. */
export const STATUS_EDITS = [
  'a vmId was changed by a third party',
  'a status was emptied by a third party',
] as const;

const UPDATED = { metadata: { annotations: { touched: 'yes' } } };

/** Names of all VMs that the user creates before the faults have stopped. */
export const ALL: readonly string[] = NAMES.flatMap((name) => [name, successorOf(name)]);

/** Returns the name of a second VM that requests the same server name as the VM with the given name. */
function successorOf(name: string): string {
  return `${name}-next`;
}

/** A user who creates, annotates and deletes VMs. Actions on a VM are sometimes only seconds apart. */
export class User {
  readonly #simulation: Simulation;
  readonly #cloud: Cloud;
  readonly #kubectl: KubectlUser<VM>;

  constructor(simulation: Simulation, cloud: Cloud) {
    this.#simulation = simulation;
    this.#cloud = cloud;
    this.#kubectl = new KubectlUser(simulation, VM);
  }

  get client(): Client {
    return this.#kubectl.client;
  }

  /** Schedules the user's actions within the given number of milliseconds. */
  plan(ms: number): void {
    const { choices } = this.#simulation;
    for (const name of NAMES) {
      let at = choices.pick(ms / 4);
      const later = () => {
        at += choices.oneIn(2) ? choices.pick(3_000) : choices.pick(ms / 3);
        return Math.min(at, ms);
      };
      const vmname = () => (choices.oneIn(6) ? choices.one([SHARED, SHARED, TAKEN] as const) : `vm-${name}`);
      this.#kubectl.at(at, () => this.create(name, vmname()));
      if (choices.oneIn(3)) this.#kubectl.at(later(), () => this.annotate(name, RECREATE, 'true'));
      if (choices.oneIn(8)) {
        this.#kubectl.at(later(), () => this.annotate(name, PAUSED, 'true'));
        this.#kubectl.at(later(), () => this.annotate(name, PAUSED, null));
      }
      if (choices.oneIn(6)) this.#kubectl.at(later(), () => this.#editStatus(name));
      if (!choices.oneIn(2)) continue;
      this.#kubectl.at(later(), () => (choices.oneIn(4) ? this.orphan(name) : this.delete(name)));
      if (choices.oneIn(3)) this.#kubectl.at(later(), () => this.create(successorOf(name), `vm-${name}`)); // same server name
      if (choices.oneIn(2)) this.#kubectl.at(later(), () => this.create(name, vmname())); // a new VM with the same name
    }
  }

  create(name: string, vmname: string): void {
    this.#kubectl.run(`creates ${name} with vmname ${vmname}`, () =>
      this.#kubectl.client.create(VM, { metadata: refOf(name), spec: { vmname } }),
    );
  }

  delete(name: string): void {
    this.#kubectl.delete(refOf(name), name);
  }

  annotate(name: string, annotation: string, value: string | null): void {
    this.#kubectl.annotate(refOf(name), name, annotation, value);
  }

  orphan(name: string): void {
    this.#kubectl.orphan(refOf(name), name);
  }

  /** Edits the status: points the VM at another server or at none, or empties the status. */
  #editStatus(name: string): void {
    const { choices, counts } = this.#simulation;
    // Excludes servers without an ownership label: such a server could be the VM's own server after a third party has
    // removed its labels.
    const servers = [...this.#cloud.servers.all()].filter(({ labels }) => !isLabelledFor(labels, undefined));
    const isGone = servers.length === 0 || choices.oneIn(3);
    const vmId = isGone ? this.#simulation.uuid() : servers[choices.pick(servers.length)]?.id;
    const edited = choices.oneIn(3)
      ? { opStatus: null, conditions: null, msg: null, attempts: null }
      : { vmId, repairs: EDITED * (1 + choices.pick(3)) };
    counts.add(
      'vmId' in edited ? 'a vmId was changed by a third party' : 'a status was emptied by a third party',
    );
    this.#kubectl.run(`changes the status of ${name}: ${JSON.stringify(edited)}`, () =>
      this.client.mergePatch(VM, refOf(name), { status: edited }, { subresource: 'status' }),
    );
  }

  /** Removes the paused annotation from the VMs. @param touch whether to trigger a reconcile of each VM */
  resume(names: Iterable<string>, touch: boolean): void {
    for (const name of names) {
      this.annotate(name, PAUSED, null);
      if (touch) void this.#kubectl.client.mergePatch(VM, refOf(name), UPDATED).catch(() => undefined);
    }
  }
}

function refOf(name: string): Ref {
  return { namespace: 'default', name };
}
