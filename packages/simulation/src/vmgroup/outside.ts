import { createHash } from 'node:crypto';
import type { Outside, OutsideResource } from '../invariants/outside.ts';
import type { Entity } from '../vcenter/entity.ts';
import type { Machine } from '../vcenter/machine.ts';
import type { Vcenter } from '../vcenter/vcenter.ts';
import { CLUSTER } from './program.ts';

/* Whose things in vCenter are, in words of our own: the operator's must not be able to change both. */

export const ROOT = 'vm-operator';
const FOLDER_OWNER = 'vmwright.dev/owner';

export interface Owner {
  readonly uid: string;
  readonly slot: number;
}

/** The group and the slot that a machine says it was made for, whatever its UUID says. */
export function marksOf({ extraConfig }: Machine): Owner | undefined {
  const uid = extraConfig['vmwright.uid'];
  if (uid === undefined || extraConfig['vmwright.cluster'] !== CLUSTER) return undefined;
  return { uid, slot: Number(extraConfig['vmwright.slot']) };
}

/** The same, where the UUID bears it out. */
export function ownerOf(machine: Machine): Owner | undefined {
  const owner = marksOf(machine);
  return owner !== undefined && machine.instanceUuid === uuidOf(owner) ? owner : undefined;
}

export function templateOf({ extraConfig }: Machine): string {
  return extraConfig['vmwright.template'] ?? '';
}

/** The machines that are a group's. */
export function machinesOf(vcenter: Vcenter, uid: string): readonly Machine[] {
  const found: Machine[] = [];
  for (const machine of vcenter.machines.all()) if (ownerOf(machine)?.uid === uid) found.push(machine);
  return found;
}

/** The UID of the group that a folder is marked with. One that stays because of what others have in it is nobody's. */
export function folderOwnerOf(vcenter: Vcenter, folder: Entity): string | undefined {
  const [cluster, uid, , ...words] = vcenter.folders.attributeOf(folder, FOLDER_OWNER).split(' ');
  if (words.includes('kept') && folder.children.size > 0) return undefined;
  return cluster === CLUSTER && uid !== '' ? uid : undefined;
}

/** The folder that those of groups are in. */
export function rootIn({ place }: Vcenter): Entity | undefined {
  return place.vmFolder.child(ROOT);
}

/** The folders of groups. */
export function foldersIn(vcenter: Vcenter): readonly Entity[] {
  const root = rootIn(vcenter);
  return root === undefined ? [] : [...root.children].filter(({ ref }) => ref.type === 'Folder');
}

/**
 * vCenter as invariants look at it: of changes, those that somebody has asked for by a call. What machines do by
 * themselves, and what people do past us, is not the controller's.
 */
export function outsideOf(vcenter: Vcenter): Outside {
  return {
    *all() {
      for (const machine of vcenter.machines.all()) yield resourceOf(machine);
      for (const folder of foldersIn(vcenter))
        yield { id: folder.ref.value, owner: folderOwnerOf(vcenter, folder), leaving: false };
    },
    listen: (listener) => {
      vcenter.machines.listen(({ before, after, cause }) => {
        if (cause === 'request')
          listener({ before: before && resourceOf(before), after: after && resourceOf(after) });
      });
      vcenter.folders.listen(({ id, cause }) => {
        const folder = { id, owner: undefined, leaving: false };
        if (cause === 'request') listener({ before: folder, after: folder });
      });
      vcenter.tasks.onBegin(({ ref }) => {
        const task = { id: ref.value, owner: undefined, leaving: false };
        listener({ before: undefined, after: task });
      });
    },
  };
}

function resourceOf(machine: Machine): OutsideResource {
  return { id: machine.id, owner: ownerOf(machine)?.uid, leaving: false };
}

/** Few groups have few slots, and every look at a machine asks. */
const UUIDS = new Map<string, string>();
const MOST_UUIDS = 10_000;

function uuidOf({ uid, slot }: Owner): string {
  const key = `${uid}/${slot}`;
  const known = UUIDS.get(key);
  if (known !== undefined) return known;
  const hex = createHash('sha1').update(`vmwright.dev/vmgroup/${key}`).digest('hex');
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  const uuid = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  if (UUIDS.size > MOST_UUIDS) UUIDS.clear();
  UUIDS.set(key, uuid);
  return uuid;
}
