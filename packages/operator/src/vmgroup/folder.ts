import {
  type ChangeOptions,
  createFolder,
  customValueOf,
  FaultError,
  type Ref,
  type VcenterClient,
} from '@vmwright/vsphere';
import { FOLDER_OWNER, type FolderOwner, marksIn, ownerIn, ownerText } from './marks.ts';
import type { Root } from './root.ts';
import { GroupError } from './trouble.ts';

/** Which group wants a folder. */
export interface Claimant extends Omit<FolderOwner, 'isOurs'> {
  /** Whether there is, or may be, a group of ours in that namespace with this UID. */
  readonly lives: (uid: string, namespace: string) => Promise<boolean>;
}

/**
 * The folder of a group's machines, made where it is missing, and marked as the group's. Names of groups can run
 * together (`a-b/c` and `a/b-c`), so a folder may be another's.
 * @throws GroupError where it is
 */
export async function claimFolder(
  vcenter: VcenterClient,
  root: Root,
  name: string,
  { lives, ...owner }: Claimant,
  options: ChangeOptions,
): Promise<Ref<'Folder'>> {
  // First, so that who may not mark a folder does not make one either.
  const key = await vcenter.attributes.ensureKey(FOLDER_OWNER, options);
  const shown = root.child(name);
  const { folder, created: isNew } =
    shown === undefined
      ? await createFolder(vcenter, root.folder, name, options)
      : { folder: shown, created: false };
  const { customValue } = await vcenter.read(folder, ['customValue'], options);
  const theirs = ownerIn(customValueOf(customValue, key));
  if (theirs?.uid === owner.uid) return folder;
  const isAlive =
    theirs !== undefined && (theirs.cluster !== owner.cluster || (await lives(theirs.uid, theirs.namespace)));
  if (isAlive) {
    const whose =
      theirs.cluster === owner.cluster ? nameFrom(name, theirs.namespace) : 'a VmGroup of another cluster';
    throw new GroupError({
      reason: 'FolderTaken',
      message: `the folder '${name}' belongs to ${whose}; give this group another name, or another folder in spec.placement.folder`,
    });
  }
  // A folder that is there without a mark may have been made by people, also where it is empty. So may one that was made by
  // an operator that stopped before it marked it: such a folder stays.
  const isOurs = theirs?.isOurs ?? isNew;
  await vcenter.attributes.set(folder, key, ownerText({ ...owner, isOurs }), options);
  return folder;
}

/** A folder is called `<namespace>-<name>`, so that the namespace of its group says how the group is called. */
function nameFrom(folder: string, namespace: string): string {
  const prefix = `${namespace}-`;
  if (!folder.startsWith(prefix)) return 'a VmGroup of another namespace'; // a name that was shortened
  return `the VmGroup '${folder.slice(prefix.length)}' in the namespace '${namespace}'`;
}

export async function ownerOf(
  vcenter: VcenterClient,
  folder: Ref<'Folder'>,
  options: ChangeOptions,
): Promise<FolderOwner | undefined> {
  const key = await vcenter.attributes.findKey(FOLDER_OWNER, options);
  if (key === undefined) return undefined;
  const { customValue } = await vcenter.read(folder, ['customValue'], options);
  return ownerIn(customValueOf(customValue, key));
}

/** What became of a group's folder: `inUse` while machines of the group are in it. */
export type Released = 'gone' | 'inUse' | 'kept';

/**
 * Removes a group's folder where the operator has created it and it is empty. Otherwise the folder stays: a folder of the
 * operator is marked as kept, so that garbage collection removes it once it is empty; from another the mark is removed.
 * A machine that comes into the folder between the reading and the removal leaves the inventory at worst; its files stay.
 */
export async function releaseFolder(
  vcenter: VcenterClient,
  folder: Ref<'Folder'>,
  uid: string,
  options: ChangeOptions,
): Promise<Released> {
  try {
    const owner = await ownerOf(vcenter, folder, options);
    if (owner?.uid !== uid) return 'gone';
    if (owner.isOurs && (await removeIfEmpty(vcenter, folder, options))) return 'gone';
    if (await hasMachinesOf(vcenter, folder, uid, options)) return 'inUse';
    if (owner.isKept) return 'kept';
    const key = await vcenter.attributes.ensureKey(FOLDER_OWNER, options);
    const mark = owner.isOurs ? ownerText({ ...owner, isKept: true }) : '';
    await vcenter.attributes.set(folder, key, mark, options);
    return 'kept';
  } catch (error) {
    if (error instanceof FaultError && error.code === 'OBJECT_NOT_FOUND') return 'gone';
    throw error;
  }
}

/** Reads the folder right before each attempt: a new login may take long enough for a machine to be put into it. */
async function removeIfEmpty(
  vcenter: VcenterClient,
  folder: Ref<'Folder'>,
  options: ChangeOptions,
): Promise<boolean> {
  for (let isAgain = false; ; isAgain = true) {
    const { childEntity } = await vcenter.read(folder, ['childEntity'], options);
    if (childEntity?.length !== 0) return false; // a property that vCenter does not show is not an empty one
    try {
      const task = await vcenter.machines.unregisterFolder(folder, { ...options, resend: false });
      await vcenter.tasks.follow(task, { signal: options.signal });
      return true;
    } catch (error) {
      const isSignedOut = error instanceof FaultError && error.code === 'NOT_AUTHENTICATED';
      if (!isSignedOut || isAgain) throw error;
    }
  }
}

/** One of which vCenter does not tell what it is may be the group's. */
async function hasMachinesOf(
  vcenter: VcenterClient,
  folder: Ref<'Folder'>,
  uid: string,
  options: ChangeOptions,
): Promise<boolean> {
  const properties = ['config.instanceUuid', 'config.extraConfig'] as const;
  const machines = await vcenter.list('VirtualMachine', properties, { container: folder, ...options });
  return machines.some(
    (machine) => machine.properties['config.instanceUuid'] === undefined || marksIn(machine)?.uid === uid,
  );
}
