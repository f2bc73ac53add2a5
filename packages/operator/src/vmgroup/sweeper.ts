import type { JobOptions, Logger } from '@vmwright/runtime';
import { customValueOf, FaultError, isRef, type Ref } from '@vmwright/vsphere';
import { type SweepOptions, sweep } from '../sweep.ts';
import { removeStray } from './actions.ts';
import { ownerOf as folderOwner, releaseFolder } from './folder.ts';
import { folderKey } from './locator.ts';
import { FOLDER_OWNER, ownerIn, readMarks } from './marks.ts';
import { VmGroup } from './resource.ts';
import type { Root } from './root.ts';
import type { Site } from './site.ts';
import type { Sites } from './sites.ts';

export interface VmGroupSweeperOptions extends Omit<SweepOptions<Stray>, 'name' | 'kind' | 'outside'> {
  readonly sites: Sites;
  readonly cluster: string;
  readonly log: Logger;
}

/** A machine or a folder that may be nobody's. */
interface Stray {
  readonly site: Site;
  readonly root: Root;
  readonly ref: Ref<'VirtualMachine'> | Ref<'Folder'>;
  readonly name: string;
  readonly owner: { readonly uid: string; readonly namespace: string };
}

/** Removes machines and folders of vCenter that were made for a VmGroup that is gone. */
export function vmGroupSweeper({ sites, cluster, log, ...options }: VmGroupSweeperOptions): JobOptions {
  return sweep<Stray>({
    ...options,
    name: 'vmgroup',
    kind: VmGroup,
    outside: {
      list: async (signal) => {
        const found: Stray[] = [];
        for (const site of sites)
          for (const root of site.roots.open) {
            if (!root.isLive) continue;
            found.push(...machinesIn(site, root, cluster));
            // What is wrong with one vCenter is no reason to leave the others as they are.
            const folders = await foldersIn(site, root, cluster, signal).catch((error) => {
              log.warn(
                { vcenter: site.name, error: String(error) },
                'folders without a VmGroup could not be looked for',
              );
            });
            found.push(...(folders ?? []));
          }
        return found;
      },
      idOf: ({ site, ref }) => `${site.name}/${ref.value}`,
      ownerOf: ({ owner }) => owner,
      again: async (stray, signal) => {
        // Not by the inventory: since it was told it may have been let go of.
        const { site, ref } = stray;
        try {
          const owner = isRef(ref, 'Folder')
            ? await folderOwner(site.vcenter, ref, { signal })
            : await readMarks(site.vcenter, ref, { signal });
          return owner?.cluster === cluster ? { ...stray, owner } : undefined;
        } catch (error) {
          if (error instanceof FaultError && error.code === 'OBJECT_NOT_FOUND') return undefined;
          throw error;
        }
      },
      remove: async ({ site, root, ref, name, owner }, scope) => {
        if (isRef(ref, 'Folder'))
          await site.alone(folderKey(root, name), () => releaseFolder(site.vcenter, ref, owner.uid, scope));
        else await removeStray(site, ref, scope);
      },
    },
  });
}

function machinesIn(site: Site, root: Root, cluster: string): readonly Stray[] {
  return root
    .machines()
    .filter(({ marks }) => marks.cluster === cluster)
    .map(({ ref, marks: owner }) => ({ site, root, ref, owner, name: owner.name }));
}

/** vCenter does not tell when marks of folders change, so they are asked for. */
async function foldersIn(
  site: Site,
  root: Root,
  cluster: string,
  signal: AbortSignal,
): Promise<readonly Stray[]> {
  const key = await site.vcenter.attributes.find(FOLDER_OWNER, { signal });
  if (key === undefined) return [];
  const paths = ['customValue', 'name'] as const;
  const folders = await site.vcenter.list('Folder', paths, { container: root.folder, signal });
  return folders.flatMap(({ ref, properties: { customValue, name = '' } }) => {
    const owner = ownerIn(customValueOf(customValue, key));
    return owner?.cluster === cluster ? { site, root, ref, owner, name } : [];
  });
}
