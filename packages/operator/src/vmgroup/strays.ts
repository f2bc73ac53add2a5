import type { Logger } from '@vmwright/runtime';
import {
  customValueOf,
  ensureDestroyed,
  FaultError,
  isRef,
  NotFoundError,
  type Ref,
} from '@vmwright/vsphere';
import type { ExternalResources, Owner } from '../gc/external.ts';
import { ownerOf as folderOwner, releaseFolder } from './folder.ts';
import { folderKey } from './locator.ts';
import { certainMarksIn, FOLDER_OWNER, marksIn, ownerIn } from './marks.ts';
import { folderName } from './names.ts';
import type { Marked } from './root.ts';
import { DEFAULT_FOLDER } from './roots.ts';
import type { Site } from './site.ts';
import type { Sites } from './sites.ts';

/** A machine or a folder with our ownership labels, which may have no VmGroup. */
export interface Stray {
  readonly site: Site;
  readonly ref: Ref<'VirtualMachine'> | Ref<'Folder'>;
  readonly name: string;
  /** The folder that a folder is in. */
  readonly parent?: Ref<'Folder'> | undefined;
  readonly owner: Owner;
  /** A folder that stayed when its group was deleted, which is recorded on it. */
  readonly isKept?: boolean;
  /** A machine that people moved out of its group's folder, or turned into a template. */
  readonly isHeld?: boolean;
}

const MACHINE = [
  ...(['name', 'parent', 'config.template', 'config.instanceUuid', 'config.extraConfig'] as const),
];

/**
 * The machines and folders of all vCenters that carry this cluster's ownership labels.
 *
 * Which folders to look into is derived from vCenter itself, so that a restarted operator finds orphans where no group is
 * left: the watched folders, the default folder of each vCenter, and all folders that are marked as a group's.
 */
export function vcenterResources(sites: Sites, cluster: string, log: Logger): ExternalResources<Stray> {
  const roots = new KnownRoots();
  return {
    list: async (signal) => {
      const found: Stray[] = [];
      for (const site of sites) {
        // A vCenter that cannot be listed does not keep the others from being listed.
        const strays = await straysOn(site, cluster, roots, signal).catch((error) => {
          signal.throwIfAborted();
          log.warn({ vcenter: site.name, error: String(error) }, 'Listing machines without a VmGroup failed');
        });
        found.push(...(strays ?? []));
      }
      return found;
    },
    idOf: ({ site, ref }) => `${site.name}/${ref.value}`,
    describe: ({ ref, name }) => `${isRef(ref, 'Folder') ? 'folder' : 'machine'} '${name}'`,
    createdAt: () => undefined,
    ownerOf: ({ owner }) => owner,
    outlivedOwner: ({ isKept = false }) => isKept,
    isHeld: ({ isHeld = false }) => isHeld,
    refetch: async (stray, signal) => {
      const { site, ref } = stray;
      try {
        if (!isRef(ref, 'Folder')) return await refetchMachine(site, ref, cluster, signal);
        const owner = await folderOwner(site.vcenter, ref, { signal });
        return owner?.cluster === cluster ? { ...stray, owner: { name: '', ...owner } } : undefined;
      } catch (error) {
        if (error instanceof FaultError && error.code === 'OBJECT_NOT_FOUND') return undefined;
        throw error;
      }
    },
    remove: async ({ site, ref, name, parent, owner }, scope) => {
      if (!isRef(ref, 'Folder')) {
        await ensureDestroyed(site.vcenter, ref, scope);
        return;
      }
      const release = () => releaseFolder(site.vcenter, ref, owner.uid, scope);
      await (parent === undefined ? release() : site.alone(folderKey({ folder: parent }, name), release));
    },
  };
}

async function straysOn(
  site: Site,
  cluster: string,
  roots: KnownRoots,
  signal: AbortSignal,
): Promise<readonly Stray[]> {
  const { marked: folders, names } = await foldersOn(site, cluster, signal);
  const watched = site.roots.open.filter(({ isLive }) => isLive);
  const watchedFolders = new Set(watched.map(({ folder }) => folder.value));
  const strays = new Map<string, Stray>();
  const add = (stray: Stray) => void strays.set(stray.ref.value, stray);
  for (const root of watched)
    for (const machine of root.machines())
      if (machine.marks.cluster === cluster) add(strayFrom(site, machine, names));
  const isUnwatched = (folder: Ref<'Folder'> | undefined): folder is Ref<'Folder'> =>
    folder !== undefined && !watchedFolders.has(folder.value);
  const unwatched = folders.filter(({ parent }) => isUnwatched(parent)).map(({ ref }) => ref);
  const known = await roots.of(site, signal);
  for (const container of [...unwatched, ...known].filter(isUnwatched))
    try {
      for (const stray of await machinesIn(site, container, cluster, names, signal)) add(stray);
    } catch (error) {
      if (!isMissing(error)) throw error;
      roots.forget(site, container);
    }
  for (const folder of folders) if (!folder.isInUse) add(folder);
  return [...strays.values()];
}

async function machinesIn(
  site: Site,
  container: Ref<'Folder'>,
  cluster: string,
  names: FolderNames,
  signal: AbortSignal,
): Promise<readonly Stray[]> {
  const machines = await site.vcenter.list('VirtualMachine', MACHINE, { container, signal });
  return machines.flatMap((machine) => {
    const marks = marksIn(machine);
    return marks?.cluster === cluster ? strayFrom(site, { ...machine, marks }, names) : [];
  });
}

function strayFrom(site: Site, machine: Marked, names: FolderNames): Stray {
  const { ref, marks, properties } = machine;
  return { site, ref, owner: marks, name: properties.name ?? '', isHeld: isTakenOver(machine, names) };
}

/**
 * Whether people took a machine over: it is a template, or not in a folder of its group's name. The same holds where
 * vCenter does not tell what folder it is in.
 */
export function isTakenOver({ marks, properties }: Omit<Marked, 'ref'>, names: FolderNames): boolean {
  const { parent, 'config.template': isTemplate = false } = properties;
  return isTemplate || names.get(parent?.value ?? '') !== folderName({ metadata: marks });
}

async function refetchMachine(
  site: Site,
  ref: Ref<'VirtualMachine'>,
  cluster: string,
  signal: AbortSignal,
): Promise<Stray | undefined> {
  const { vcenter } = site;
  const machine = { ref, properties: await vcenter.read(ref, MACHINE, { signal }) };
  const marks = certainMarksIn(machine);
  if (marks?.cluster !== cluster) return undefined;
  const { parent } = machine.properties;
  const { name } = isRef(parent, 'Folder') ? await vcenter.read(parent, ['name'], { signal }) : {};
  const names = new Map(parent && name !== undefined ? [[parent.value, name]] : []);
  return strayFrom(site, { ...machine, marks }, names);
}

/** Names of folders, by their references. */
type FolderNames = ReadonlyMap<string, string>;

interface MarkedFolder extends Stray {
  readonly ref: Ref<'Folder'>;
  /** Whether it stayed because others have something in it. A clone can still land in it. */
  readonly isInUse: boolean;
}

/** vCenter does not notify of changes of custom attributes, so they are read each time. */
async function foldersOn(site: Site, cluster: string, signal: AbortSignal): Promise<Folders> {
  const key = await site.vcenter.attributes.findKey(FOLDER_OWNER, { signal });
  if (key === undefined) return { marked: [], names: new Map() };
  const paths = ['customValue', 'name', 'parent', 'childEntity'] as const;
  const folders = await site.vcenter.list('Folder', paths, { signal });
  const names = new Map(folders.map(({ ref, properties: { name = '' } }) => [ref.value, name]));
  const marked = folders.flatMap(({ ref, properties: { customValue, name = '', parent, childEntity } }) => {
    const owner = ownerIn(customValueOf(customValue, key));
    if (owner?.cluster !== cluster) return [];
    const { isKept = false } = owner;
    return {
      isKept,
      // What others have in a folder is no orphan.
      isInUse: isKept && childEntity?.length !== 0,
      site,
      ref,
      owner: { ...owner, name: '' },
      name,
      parent: isRef(parent, 'Folder') ? parent : undefined,
    };
  });
  return { marked, names };
}

interface Folders {
  /** Those that are marked as a group's. */
  readonly marked: readonly MarkedFolder[];
  /** Of all folders. */
  readonly names: FolderNames;
}

/** Folders that are remembered for each vCenter; of more, those that were watched least recently are dropped. */
const MOST_ROOTS = 100;

/**
 * The folders that groups have their folders in: the default folder of each vCenter, and those that were watched since the
 * start. A clone can land in one that is not watched any more, since its last group is gone.
 */
class KnownRoots {
  readonly #defaults = new Map<Site, Ref<'Folder'>>();
  readonly #watched = new Map<Site, Map<string, Ref<'Folder'>>>();

  async of(site: Site, signal: AbortSignal): Promise<readonly Ref<'Folder'>[]> {
    const watched = this.#watched.get(site) ?? new Map<string, Ref<'Folder'>>();
    this.#watched.set(site, watched);
    for (const { folder } of site.roots.open) {
      watched.delete(folder.value);
      watched.set(folder.value, folder);
    }
    for (const oldest of watched.keys())
      if (watched.size > MOST_ROOTS) watched.delete(oldest);
      else break;
    const byDefault = this.#defaults.get(site) ?? (await defaultFolderOf(site, signal));
    if (byDefault === undefined) return [...watched.values()];
    this.#defaults.set(site, byDefault);
    return [...new Map(watched).set(byDefault.value, byDefault).values()];
  }

  /** The folder is gone. The default folder is looked up again in the next run. */
  forget(site: Site, { value }: Ref<'Folder'>): void {
    this.#watched.get(site)?.delete(value);
    if (this.#defaults.get(site)?.value === value) this.#defaults.delete(site);
  }
}

/** @returns undefined where no group has been there yet */
async function defaultFolderOf(site: Site, signal: AbortSignal): Promise<Ref<'Folder'> | undefined> {
  const { datacenter: name, folder = DEFAULT_FOLDER } = site.placementOf();
  const { lookup } = site.vcenter;
  try {
    const datacenter = await lookup.datacenter(name, { signal });
    return await lookup.folder(datacenter, pathIn(datacenter.name, folder), { signal });
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof NotFoundError || (error instanceof FaultError && error.code === 'OBJECT_NOT_FOUND');
}

/** A whole path, since a name alone is looked for in all of the datacenter. */
function pathIn(datacenter: string, folder: string): string {
  const prefix = `/${datacenter}/vm/`;
  return folder.startsWith(prefix) ? folder : `${prefix}${folder.replace(/^\/+/, '')}`;
}
