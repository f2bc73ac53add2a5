import type { Logger } from '@vmwright/runtime';
import { customValueOf, FaultError, isRef, NotFoundError, type Ref } from '@vmwright/vsphere';
import type { ExternalResources, Owner } from '../gc/external.ts';
import { removeStray } from './actions.ts';
import { ownerOf as folderOwner, releaseFolder } from './folder.ts';
import { folderKey } from './locator.ts';
import { FOLDER_OWNER, marksIn, ownerIn, readMarks } from './marks.ts';
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
}

const MACHINE = ['name', 'config.instanceUuid', 'config.extraConfig'] as const;

/**
 * The machines and folders of all vCenters that carry this cluster's ownership labels.
 *
 * Which folders to look into is derived from vCenter itself, so that a restarted operator finds orphans where no group is
 * left: the watched folders, the default folder of each vCenter, and all folders that are marked as a group's.
 */
export function vcenterResources(sites: Sites, cluster: string, log: Logger): ExternalResources<Stray> {
  const defaults = new DefaultFolders();
  return {
    list: async (signal) => {
      const found: Stray[] = [];
      for (const site of sites) {
        // A vCenter that cannot be listed does not keep the others from being listed.
        const strays = await straysOn(site, cluster, defaults, signal).catch((error) => {
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
    refetch: async (stray, signal) => {
      const { site, ref } = stray;
      try {
        const owner = isRef(ref, 'Folder')
          ? await folderOwner(site.vcenter, ref, { signal })
          : await readMarks(site.vcenter, ref, { signal });
        return owner?.cluster === cluster ? { ...stray, owner: { name: '', ...owner } } : undefined;
      } catch (error) {
        if (error instanceof FaultError && error.code === 'OBJECT_NOT_FOUND') return undefined;
        throw error;
      }
    },
    remove: async ({ site, ref, name, parent, owner }, scope) => {
      if (!isRef(ref, 'Folder')) return removeStray(site, ref, scope);
      const release = () => releaseFolder(site.vcenter, ref, owner.uid, scope);
      await (parent === undefined ? release() : site.alone(folderKey({ folder: parent }, name), release));
    },
  };
}

async function straysOn(
  site: Site,
  cluster: string,
  defaults: DefaultFolders,
  signal: AbortSignal,
): Promise<readonly Stray[]> {
  const folders = await foldersOn(site, cluster, signal);
  const watched = site.roots.open.filter(({ isLive }) => isLive);
  const watchedFolders = new Set(watched.map(({ folder }) => folder.value));
  const strays = new Map<string, Stray>();
  const add = (stray: Stray) => void strays.set(stray.ref.value, stray);
  for (const root of watched)
    for (const { ref, marks, properties } of root.machines())
      if (marks.cluster === cluster) add({ site, ref, owner: marks, name: properties.name ?? '' });
  const isUnwatched = (folder: Ref<'Folder'> | undefined): folder is Ref<'Folder'> =>
    folder !== undefined && !watchedFolders.has(folder.value);
  const unwatched = folders.filter(({ parent }) => isUnwatched(parent)).map(({ ref }) => ref);
  const byDefault = await defaults.of(site, signal);
  for (const container of [...unwatched, byDefault])
    if (isUnwatched(container))
      try {
        for (const stray of await machinesIn(site, container, cluster, signal)) add(stray);
      } catch (error) {
        if (!isMissing(error)) throw error;
        if (container === byDefault) defaults.forget(site); // it is looked up again in the next run
      }
  for (const folder of folders) add(folder);
  return [...strays.values()];
}

async function machinesIn(
  site: Site,
  container: Ref<'Folder'>,
  cluster: string,
  signal: AbortSignal,
): Promise<readonly Stray[]> {
  const machines = await site.vcenter.list('VirtualMachine', MACHINE, { container, signal });
  return machines.flatMap((machine) => {
    const marks = marksIn(machine);
    if (marks?.cluster !== cluster) return [];
    return { site, ref: machine.ref, owner: marks, name: machine.properties.name ?? '' };
  });
}

interface StrayFolder extends Stray {
  readonly ref: Ref<'Folder'>;
}

/** vCenter does not notify of changes of custom attributes, so they are read each time. */
async function foldersOn(site: Site, cluster: string, signal: AbortSignal): Promise<readonly StrayFolder[]> {
  const key = await site.vcenter.attributes.find(FOLDER_OWNER, { signal });
  if (key === undefined) return [];
  const paths = ['customValue', 'name', 'parent', 'childEntity'] as const;
  const folders = await site.vcenter.list('Folder', paths, { signal });
  return folders.flatMap(({ ref, properties: { customValue, name = '', parent, childEntity } }) => {
    const owner = ownerIn(customValueOf(customValue, key));
    if (owner?.cluster !== cluster) return [];
    const { isKept = false } = owner;
    // What others have in a folder is no orphan.
    if (isKept && childEntity?.length !== 0) return [];
    return {
      isKept,
      site,
      ref,
      owner: { ...owner, name: '' },
      name,
      parent: isRef(parent, 'Folder') ? parent : undefined,
    };
  });
}

/** The folder of each vCenter that groups are in unless they name another, looked up once. */
class DefaultFolders {
  readonly #folders = new Map<Site, Ref<'Folder'>>();

  /** @returns undefined where no group has been there yet */
  async of(site: Site, signal: AbortSignal): Promise<Ref<'Folder'> | undefined> {
    const known = this.#folders.get(site);
    if (known !== undefined) return known;
    const { datacenter: name, folder = DEFAULT_FOLDER } = site.placementOf();
    const { lookup } = site.vcenter;
    try {
      const datacenter = await lookup.datacenter(name, { signal });
      const found = await lookup.folder(datacenter, pathIn(datacenter.name, folder), { signal });
      this.#folders.set(site, found);
      return found;
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  forget(site: Site): void {
    this.#folders.delete(site);
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
