import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGES, type PackageName } from './package-names.ts';

/**
 * Packs the built packages with npm into tarballs, which are the form in which they are published.
 * @param built folder that was given to `build`
 * @param into folder for the tarballs
 * @returns the path of each tarball
 */
export function pack(built: string, into: string): Record<PackageName, string> {
  mkdirSync(into, { recursive: true });
  const folders = PACKAGES.map((name) => join(built, name, 'dist'));
  const args = ['pack', '--json', '--loglevel=error', `--pack-destination=${into}`, ...folders];
  const packed: { name: string; filename: string }[] = JSON.parse(
    execFileSync('npm', args, { encoding: 'utf8', cwd: built }),
  );
  const tarball = (name: PackageName) => {
    const found = packed.find((each) => each.name === `@vmwright/${name}`);
    if (found === undefined) throw new Error(`npm packed no @vmwright/${name}`);
    return join(into, found.filename);
  };
  return {
    core: tarball('core'),
    runtime: tarball('runtime'),
    vsphere: tarball('vsphere'),
    cloud: tarball('cloud'),
    operator: tarball('operator'),
  };
}
