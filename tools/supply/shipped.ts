import { PACKAGES } from '../build/package-names.ts';
import { readLock, type ShippedPackage, shippedPackages } from './lock.ts';

/** Returns the packages that ship with this version of the repository. */
export function shipped(): readonly ShippedPackage[] {
  return shippedPackages(
    readLock(),
    PACKAGES.map((name) => `packages/${name}`),
  );
}
