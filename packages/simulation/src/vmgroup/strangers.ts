import { cutOff, putOutOfOrder } from '../scenario/outage.ts';
import type { Replicas } from '../scenario/replicas.ts';
import type { Address } from '../vcenter/address.ts';
import type { Entity } from '../vcenter/entity.ts';
import type { Machine } from '../vcenter/machine.ts';
import type { Draft } from '../vcenter/machines.ts';
import { powered } from '../vcenter/operations.ts';
import { VCENTER } from '../vcenter/simulated.ts';
import type { Vcenter } from '../vcenter/vcenter.ts';
import type { Simulation } from '../world/simulation.ts';
import { foldersIn, ownerOf, ROOT, rootIn } from './outside.ts';
import { TEMPLATES } from './user.ts';

/** What is done to vCenter past us, by its name in the counts. */
export const STRANGE = [
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

/** Beside those that ambushes call for. */
const MOST = 4;
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

/** Those who use the same vCenter and do not know of us, and those who run it. */
export class Strangers {
  readonly #simulation: Simulation;
  readonly #vcenter: Vcenter;
  readonly #replicas: Replicas;
  readonly #address: Address;
  /** Machines that were moved away: the folders that they were in. */
  readonly #moved = new Map<string, string>();
  #serial = 0;

  constructor(simulation: Simulation, vcenter: Vcenter, replicas: Replicas, address: Address) {
    this.#address = address;
    this.#simulation = simulation;
    this.#vcenter = vcenter;
    this.#replicas = replicas;
  }

  /** What was there before us. */
  settle(): void {
    for (const name of TEMPLATES) this.#bring(name);
    this.#addForeign(this.#vcenter.place.vmFolder);
    if (this.#simulation.choices.oneIn(3)) this.#prepareFolder();
  }

  /** A folder for a group, made by people before the group. */
  #prepareFolder(): void {
    const { folders, place } = this.#vcenter;
    const root = folders.make(place.vmFolder, ROOT, 'somebody');
    folders.make(root, 'default-web', 'somebody');
    this.#tell('a folder was made by a user', 'default-web');
  }

  plan(ms: number): void {
    const { choices, schedule } = this.#simulation;
    for (let count = choices.pick(MOST + 1); count > 0; count--)
      schedule.after(choices.pick(ms), () => this.strike());
  }

  strike(): void {
    const { choices, network } = this.#simulation;
    if (!network.faulty) return;
    choices.one([
      () => this.takeAway(this.#oneOfOurs()),
      () => this.#setPower(this.#oneOfOurs(), 'poweredOff'),
      () => this.#setPower(this.#oneOfOurs(), 'suspended'),
      () => this.intrudeSomewhere(),
      () => this.#copy(this.#oneOfOurs()),
      () => this.moveAway(this.#oneOfOurs()),
      () => this.#rename(this.#oneOfOurs()),
      () => this.turnIntoTemplate(this.#oneOfOurs()),
      () => this.#removeFolder(),
      () => this.killSessions(),
      () => this.#removeTemplate(),
      () => this.#outage(),
      () => this.#disorder(),
      () => this.#leadElsewhere(),
    ])();
  }

  takeAway(machine: Machine | undefined): void {
    if (machine === undefined) return;
    this.#tell('a machine was deleted by a third party', machine.id);
    this.#vcenter.machines.remove(machine.id, 'somebody');
  }

  killSessions(): void {
    for (const { key } of this.#vcenter.sessions) {
      this.#tell('a session was killed', key);
      this.#vcenter.kill(key);
    }
  }

  /** A machine of somebody else in the folder of a group. */
  intrudeSomewhere(): void {
    this.intrudeInto(this.#oneFolder()?.name ?? '');
  }

  intrudeInto(name: string): void {
    const folder = foldersIn(this.#vcenter).find((each) => each.name === name);
    if (folder === undefined) return;
    this.#tell('a foreign machine was added to a managed folder', folder.name);
    this.#addForeign(folder);
  }

  /** From now on nothing of theirs changes. */
  rest(): void {
    this.#vcenter.outOfOrder = false;
    this.#address.isElsewhere = false;
    for (const name of this.#replicas.names) this.#simulation.network.mend(name, VCENTER);
    for (const name of TEMPLATES) this.#bring(name);
    for (const id of this.#moved.keys()) this.#moveBack(id);
    for (const { id, isTemplate } of this.#vcenter.machines.all()) if (isTemplate) this.#turnIntoMachine(id);
  }

  /** Out of the folder of its group, for a while. */
  moveAway(machine: Machine | undefined): void {
    const { choices, schedule } = this.#simulation;
    const { machines, tasks, place } = this.#vcenter;
    if (machine === undefined || tasks.isLocked(machine.id) || this.#moved.has(machine.id)) return;
    if (place.vmFolder.child(machine.name) !== undefined) return;
    this.#tell('a machine was moved away by a third party', machine.id);
    this.#moved.set(machine.id, machine.folder);
    machines.move(machine.id, place.vmFolder);
    schedule.after(1_000 + choices.pick(GONE_MS), () => this.#moveBack(machine.id));
  }

  /** As the status asks: into its folder; where that cannot be, a machine of an existing group is deleted. */
  #moveBack(id: string): void {
    const machine = this.#vcenter.machines.get(id);
    const before = this.#moved.get(id);
    const root = rootIn(this.#vcenter);
    if (machine === undefined || !this.#moved.delete(id) || root === undefined) return;
    const folder = foldersIn(this.#vcenter).find(({ ref }) => ref.value === before);
    const isFree = folder !== undefined && folder.child(machine.name) === undefined;
    if (isFree) this.#vcenter.machines.move(id, folder);
    else if (ownerOf(machine) !== undefined) this.takeAway(machine);
    else this.#vcenter.machines.move(id, root);
  }

  /** Its name in vCenter means nothing to the group. */
  #rename(machine: Machine | undefined): void {
    if (machine === undefined || this.#vcenter.tasks.isLocked(machine.id)) return;
    this.#tell('a machine was renamed by a third party', machine.id);
    this.#serial += 1;
    this.#vcenter.machines.change(machine.id, { name: `renamed-${this.#serial}` }, 'somebody');
  }

  /** For a while. */
  turnIntoTemplate(machine: Machine | undefined): void {
    const { choices, schedule } = this.#simulation;
    if (machine === undefined || this.#vcenter.tasks.isLocked(machine.id)) return;
    this.#tell('a machine was turned into a template by a third party', machine.id);
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
    this.#tell(`a machine was ${how} by a third party`, machine.id);
    this.#vcenter.machines.change(machine.id, powered(machine, power), 'somebody');
  }

  /** With its marks, and a UUID of its own. */
  #copy(machine: Machine | undefined): void {
    if (machine === undefined) return;
    this.#tell('a managed machine was copied manually', machine.id);
    const { id: _, ...copy } = machine;
    this.#serial += 1;
    const instanceUuid = this.#simulation.uuid();
    this.#vcenter.machines.add({ ...copy, name: `copy-${this.#serial}`, instanceUuid }, 'somebody');
  }

  #removeFolder(): void {
    const folder = this.#oneFolder();
    if (folder === undefined) return;
    this.#tell('a managed folder was deleted by a third party', folder.name);
    this.#vcenter.operations.remove(folder);
  }

  #removeTemplate(): void {
    const { choices, schedule } = this.#simulation;
    const name = choices.one(TEMPLATES);
    const template = this.#vcenter.place.vmFolder.child(name);
    if (template === undefined) return;
    this.#tell('a template was removed', name);
    this.#vcenter.machines.remove(template.ref.value, 'somebody');
    schedule.after(1_000 + choices.pick(GONE_MS), () => this.#bring(name));
  }

  /** A template, where there is none of the name. */
  #bring(name: string): void {
    const { vmFolder } = this.#vcenter.place;
    if (vmFolder.child(name) !== undefined) return;
    const canAdd = name === 'large';
    this.#vcenter.machines.add(
      {
        ...TEMPLATE,
        ...{ name, folder: vmFolder.ref.value, instanceUuid: this.#simulation.uuid() },
        ...{ canAddCpus: canAdd, canAddMemory: canAdd },
      },
      'somebody',
    );
  }

  #addForeign(folder: Entity): void {
    this.#serial += 1;
    this.#vcenter.machines.add(
      {
        ...TEMPLATE,
        ...{ name: `foreign-${this.#serial}`, folder: folder.ref.value, isTemplate: false },
        ...{ instanceUuid: this.#simulation.uuid(), canAddCpus: false, canAddMemory: false },
      },
      'somebody',
    );
  }

  /** Mostly longer than a client tries. */
  #outage(): void {
    this.#tell('vCenter was down', 'for all');
    cutOff(this.#simulation, this.#replicas.names, VCENTER, OUTAGE_MS);
  }

  #disorder(): void {
    this.#tell('vCenter answered only with errors', 'for all');
    putOutOfOrder(this.#simulation, this.#vcenter, OUTAGE_MS);
  }

  #leadElsewhere(): void {
    const { schedule, choices } = this.#simulation;
    this.#tell('the address led to another vCenter', 'for all');
    this.#address.isElsewhere = true;
    schedule.after(1_000 + choices.pick(OUTAGE_MS), () => {
      this.#address.isElsewhere = false;
    });
  }

  #tell(what: (typeof STRANGE)[number], about: string): void {
    this.#simulation.counts.add(what);
    this.#simulation.note('strangers', `${what}: ${about}`);
  }
}
