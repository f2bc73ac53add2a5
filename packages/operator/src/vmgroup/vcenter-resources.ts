import type { Logger, Owner } from '@vmwright/runtime';
import {
  customValueOf,
  ensureDestroyed,
  FaultError,
  ignoreFaults,
  isRef,
  type MachineChange,
  NotFoundError,
  type Ref,
  type TaskRef,
} from '@vmwright/vsphere';
import type { AuditedResources } from '../garbage.ts';
import {
  FOLDER_OWNER,
  folderOwnerFrom,
  instanceUuid,
  knownOwnershipOf,
  ownershipOf,
} from '../vcenter/ownership.ts';
import { DEFAULT_FOLDER } from '../vcenter/placement.ts';
import type { VCenter } from '../vcenter/vcenter.ts';
import type { VCenterPool } from '../vcenter/vcenter-pool.ts';
import type { OwnedMachine } from '../vcenter/watched-folder.ts';
import { folderOwnerOf, releaseFolder } from './folders.ts';
import { folderName, type OwnerScope, provisionalOwnerFrom } from './identity.ts';
import { folderLock } from './placement.ts';

/** A machine or a folder with this cluster's ownership labels. Its VmGroup may not exist any more. */
export interface OwnedResource {
  readonly vcenter: VCenter;
  readonly ref: Ref<'VirtualMachine'> | Ref<'Folder'>;
  readonly name: string;
  /** Parent of a folder. */
  readonly parent?: Ref<'Folder'> | undefined;
  readonly owner: Owner;
  /** Instance UUID of a machine. */
  readonly instanceUuid?: string;
  /** Whether the custom attribute of this folder says that the folder was kept when its group was deleted. */
  readonly isKept?: boolean;
  /** Whether this is a machine that may have to be powered off before it is destroyed. */
  readonly isOn?: boolean;
  /** Whether this is a machine that people moved out of its group's folder, or turned into a template. */
  readonly isHeld?: boolean;
}

const MACHINE = [
  ...(['name', 'parent', 'runtime.powerState', 'config.template'] as const),
  ...(['config.instanceUuid', 'config.extraConfig'] as const),
];

/**
 * The machines and folders with this cluster's ownership labels, in all vCenters.
 *
 * Searches the watched folders, the default folder of each vCenter, and all folders that have an owner. vCenter itself
 * stores the owners. So a restarted operator also finds orphans in folders that no group uses any more.
 */
export function vcenterResources(
  vcenters: VCenterPool,
  scope: OwnerScope,
  log: Logger,
): AuditedResources<OwnedResource> {
  const { cluster } = scope;
  const searched = new SearchedFolders();
  return {
    list: async (signal) => {
      const resources: OwnedResource[] = [];
      for (const vcenter of vcenters) {
        // If one vCenter cannot be listed, the others are still listed.
        const listed = await listResources(vcenter, scope, searched, signal).catch((error) => {
          signal.throwIfAborted();
          log.warn(
            { vcenter: vcenter.name, error: String(error) },
            'Listing owned machines and folders failed',
          );
        });
        resources.push(...(listed ?? []));
      }
      return resources;
    },
    idOf: ({ vcenter, ref }) => `${vcenter.name}/${ref.value}`,
    auditOf: ({ ref, name, instanceUuid: uuid }) => ({
      resource: ref.type,
      machine: uuid ?? ref.value,
      machineName: name,
    }),
    describe: ({ ref, name }) => `${isRef(ref, 'Folder') ? 'folder' : 'machine'} '${name}'`,
    createdAt: () => undefined,
    ownerOf: ({ owner }) => owner,
    outlivedOwner: ({ isKept = false }) => isKept,
    isHeld: ({ isHeld = false }) => isHeld,
    refetch: async (resource, signal) => {
      const { vcenter, ref } = resource;
      return ignoreFaults(['OBJECT_NOT_FOUND'], async () => {
        if (!isRef(ref, 'Folder')) return refetchMachine(vcenter, ref, cluster, signal);
        const owner = await folderOwnerOf(vcenter.client, ref, scope, { signal });
        return owner?.cluster === cluster ? { ...resource, owner: { name: '', ...owner } } : undefined;
      });
    },
    remove: async ({ vcenter, ref, name, parent, owner, isOn }, { onChange, ...fence }) => {
      const onTask = ({ value }: TaskRef, change: MachineChange = 'destroy') =>
        onChange({ type: change === 'destroy' ? 'delete' : 'stop', task: value });
      const options = { ...fence, onTask };
      if (!isRef(ref, 'Folder'))
        return void (await ensureDestroyed(vcenter.client, ref, { ...options, powerOff: isOn }));
      const release = () => releaseFolder(vcenter.client, ref, owner.uid, scope, options);
      await (parent === undefined ? release() : vcenter.withLock(folderLock(parent, name), release));
    },
  };
}

async function listResources(
  vcenter: VCenter,
  scope: OwnerScope,
  searched: SearchedFolders,
  signal: AbortSignal,
): Promise<readonly OwnedResource[]> {
  const { cluster } = scope;
  const { owned: folders, names } = await listFolders(vcenter, scope, signal);
  const watched = vcenter.folders.open.filter(({ isLive }) => isLive);
  const watchedRefs = new Set(watched.map(({ ref }) => ref.value));
  const resources = new Map<string, OwnedResource>();
  const add = (resource: OwnedResource) => void resources.set(resource.ref.value, resource);
  for (const folder of watched)
    for (const machine of folder.machines())
      if (machine.ownership.cluster === cluster) add(resourceFrom(vcenter, machine, names));
  const isUnwatched = (folder: Ref<'Folder'> | undefined): folder is Ref<'Folder'> =>
    folder !== undefined && !watchedRefs.has(folder.value);
  const unwatched = folders.filter(({ parent }) => isUnwatched(parent)).map(({ ref }) => ref);
  const known = await searched.of(vcenter, signal);
  for (const container of [...unwatched, ...known].filter(isUnwatched))
    try {
      for (const machine of await machinesIn(vcenter, container, cluster, names, signal)) add(machine);
    } catch (error) {
      if (!isMissing(error)) throw error;
      searched.forget(vcenter, container);
    }
  for (const folder of folders) if (!folder.isInUse) add(folder);
  return [...resources.values()];
}

async function machinesIn(
  vcenter: VCenter,
  container: Ref<'Folder'>,
  cluster: string,
  names: FolderNames,
  signal: AbortSignal,
): Promise<readonly OwnedResource[]> {
  const machines = await vcenter.client.list('VirtualMachine', MACHINE, { container, signal });
  return machines.flatMap((machine) => {
    const ownership = ownershipOf(machine);
    return ownership?.cluster === cluster ? resourceFrom(vcenter, { ...machine, ownership }, names) : [];
  });
}

function resourceFrom(vcenter: VCenter, machine: OwnedMachine, names: FolderNames): OwnedResource {
  const { ref, ownership, properties } = machine;
  const isHeld = isMachineTakenOver(machine, names);
  const isOn = properties['runtime.powerState'] !== 'poweredOff';
  const uuid = instanceUuid(ownership.uid, ownership.slot);
  return { vcenter, ref, owner: ownership, name: properties.name ?? '', instanceUuid: uuid, isHeld, isOn };
}

/**
 * Whether people took a machine over: they turned it into a template, or moved it to a folder with another name than
 * its group's folder. Also true if vCenter does not show the folder of the machine.
 */
export function isMachineTakenOver(
  { ownership, properties }: Omit<OwnedMachine, 'ref'>,
  names: FolderNames,
): boolean {
  const { parent, 'config.template': isTemplate = false } = properties;
  return isTemplate || names.get(parent?.value ?? '') !== folderName({ metadata: ownership });
}

async function refetchMachine(
  vcenter: VCenter,
  ref: Ref<'VirtualMachine'>,
  cluster: string,
  signal: AbortSignal,
): Promise<OwnedResource | undefined> {
  const { client } = vcenter;
  const machine = { ref, properties: await client.read(ref, MACHINE, { signal }) };
  const ownership = knownOwnershipOf(machine);
  if (ownership?.cluster !== cluster) return undefined;
  const { parent } = machine.properties;
  const { name } = isRef(parent, 'Folder') ? await client.read(parent, ['name'], { signal }) : {};
  const names = new Map(parent && name !== undefined ? [[parent.value, name]] : []);
  return resourceFrom(vcenter, { ...machine, ownership }, names);
}

/** Names of folders by the value of their reference. */
type FolderNames = ReadonlyMap<string, string>;

interface OwnedFolder extends OwnedResource {
  readonly ref: Ref<'Folder'>;
  /**
   * Whether the folder was kept when its group was deleted, and is not empty. Such a folder is not listed. Its machines
   * are listed, because a delayed clone can still appear in it.
   */
  readonly isInUse: boolean;
}

interface Folders {
  readonly owned: readonly OwnedFolder[];
  /** Names of all folders of the vCenter, including folders that no group owns; empty if no folder was ever claimed. */
  readonly names: FolderNames;
}

/**
 * Lists the folders and their owners. Reads them each time, because vCenter does not report changes of custom
 * attributes.
 */
async function listFolders(vcenter: VCenter, scope: OwnerScope, signal: AbortSignal): Promise<Folders> {
  const { client } = vcenter;
  const key = await client.attributes.findKey(FOLDER_OWNER, { signal });
  if (key === undefined) return { owned: [], names: new Map() };
  const paths = ['customValue', 'name', 'parent', 'childEntity'] as const;
  const folders = await client.list('Folder', paths, { signal });
  const names = new Map(folders.map(({ ref, properties: { name = '' } }) => [ref.value, name]));
  const owned = folders.flatMap(({ ref, properties: { customValue, name = '', parent, childEntity } }) => {
    const owner = folderOwnerFrom(customValueOf(customValue, key)) ?? provisionalOwnerFrom(name, scope);
    if (owner?.cluster !== scope.cluster) return [];
    const { isKept = false } = owner;
    return {
      isKept,
      isInUse: isKept && childEntity?.length !== 0,
      vcenter,
      ref,
      owner: { ...owner, name: '' },
      name,
      parent: isRef(parent, 'Folder') ? parent : undefined,
    };
  });
  return { owned, names };
}

/** Maximum number of folders per vCenter that are remembered. The least recently watched are dropped. */
const MAX_SEARCHED_FOLDERS = 100;

/**
 * The folders that contain groups' folders: the default folder of each vCenter, and the folders that were watched since
 * the start of the operator. A folder stays in this list after its last group is gone, because a delayed clone can
 * still appear in it.
 */
class SearchedFolders {
  readonly #defaults = new Map<VCenter, Ref<'Folder'>>();
  readonly #watched = new Map<VCenter, Map<string, Ref<'Folder'>>>();

  async of(vcenter: VCenter, signal: AbortSignal): Promise<readonly Ref<'Folder'>[]> {
    const watched = this.#watched.get(vcenter) ?? new Map<string, Ref<'Folder'>>();
    this.#watched.set(vcenter, watched);
    for (const { ref } of vcenter.folders.open) {
      watched.delete(ref.value);
      watched.set(ref.value, ref);
    }
    for (const oldest of watched.keys())
      if (watched.size > MAX_SEARCHED_FOLDERS) watched.delete(oldest);
      else break;
    const byDefault = this.#defaults.get(vcenter) ?? (await defaultFolderOf(vcenter, signal));
    if (byDefault === undefined) return [...watched.values()];
    this.#defaults.set(vcenter, byDefault);
    return [...new Map(watched).set(byDefault.value, byDefault).values()];
  }

  /** Drops a folder that no longer exists. A dropped default folder is looked up again by the next `of`. */
  forget(vcenter: VCenter, { value }: Ref<'Folder'>): void {
    this.#watched.get(vcenter)?.delete(value);
    if (this.#defaults.get(vcenter)?.value === value) this.#defaults.delete(vcenter);
  }
}

/** Returns the default folder of a vCenter; undefined if it does not exist, because no group was placed there yet. */
async function defaultFolderOf(vcenter: VCenter, signal: AbortSignal): Promise<Ref<'Folder'> | undefined> {
  const { datacenter: name, folder = DEFAULT_FOLDER } = vcenter.withDefaults();
  const { lookup } = vcenter.client;
  try {
    const datacenter = await lookup.datacenter(name, { signal });
    return await lookup.folder(datacenter, absolutePath(datacenter.name, folder), { signal });
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof NotFoundError || (error instanceof FaultError && error.code === 'OBJECT_NOT_FOUND');
}

/** Returns an absolute path, because a name alone would be searched in the whole datacenter. */
function absolutePath(datacenter: string, folder: string): string {
  const prefix = `/${datacenter}/vm/`;
  return folder.startsWith(prefix) ? folder : `${prefix}${folder.replace(/^\/+/, '')}`;
}
