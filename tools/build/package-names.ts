/** Packages that are published, each after the packages that it imports. */
export const PACKAGES = ['core', 'runtime', 'vsphere', 'cloud', 'operator'] as const;
export type PackageName = (typeof PACKAGES)[number];
