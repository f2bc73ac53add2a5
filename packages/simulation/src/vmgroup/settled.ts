import type { StoredObject } from '../apiserver/object.ts';
import type { Truth } from '../invariants/invariant.ts';
import type { Machine } from '../vcenter/machine.ts';
import type { Vcenter } from '../vcenter/vcenter.ts';
import { countIn, isPaused, phaseOf, readyOf, slotsOf, type Wanted, wantedIn } from './objects.ts';
import { folderOwnerOf, foldersIn, machinesOf, ownerOf, templateOf } from './outside.ts';

/** What is wrong with a group at rest; undefined where all is as it should be. */
export function problemOf(object: StoredObject, truth: Truth, vcenter: Vcenter): string | undefined {
  if (isPaused(object)) return undefined;
  const isServed = served(object, vcenter) === undefined;
  // A mark that is set late, when another group has the folder, takes it over: both go on then, side by side.
  const problem = isTaken(object, truth, vcenter) && !isServed ? refused(object) : served(object, vcenter);
  return problem && `${problem}, and its status is ${JSON.stringify(object.status)}`;
}

/** Whether the folder of this name is another group's, which is there. */
function isTaken({ metadata }: StoredObject, { server, kind }: Truth, vcenter: Vcenter): boolean {
  const name = `${metadata.namespace}-${metadata.name}`;
  const folder = foldersIn(vcenter).find((each) => each.name === name);
  const owner = folder && folderOwnerOf(vcenter, folder);
  if (owner === undefined || owner === metadata.uid) return false;
  return [...server.objects(kind)].some((each) => each.metadata.uid === owner);
}

function refused(object: StoredObject): string | undefined {
  const { reason } = readyOf(object);
  const isNothing = wantedIn(object).replicas === 0;
  return reason === 'FolderTaken' || isNothing ? undefined : "its folder is another group's";
}

function served(object: StoredObject, vcenter: Vcenter): string | undefined {
  const wanted = wantedIn(object);
  const machines = machinesOf(vcenter, object.metadata.uid ?? '');
  if (machines.length !== wanted.replicas) return `it has ${machines.length} of ${wanted.replicas} machines`;
  for (const machine of machines) {
    const wrong = wrongWith(machine, wanted);
    if (wrong !== undefined) return `${machine.id} ${wrong}`;
  }
  const ready = readyOf(object);
  if (phaseOf(object) !== 'RUNNING' || ready.status !== 'True') return 'its machines run';
  for (const name of ['currentReplicas', 'desiredReplicas', 'readyReplicas'])
    if (countIn(object, name) !== wanted.replicas) return `its ${name} is not ${wanted.replicas}`;
  return toldWrongly(object, machines);
}

function wrongWith(machine: Machine, wanted: Wanted): string | undefined {
  if (machine.power !== 'poweredOn') return `is ${machine.power}`;
  if (!wanted.isRolling) return undefined;
  if (machine.cpus !== wanted.cpus || machine.memoryMb !== wanted.memoryMb)
    return `has ${machine.cpus} CPUs and ${machine.memoryMb} MB`;
  return templateOf(machine) === wanted.template ? undefined : `is from ${templateOf(machine)}`;
}

function toldWrongly(object: StoredObject, machines: readonly Machine[]): string | undefined {
  const slots = slotsOf(object);
  if (slots.length !== machines.length) return `${slots.length} machines are told of`;
  for (const machine of machines) {
    const told = slots.find(({ slot }) => slot === ownerOf(machine)?.slot);
    const isTrue = told?.power === machine.power && told.name === machine.name && !told.isLeaving;
    if (!isTrue || told.task !== undefined) return `${machine.id} is told of otherwise`;
  }
  return undefined;
}
