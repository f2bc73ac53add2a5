import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** An entry of package-lock.json, as far as it is read here. */
interface LockEntry {
  readonly name?: string;
  readonly version?: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** The part of package-lock.json (version 3) that describes the packages, by the path of their folder. */
export interface Lock {
  readonly packages: Readonly<Record<string, LockEntry>>;
}

/** A package that ships, as package-lock.json describes it. */
export interface ShippedPackage {
  readonly name: string;
  readonly version: string;
  /** SPDX expression; undefined if the package names no licence. */
  readonly licence: string | undefined;
  /** Subresource integrity hash of the tarball; undefined for packages of this repository. */
  readonly integrity: string | undefined;
  /** `name@version` of the packages on which it depends, sorted. */
  readonly dependencies: readonly string[];
}

const FOLDER = 'node_modules/';

/** Reads the package-lock.json of this repository. */
export function readLock(): Lock {
  return JSON.parse(readFileSync(fileURLToPath(new URL('../../package-lock.json', import.meta.url)), 'utf8'));
}

/**
 * Returns the packages that ship, sorted by name and version: the published packages, and everything that they depend
 * on directly or indirectly. Dependencies for development are left out.
 * @param published folders of the published packages, such as `packages/core`
 */
export function shippedPackages({ packages }: Lock, published: readonly string[]): readonly ShippedPackage[] {
  const found = new Map<string, ShippedPackage>();
  const visit = (path: string): string => {
    const entry = packages[path];
    if (entry === undefined) throw new Error(`package-lock.json has no entry for ${path}; run \`make lock\``);
    if (entry.link === true) return visit(entry.resolved ?? '');
    const { version = '', license: licence, integrity } = entry;
    const name = entry.name ?? path.slice(path.lastIndexOf(FOLDER) + FOLDER.length);
    const id = `${name}@${version}`;
    if (!found.has(path)) {
      const dependencies: string[] = [];
      found.set(path, { name, version, licence, integrity, dependencies });
      const names = Object.keys({ ...entry.dependencies, ...entry.optionalDependencies });
      dependencies.push(...names.map((each) => visit(locate(packages, path, each))).toSorted());
    }
    return id;
  };
  for (const path of published) visit(path);
  const unique = new Map([...found.values()].map((each) => [`${each.name}@${each.version}`, each]));
  return [...unique].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
}

/** Returns the path of the entry to which Node resolves a dependency of the package at `path`. */
function locate(packages: Lock['packages'], path: string, name: string): string {
  const steps = path.split('/');
  const folders = steps.map((_, index) => `${steps.slice(0, index + 1).join('/')}/`).toReversed();
  const candidates = [...folders, ''].map((folder) => `${folder}${FOLDER}${name}`);
  const found = candidates.find((each) => packages[each] !== undefined);
  if (found === undefined)
    throw new Error(
      `package-lock.json has no entry for ${name}, which ${path} depends on; run \`make lock\``,
    );
  return found;
}
