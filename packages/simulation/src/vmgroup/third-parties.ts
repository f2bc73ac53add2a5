import { failRequests, partition } from '../scenario/outage.ts';
import { atRandomTimes } from '../scenario/random-times.ts';
import type { Replicas } from '../scenario/replicas.ts';
import type { Address } from '../vcenter/address.ts';
import type { Entity } from '../vcenter/entity.ts';
import type { Machine } from '../vcenter/machine.ts';
import type { Draft } from '../vcenter/machines.ts';
import { powered } from '../vcenter/operations.ts';
import { VCENTER } from '../vcenter/simulated.ts';
import type { Vcenter } from '../vcenter/vcenter.ts';
import type { Simulation } from '../world/simulation.ts';
import { foldersIn, ownerOf, ROOT, rootIn } from './external-resources.ts';
import { TEMPLATES } from './user.ts';

/** Counted actions of third parties on vCenter. */
export const THIRD_PARTY_ACTIONS = [
  'a machine was deleted by a third party',
  'a machine was powered off by a third party',
  'a machine was suspended by a third party',
  'a foreign machine was added to a managed folder',
  'a managed machine was copied manually',
  'a machine was moved away by a third party',
  'a machine was renamed by a third party',
  'a machine was turned into a template by a third party',
  'a managed folder was deleted by a third party',
  'a session was killed',
  'a template was removed',
  'vCenter was down',
  'vCenter answered only with errors',
  'the address led to another vCenter',
  'a folder was made by a user',
] as const;

/** Maximum number of actions, in addition to those of targeted faults. */
const MAX_ACTIONS = 4;
const OUTAGE_MS = 40_000;
const GONE_MS = 20_000;

const TEMPLATE: Omit<Draft, 'name' | 'folder' | 'instanceUuid' | 'canAddCpus' | 'canAddMemory'> = {
  isTemplate: true,
  power: 'poweredOff',
  host: 'host-6',
  cpus: 1,
  memoryMb: 512,
  extraConfig: {},
  ip: undefined,
};

/** Administrators and other users of the vCenter, who do not know the operator. */
export class ThirdParties {
  readonly #simulation: Simulation;
  readonly #vcenter: Vcenter;
  readonly #replicas: Replicas;
  readonly #address: Address;
  /** Ids of the original folders of machines that were moved away, by id of the machine. */
  readonly #moved = new Map<string, string>();
  #serial = 0;

  constructor(simulation: Simulation, vcenter: Vcenter, replicas: Replicas, address: Address) {
    this.#address = address;
    this.#simulation = simulation;
    this.#vcenter = vcenter;
    this.#replicas = replicas;
  }

  /** Adds templates and machines that existed before the operator. */
  setUp(): void {
    for (const name of TEMPLATES) this.#addTemplate(name);
    this.#addForeign(this.#vcenter.place.vmFolder);
    if (this.#simulation.choices.oneIn(3)) this.#prepareFolder();
  }

  /** Creates the folder of a group before the group exists. */
  #prepareFolder(): void {
    const { folders, place } = this.#vcenter;
    const root = folders.create(place.vmFolder, ROOT, 'somebody');
    folders.create(root, 'default-web', 'somebody');
    this.#note('a folder was made by a user', 'default-web');
  }

  plan(ms: number): void {
    atRandomTimes(this.#simulation, MAX_ACTIONS, ms, () => this.act());
  }

  act(): void {
    const { choices, network } = this.#simulation;
    if (!network.faulty) return;
    choices.one([
      () => this.remove(this.#oneOfOurs()),
      () => this.#setPower(this.#oneOfOurs(), 'poweredOff'),
      () => this.#setPower(this.#oneOfOurs(), 'suspended'),
      () => this.addForeignMachine(),
      () => this.#copy(this.#oneOfOurs()),
      () => this.moveAway(this.#oneOfOurs()),
      () => this.#rename(this.#oneOfOurs()),
      () => this.turnIntoTemplate(this.#oneOfOurs()),
      () => this.#removeFolder(),
      () => this.killSessions(),
      () => this.#removeTemplate(),
      () => this.#outage(),
      () => this.#failAllRequests(),
      () => this.#redirectAddress(),
    ])();
  }

  remove(machine: Machine | undefined): void {
    if (machine === undefined) return;
    this.#note('a machine was deleted by a third party', machine.id);
    this.#vcenter.machines.remove(machine.id, 'somebody');
  }

  killSessions(): void {
    for (const { key } of this.#vcenter.sessions) {
      this.#note('a session was killed', key);
      this.#vcenter.kill(key);
    }
  }

  /** Adds a foreign machine to a random group folder. */
  addForeignMachine(): void {
    this.addForeignMachineTo(this.#oneFolder()?.name ?? '');
  }

  addForeignMachineTo(name: string): void {
    const folder = foldersIn(this.#vcenter).find((each) => each.name === name);
    if (folder === undefined) return;
    this.#note('a foreign machine was added to a managed folder', folder.name);
    this.#addForeign(folder);
  }

  /** Ends all actions and outages, and restores templates and moved machines. */
  stop(): void {
    this.#vcenter.outOfOrder = false;
    this.#address.isRedirected = false;
    for (const name of this.#replicas.names) this.#simulation.network.heal(name, VCENTER);
    for (const name of TEMPLATES) this.#addTemplate(name);
    for (const id of this.#moved.keys()) this.#moveBack(id);
    for (const { id, isTemplate } of this.#vcenter.machines.all()) if (isTemplate) this.#turnIntoMachine(id);
  }

  /** Moves a machine out of its group's folder for a while. */
  moveAway(machine: Machine | undefined): void {
    const { choices, schedule } = this.#simulation;
    const { machines, tasks, place } = this.#vcenter;
    if (machine === undefined || tasks.isLocked(machine.id) || this.#moved.has(machine.id)) return;
    if (place.vmFolder.child(machine.name) !== undefined) return;
    this.#note('a machine was moved away by a third party', machine.id);
    this.#moved.set(machine.id, machine.folder);
    machines.move(machine.id, place.vmFolder);
    schedule.after(1_000 + choices.pick(GONE_MS), () => this.#moveBack(machine.id));
  }

  /**
   * Moves a machine back into its folder, as the status message requests. This is impossible if the folder is gone or
   * contains another machine with the same name. Then a managed machine is deleted, and a foreign machine is moved to
   * the root folder.
   */
  #moveBack(id: string): void {
    const machine = this.#vcenter.machines.get(id);
    const before = this.#moved.get(id);
    const root = rootIn(this.#vcenter);
    if (machine === undefined || !this.#moved.delete(id) || root === undefined) return;
    const folder = foldersIn(this.#vcenter).find(({ ref }) => ref.value === before);
    const isFree = folder !== undefined && folder.child(machine.name) === undefined;
    if (isFree) this.#vcenter.machines.move(id, folder);
    else if (ownerOf(machine) !== undefined) this.remove(machine);
    else this.#vcenter.machines.move(id, root);
  }

  /** Renames a machine. The group does not depend on the name. */
  #rename(machine: Machine | undefined): void {
    if (machine === undefined || this.#vcenter.tasks.isLocked(machine.id)) return;
    this.#note('a machine was renamed by a third party', machine.id);
    this.#serial += 1;
    this.#vcenter.machines.change(machine.id, { name: `renamed-${this.#serial}` }, 'somebody');
  }

  /** Turns a machine into a template for a while. */
  turnIntoTemplate(machine: Machine | undefined): void {
    const { choices, schedule } = this.#simulation;
    if (machine === undefined || this.#vcenter.tasks.isLocked(machine.id)) return;
    this.#note('a machine was turned into a template by a third party', machine.id);
    const off = powered(machine, 'poweredOff');
    this.#vcenter.machines.change(machine.id, { ...off, isTemplate: true }, 'somebody');
    schedule.after(1_000 + choices.pick(GONE_MS), () => this.#turnIntoMachine(machine.id));
  }

  #turnIntoMachine(id: string): void {
    const machine = this.#vcenter.machines.get(id);
    if (machine !== undefined && ownerOf(machine) !== undefined)
      this.#vcenter.machines.change(id, { isTemplate: false }, 'somebody');
  }

  #oneOfOurs(): Machine | undefined {
    const ours = [...this.#vcenter.machines.all()].filter((machine) => ownerOf(machine) !== undefined);
    return ours.length === 0 ? undefined : ours[this.#simulation.choices.pick(ours.length)];
  }

  #oneFolder(): Entity | undefined {
    const folders = foldersIn(this.#vcenter);
    return folders.length === 0 ? undefined : folders[this.#simulation.choices.pick(folders.length)];
  }

  #setPower(machine: Machine | undefined, power: 'poweredOff' | 'suspended'): void {
    if (machine?.power !== 'poweredOn' || this.#vcenter.tasks.isLocked(machine.id)) return;
    const how = power === 'suspended' ? 'suspended' : 'powered off';
    this.#note(`a machine was ${how} by a third party`, machine.id);
    this.#vcenter.machines.change(machine.id, powered(machine, power), 'somebody');
  }

  /** Copies a machine with its ownership labels but a new UUID. */
  #copy(machine: Machine | undefined): void {
    if (machine === undefined) return;
    this.#note('a managed machine was copied manually', machine.id);
    const { id: _, ...copy } = machine;
    this.#serial += 1;
    const instanceUuid = this.#simulation.uuid();
    this.#vcenter.machines.add({ ...copy, name: `copy-${this.#serial}`, instanceUuid }, 'somebody');
  }

  #removeFolder(): void {
    const folder = this.#oneFolder();
    if (folder === undefined) return;
    this.#note('a managed folder was deleted by a third party', folder.name);
    this.#vcenter.operations.remove(folder);
  }

  #removeTemplate(): void {
    const { choices, schedule } = this.#simulation;
    const name = choices.one(TEMPLATES);
    const template = this.#vcenter.place.vmFolder.child(name);
    if (template === undefined) return;
    this.#note('a template was removed', name);
    this.#vcenter.machines.remove(template.ref.value, 'somebody');
    schedule.after(1_000 + choices.pick(GONE_MS), () => this.#addTemplate(name));
  }

  /** Adds a template if none of this name exists. */
  #addTemplate(name: string): void {
    const { vmFolder } = this.#vcenter.place;
    if (vmFolder.child(name) !== undefined) return;
    const canAdd = name === 'large';
    this.#vcenter.machines.add(
      {
        ...TEMPLATE,
        name,
        folder: vmFolder.ref.value,
        instanceUuid: this.#simulation.uuid(),
        canAddCpus: canAdd,
        canAddMemory: canAdd,
      },
      'somebody',
    );
  }

  #addForeign(folder: Entity): void {
    this.#serial += 1;
    this.#vcenter.machines.add(
      {
        ...TEMPLATE,
        name: `foreign-${this.#serial}`,
        folder: folder.ref.value,
        isTemplate: false,
        instanceUuid: this.#simulation.uuid(),
        canAddCpus: false,
        canAddMemory: false,
      },
      'somebody',
    );
  }

  /** Partitions all replicas from vCenter, usually for longer than a client retries. */
  #outage(): void {
    this.#note('vCenter was down', 'for all replicas');
    partition(this.#simulation, this.#replicas.names, VCENTER, OUTAGE_MS);
  }

  #failAllRequests(): void {
    this.#note('vCenter answered only with errors', 'for all replicas');
    failRequests(this.#simulation, this.#vcenter, OUTAGE_MS);
  }

  #redirectAddress(): void {
    const { schedule, choices } = this.#simulation;
    this.#note('the address led to another vCenter', 'for all replicas');
    this.#address.isRedirected = true;
    schedule.after(1_000 + choices.pick(OUTAGE_MS), () => {
      this.#address.isRedirected = false;
    });
  }

  #note(what: (typeof THIRD_PARTY_ACTIONS)[number], about: string): void {
    this.#simulation.counts.add(what);
    this.#simulation.note('third party', `${what}: ${about}`);
  }
}
