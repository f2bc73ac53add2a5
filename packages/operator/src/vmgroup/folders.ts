import {
  type ChangeOptions,
  createFolder,
  customValueOf,
  FaultError,
  isRef,
  type Ref,
  type TaskRef,
  type VcenterClient,
} from '@vmwright/vsphere';
import { ReportedError } from '../vcenter/errors.ts';
import {
  FOLDER_OWNER,
  type FolderOwner,
  folderOwnerFrom,
  folderOwnerText,
  ownershipOf,
} from '../vcenter/ownership.ts';
import type { WatchedFolder } from '../vcenter/watched-folder.ts';
import { type OwnerScope, provisionalFolderName, provisionalOwnerFrom } from './identity.ts';

/** The group that claims a folder. */
export interface Claimant extends Omit<FolderOwner, 'isOurs'> {
  /**
   * Whether the namespace has a group with this UID, in this cluster. Returns true if the operator cannot check this.
   */
  readonly groupExists: (uid: string, namespace: string) => Promise<boolean>;
}

/**
 * Returns the folder of a group's machines. Creates it if it is missing, and records the group as its owner.
 * @throws ReportedError if another group owns the folder; for example, `a-b/c` and `a/b-c` have the same folder name
 */
export async function claimFolder(
  client: VcenterClient,
  watched: WatchedFolder,
  name: string,
  { groupExists, ...claimant }: Claimant,
  options: ChangeOptions,
): Promise<Ref<'Folder'>> {
  // The custom attribute records the owner of a folder. So it must exist before the operator creates a folder.
  const key = await client.attributes.ensureKey(FOLDER_OWNER, options);
  const folder =
    watched.child(name) ?? (await createOwnedFolder(client, watched.ref, name, claimant, options));
  await releaseLeftover(client, watched, folder, claimant, options);
  const { customValue } = await client.read(folder, ['customValue'], options);
  const owner = folderOwnerFrom(customValueOf(customValue, key));
  if (owner?.uid === claimant.uid) return folder;
  const isTaken =
    owner !== undefined &&
    (owner.cluster !== claimant.cluster || (await groupExists(owner.uid, owner.namespace)));
  if (isTaken) {
    const holder =
      owner.cluster === claimant.cluster ? groupFrom(name, owner.namespace) : 'a VmGroup of another cluster';
    throw new ReportedError({
      reason: 'FolderTaken',
      message: `the folder '${name}' belongs to ${holder}; delete this group and create it under another name or with another spec.placement.folder`,
    });
  }
  // The operator records the owner of a folder before it gives the folder this final name. So a folder with this name
  // but without an owner was created by people.
  const isOurs = owner?.isOurs ?? false;
  await client.attributes.set(folder, key, folderOwnerText({ ...claimant, isOurs }), options);
  return folder;
}

/**
 * Creates a group's folder under a provisional name, records its owner, and renames it. If the operator stops before it
 * has recorded the owner, the provisional name shows that the operator created the folder.
 * @returns the folder with the final name; it may be an existing folder of another group
 */
async function createOwnedFolder(
  client: VcenterClient,
  parent: Ref<'Folder'>,
  name: string,
  owner: Omit<FolderOwner, 'isOurs'>,
  options: ChangeOptions,
): Promise<Ref<'Folder'>> {
  const { folder } = await createFolder(client, parent, provisionalFolderName(owner), options);
  const key = await client.attributes.ensureKey(FOLDER_OWNER, options);
  await client.attributes.set(folder, key, folderOwnerText({ ...owner, isOurs: true }), options);
  try {
    await client.tasks.follow(await client.machines.renameFolder(folder, name, options), {
      signal: options.signal,
    });
    return folder;
  } catch (error) {
    if (!(error instanceof FaultError)) throw error;
    const existing = await client.lookup.child(parent, name, options);
    if (!isRef(existing, 'Folder')) throw error;
    if (existing.value !== folder.value)
      await releaseFolder(client, folder, owner.uid, scopeOf(owner), options);
    return existing;
  }
}

/** Removes the folder with the provisional name that remains if the create request was executed twice. */
async function releaseLeftover(
  client: VcenterClient,
  watched: WatchedFolder,
  claimed: Ref<'Folder'>,
  owner: Omit<FolderOwner, 'isOurs'>,
  options: ChangeOptions,
): Promise<void> {
  const leftover = watched.child(provisionalFolderName(owner));
  if (leftover === undefined || leftover.value === claimed.value) return;
  await releaseFolder(client, leftover, owner.uid, scopeOf(owner), options);
}

function scopeOf({ cluster, namespace }: Omit<FolderOwner, 'isOurs'>): OwnerScope {
  return { cluster, namespaces: [namespace] };
}

/** Returns the group that a folder `<namespace>-<name>` belongs to, for a message. */
function groupFrom(folder: string, namespace: string): string {
  const prefix = `${namespace}-`;
  if (!folder.startsWith(prefix)) return 'a VmGroup of another namespace'; // the folder was renamed
  return `the VmGroup '${folder.slice(prefix.length)}' in the namespace '${namespace}'`;
}

/** Reads the owner of a folder from its custom attribute or, if the attribute is not set, from its provisional name. */
export async function folderOwnerOf(
  client: VcenterClient,
  folder: Ref<'Folder'>,
  scope: OwnerScope,
  options: ChangeOptions,
): Promise<FolderOwner | undefined> {
  const key = await client.attributes.findKey(FOLDER_OWNER, options);
  if (key === undefined) return undefined;
  const { customValue, name = '' } = await client.read(folder, ['customValue', 'name'], options);
  return folderOwnerFrom(customValueOf(customValue, key)) ?? provisionalOwnerFrom(name, scope);
}

/**
 * State of a group's folder after its release.
 * - `gone`: it does not exist, or another group owns it
 * - `inUse`: machines of the group are in it
 * - `kept`: it stays, because people created it or foreign objects are in it
 */
export type FolderRelease = 'gone' | 'inUse' | 'kept';

/** Options of `releaseFolder`. */
export interface ReleaseOptions extends ChangeOptions {
  /** Called with the vCenter task that removes the folder, right after it started. */
  readonly onTask?: (task: TaskRef) => void;
}

/**
 * Removes a group's folder if the operator created it and it is empty. Otherwise, the folder stays:
 * - If machines of the group are in it, nothing changes.
 * - If the operator created it, it is recorded as kept. Garbage collection removes it once it is empty.
 * - If people created it, the record of its owner is erased.
 *
 * A machine that is moved into the folder between check and removal is not deleted, only unregistered.
 */
export async function releaseFolder(
  client: VcenterClient,
  folder: Ref<'Folder'>,
  uid: string,
  scope: OwnerScope,
  options: ReleaseOptions,
): Promise<FolderRelease> {
  try {
    const owner = await folderOwnerOf(client, folder, scope, options);
    if (owner?.uid !== uid) return 'gone';
    if (owner.isOurs && (await removeIfEmpty(client, folder, options))) return 'gone';
    if (await hasMachinesOf(client, folder, uid, options)) return 'inUse';
    if (owner.isKept) return 'kept';
    const key = await client.attributes.ensureKey(FOLDER_OWNER, options);
    const value = owner.isOurs ? folderOwnerText({ ...owner, isKept: true }) : '';
    await client.attributes.set(folder, key, value, options);
    return 'kept';
  } catch (error) {
    if (error instanceof FaultError && error.code === 'OBJECT_NOT_FOUND') return 'gone';
    throw error;
  }
}

/**
 * Removes a folder if it is empty. If the session has expired, checks the folder again before the second attempt,
 * because a machine may have been moved into it.
 */
async function removeIfEmpty(
  client: VcenterClient,
  folder: Ref<'Folder'>,
  { onTask, ...options }: ReleaseOptions,
): Promise<boolean> {
  for (let isRetry = false; ; isRetry = true) {
    const { childEntity } = await client.read(folder, ['childEntity'], options);
    if (childEntity?.length !== 0) return false; // a missing property does not prove that the folder is empty
    try {
      const task = await client.machines.unregisterFolder(folder, { ...options, resend: false });
      onTask?.(task);
      await client.tasks.follow(task, { signal: options.signal });
      return true;
    } catch (error) {
      const isSignedOut = error instanceof FaultError && error.code === 'NOT_AUTHENTICATED';
      if (!isSignedOut || isRetry) throw error;
    }
  }
}

/**
 * Whether machines of the group are in the folder. A machine whose configuration is unknown counts as a machine of the
 * group.
 */
async function hasMachinesOf(
  client: VcenterClient,
  folder: Ref<'Folder'>,
  uid: string,
  options: ChangeOptions,
): Promise<boolean> {
  const properties = ['config.instanceUuid', 'config.extraConfig'] as const;
  const machines = await client.list('VirtualMachine', properties, { container: folder, ...options });
  return machines.some(
    (machine) => machine.properties['config.instanceUuid'] === undefined || ownershipOf(machine)?.uid === uid,
  );
}
