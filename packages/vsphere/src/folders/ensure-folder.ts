import { NotFoundError } from '../errors.ts';
import { faultOf } from '../faults.ts';
import type { Datacenter } from '../lookup/lookup.ts';
import { isRef, type Ref } from '../properties/properties.ts';
import type { ChangeOptions } from '../session/session-client.ts';
import type { VcenterClient } from '../vcenter-client.ts';

export interface CreatedFolder {
  readonly folder: Ref<'Folder'>;
  /** Whether this call created the folder. A folder that already existed may belong to another user. */
  readonly created: boolean;
}

/**
 * Returns the VM folder at a path in a datacenter. Creates the folders of the path that are missing. The path is
 * relative to the datacenter's VM folder, or absolute: `/<datacenter>/vm/…`. Sends one or two requests per folder of
 * the path.
 * @throws VsphereError; NotFoundError when an object on the path is not a folder
 */
export async function ensureFolder(
  client: Pick<VcenterClient, 'lookup' | 'machines'>,
  datacenter: Datacenter,
  path: string,
  options: ChangeOptions = {},
): Promise<Ref<'Folder'>> {
  const prefix = `/${datacenter.name}/vm/`;
  const relativePath = path.startsWith(prefix) ? path.slice(prefix.length) : path;
  let folder = datacenter.vmFolder;
  let created = false;
  for (const name of relativePath.split('/').filter((segment) => segment !== '')) {
    // No lookup in a folder that was just created: it has no children.
    const child: Ref | undefined = created ? undefined : await client.lookup.child(folder, name, options);
    if (child === undefined) ({ folder, created } = await createFolder(client, folder, name, options));
    else folder = assertFolder(child, name, path);
  }
  return folder;
}

/** Creates a folder, or returns the existing folder of that name. @throws VsphereError */
export async function createFolder(
  client: Pick<VcenterClient, 'machines'>,
  parent: Ref<'Folder'>,
  name: string,
  options: ChangeOptions = {},
): Promise<CreatedFolder> {
  try {
    return { folder: await client.machines.createFolder(parent, name, options), created: true };
  } catch (error) {
    const existing = faultOf(error, 'DuplicateName')?.object;
    if (isRef(existing, 'Folder')) return { folder: existing, created: false };
    throw error;
  }
}

function assertFolder(object: Ref, name: string, path: string): Ref<'Folder'> {
  if (isRef(object, 'Folder')) return object;
  throw new NotFoundError(`'${name}' in the folder path '${path}' is a ${object.type}, not a folder`);
}
