import { type ChangeOptions, customValueOf, FaultError, type Ref, type Vcenter } from '@vmwright/vsphere';
import { FOLDER_OWNER, type FolderOwner, marksIn, ownerIn, ownerText } from './marks.ts';
import { makeFolder, type Root } from './root.ts';
import { GroupError } from './trouble.ts';

export interface Claim {
  readonly vcenter: Vcenter;
  readonly root: Root;
  readonly name: string;
  readonly owner: FolderOwner;
  /** Whether there is, or may be, a group of ours with this UID. */
  readonly lives: (uid: string) => Promise<boolean>;
}

/**
 * The folder of a group's machines, made where it is missing, and marked as the group's. Names of groups can run
 * together (`a-b/c` and `a/b-c`), so a folder may be another's.
 * @throws GroupError where it is
 */
export async function claimFolder(
  { vcenter, root, name, owner, lives }: Claim,
  options: ChangeOptions,
): Promise<Ref<'Folder'>> {
  const folder = root.child(name) ?? (await makeFolder(vcenter, root.folder, name, options));
  const theirs = await ownerOf(vcenter, folder, options);
  if (theirs?.uid === owner.uid) return folder;
  if (theirs !== undefined && (theirs.cluster !== owner.cluster || (await lives(theirs.uid)))) {
    const whose = theirs.cluster === owner.cluster ? 'another VmGroup' : 'a VmGroup of another cluster';
    throw new GroupError({
      reason: 'FolderTaken',
      message: `the folder '${name}' belongs to ${whose} (${theirs.uid}); name this group otherwise, or give it another folder in spec.placement.folder`,
    });
  }
  await markFolder(vcenter, folder, ownerText(owner), options);
  return folder;
}

export async function ownerOf(
  vcenter: Vcenter,
  folder: Ref<'Folder'>,
  options: ChangeOptions,
): Promise<FolderOwner | undefined> {
  const key = await vcenter.attributes.key(FOLDER_OWNER, options);
  const { customValue } = await vcenter.read(folder, ['customValue'], options);
  return ownerIn(customValueOf(customValue, key));
}

async function markFolder(
  vcenter: Vcenter,
  folder: Ref<'Folder'>,
  value: string,
  options: ChangeOptions,
): Promise<void> {
  const key = await vcenter.attributes.key(FOLDER_OWNER, options);
  await vcenter.attributes.set(folder, key, value, options);
}

/**
 * Removes a group's folder, or takes the mark off where there is something in it that is not the group's, which keeps it.
 * @returns false while there are machines of the group in it
 */
export async function releaseFolder(
  vcenter: Vcenter,
  folder: Ref<'Folder'>,
  owner: FolderOwner,
  options: ChangeOptions,
): Promise<boolean> {
  try {
    const theirs = await ownerOf(vcenter, folder, options);
    if (theirs?.uid !== owner.uid) return true;
    // Read at the last moment: with a folder goes all that is in it.
    const { childEntity } = await vcenter.read(folder, ['childEntity'], options);
    if ((childEntity?.length ?? 0) === 0) {
      await vcenter.tasks.follow(await vcenter.machines.destroy(folder, options));
      return true;
    }
    const properties = ['config.instanceUuid', 'config.extraConfig'] as const;
    const machines = await vcenter.list('VirtualMachine', properties, { container: folder, ...options });
    if (machines.some((machine) => marksIn(machine)?.uid === owner.uid)) return false;
    await markFolder(vcenter, folder, '', options);
    return true;
  } catch (error) {
    if (error instanceof FaultError && error.code === 'OBJECT_NOT_FOUND') return true;
    throw error;
  }
}
