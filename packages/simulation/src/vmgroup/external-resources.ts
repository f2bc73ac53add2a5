import { createHash } from 'node:crypto';
import type { ExternalResource, ExternalResources } from '../invariants/external-resources.ts';
import type { Entity } from '../vcenter/entity.ts';
import type { Machine } from '../vcenter/machine.ts';
import type { Vcenter } from '../vcenter/vcenter.ts';
import { CLUSTER } from './program.ts';

/*
 * Ownership of machines and folders in vCenter. Not imported from the operator, so that a change there does not also
 * change the check.
 */

export const ROOT = 'vm-operator';
const FOLDER_OWNER = 'vmwright.dev/owner';

/**
 * Name of a folder that was created and has no label yet: hash of the cluster, hash of the namespace, UID of the group.
 */
const PROVISIONAL = /^vmwright-[a-z]{8}-[a-z]{8}-(.+)$/;

export interface Owner {
  readonly uid: string;
  readonly slot: number;
}

/** Returns the group and slot (replica number) in the labels of a machine, even if its UUID does not match them. */
export function labelsOf({ extraConfig }: Machine): Owner | undefined {
  const uid = extraConfig['vmwright.uid'];
  if (uid === undefined || extraConfig['vmwright.cluster'] !== CLUSTER) return undefined;
  return { uid, slot: Number(extraConfig['vmwright.slot']) };
}

/** Returns the group and slot of a machine if its UUID matches its labels. */
export function ownerOf(machine: Machine): Owner | undefined {
  const owner = labelsOf(machine);
  return owner !== undefined && machine.instanceUuid === uuidOf(owner) ? owner : undefined;
}

export function templateOf({ extraConfig }: Machine): string {
  return extraConfig['vmwright.template'] ?? '';
}

/** Returns the machines of a group. */
export function machinesOf(vcenter: Vcenter, uid: string): readonly Machine[] {
  const found: Machine[] = [];
  for (const machine of vcenter.machines.all()) if (ownerOf(machine)?.uid === uid) found.push(machine);
  return found;
}

/**
 * Returns the UID of the group that owns a folder. The UID is in the folder's label or, without a label, in the
 * folder's provisional name. A folder that was kept because of foreign content has no owner.
 */
export function folderOwnerOf(vcenter: Vcenter, folder: Entity): string | undefined {
  const label = vcenter.folders.attributeOf(folder, FOLDER_OWNER);
  if (label === '') return PROVISIONAL.exec(folder.name)?.[1];
  const [cluster, uid, , ...words] = label.split(' ');
  if (words.includes('kept') && folder.children.size > 0) return undefined;
  return cluster === CLUSTER && uid !== '' ? uid : undefined;
}

/** Returns the parent folder of the group folders. */
export function rootIn({ place }: Vcenter): Entity | undefined {
  return place.vmFolder.child(ROOT);
}

/** Returns the group folders. */
export function foldersIn(vcenter: Vcenter): readonly Entity[] {
  const root = rootIn(vcenter);
  return root === undefined ? [] : [...root.children].filter(({ ref }) => ref.type === 'Folder');
}

/**
 * vCenter model as the invariants see it. Reports only changes by requests. Other changes come from third parties, not
 * from the controller.
 */
export function externalResourcesOf(vcenter: Vcenter): ExternalResources {
  return {
    *all() {
      for (const machine of vcenter.machines.all()) yield resourceOf(machine);
      for (const folder of foldersIn(vcenter))
        yield { id: folder.ref.value, owner: folderOwnerOf(vcenter, folder), deleting: false };
    },
    listen: (listener) => {
      vcenter.machines.listen(({ before, after, cause }) => {
        if (cause === 'request')
          listener({ before: before && resourceOf(before), after: after && resourceOf(after) });
      });
      vcenter.folders.listen(({ id, cause }) => {
        const folder = { id, owner: undefined, deleting: false };
        if (cause === 'request') listener({ before: folder, after: folder });
      });
      vcenter.tasks.onBegin(({ ref }) => {
        const task = { id: ref.value, owner: undefined, deleting: false };
        listener({ before: undefined, after: task });
      });
    },
  };
}

function resourceOf(machine: Machine): ExternalResource {
  return { id: machine.id, owner: ownerOf(machine)?.uid, deleting: false };
}

/** Cache of instance UUIDs, by UID of the group and slot. Every ownership check of a machine needs such a UUID. */
const UUIDS = new Map<string, string>();
const MAX_UUIDS = 10_000;

function uuidOf({ uid, slot }: Owner): string {
  const key = `${uid}/${slot}`;
  const known = UUIDS.get(key);
  if (known !== undefined) return known;
  const hex = createHash('sha1').update(`vmwright.dev/vmgroup/${key}`).digest('hex');
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  const uuid = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  if (UUIDS.size > MAX_UUIDS) UUIDS.clear();
  UUIDS.set(key, uuid);
  return uuid;
}
