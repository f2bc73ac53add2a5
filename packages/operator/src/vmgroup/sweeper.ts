import type { JobOptions } from '@vmwright/runtime';
import { customValueOf, FaultError, type Ref } from '@vmwright/vsphere';
import { type SweepOptions, sweep } from '../sweep.ts';
import { removeStray } from './actions.ts';
import { ownerOf, releaseFolder } from './folder.ts';
import { FOLDER_OWNER, ownerIn } from './marks.ts';
import { VmGroup } from './resource.ts';
import type { Root } from './root.ts';
import type { Site } from './site.ts';
import type { Sites } from './sites.ts';

export interface VmGroupSweeperOptions extends Omit<SweepOptions<Stray>, 'name' | 'kind' | 'outside'> {
  readonly sites: Sites;
  readonly cluster: string;
}

/** A machine or a folder that may be nobody's. */
interface Stray {
  readonly site: Site;
  readonly root: Root;
  readonly ref: Ref<'VirtualMachine'> | Ref<'Folder'>;
  readonly owner: { readonly uid: string; readonly namespace: string };
}

/** Removes machines and folders of vCenter that were made for a VmGroup that is gone. */
export function vmGroupSweeper({ sites, cluster, ...options }: VmGroupSweeperOptions): JobOptions {
  return sweep<Stray>({
    ...options,
    name: 'vmgroup',
    kind: VmGroup,
    outside: {
      list: async (signal) => {
        const found: Stray[] = [];
        for (const site of sites)
          for (const root of site.roots)
            if (root.isLive)
              found.push(
                ...machinesIn(site, root, cluster),
                ...(await foldersIn(site, root, cluster, signal)),
              );
        return found;
      },
      idOf: ({ site, ref }) => `${site.name}/${ref.value}`,
      ownerOf: ({ owner }) => owner,
      again: async (stray, signal) => {
        const { site, root, ref, owner } = stray;
        if (ref.type === 'VirtualMachine')
          return machinesIn(site, root, cluster).find((each) => each.ref.value === ref.value);
        try {
          return (await ownerOf(site.vcenter, ref, { signal }))?.uid === owner.uid ? stray : undefined;
        } catch (error) {
          if (error instanceof FaultError && error.code === 'OBJECT_NOT_FOUND') return undefined;
          throw error;
        }
      },
      remove: async ({ site, ref, owner }, scope) => {
        if (ref.type === 'VirtualMachine') await removeStray(site, ref, scope);
        else await releaseFolder(site.vcenter, ref, { cluster, uid: owner.uid }, scope);
      },
    },
  });
}

function machinesIn(site: Site, root: Root, cluster: string): readonly Stray[] {
  return root
    .machines()
    .filter(({ marks }) => marks.cluster === cluster)
    .map(({ ref, marks: owner }) => ({ site, root, ref, owner }));
}

/** vCenter does not tell when marks of folders change, so they are asked for. */
async function foldersIn(
  site: Site,
  root: Root,
  cluster: string,
  signal: AbortSignal,
): Promise<readonly Stray[]> {
  const key = await site.vcenter.attributes.key(FOLDER_OWNER, { signal });
  const folders = await site.vcenter.list('Folder', ['customValue'], { container: root.folder, signal });
  return folders.flatMap(({ ref, properties: { customValue } }) => {
    const owner = ownerIn(customValueOf(customValue, key));
    if (owner?.cluster !== cluster) return [];
    return { site, root, ref, owner: { uid: owner.uid, namespace: '' } };
  });
}
