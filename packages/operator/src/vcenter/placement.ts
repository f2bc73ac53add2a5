/** Default path of the folder that contains the folders of groups. A vCenter or a group can name another folder. */
export const DEFAULT_FOLDER = 'vm-operator';

/** Where machines are created. Fields that are not set have the defaults of a VmGroup's `spec.placement`. */
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
