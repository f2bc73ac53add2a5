/** Path of the folder that contains the groups' folders, unless a vCenter or a group names another. */
export const DEFAULT_FOLDER = 'vm-operator';

/** Where machines are created. The defaults are the same as those of a VmGroup's `spec.placement`. */
export interface Placement {
  readonly vcenter?: string;
  readonly datacenter?: string;
  readonly folder?: string;
  readonly cluster?: string;
  readonly resourcePool?: string;
  readonly datastore?: string;
  readonly storagePolicy?: string;
}

/** A folder that contains groups' folders. */
export interface FolderPlacement {
  readonly datacenter?: string;
  /** Path below the datacenter's VM folder. @default DEFAULT_FOLDER */
  readonly folder?: string;
  /** Reference of the folder once it is known. With it, the operator finds the folder even if people renamed it. */
  readonly folderId?: string;
}
