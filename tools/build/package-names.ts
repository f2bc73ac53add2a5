/** Published packages, in an order in which each package comes after the packages that it imports. */
export const PACKAGES = ['core', 'runtime', 'vsphere', 'cloud', 'operator'] as const;
export type PackageName = (typeof PACKAGES)[number];
